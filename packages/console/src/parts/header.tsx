import { useQueryClient } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { formatAddress, type Page, PAGES } from '../address.ts'
import { postJson } from '../api.ts'
import { useApprovals } from '../pages/approvals.tsx'
import type { SessionBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { GateMark } from './gate-mark.tsx'

const TITLES: Readonly<Record<Page, string>> = { tools: 'Tools', audit: 'Audit', approvals: 'Approvals' }

export function Header({ session, page }: { session: SessionBody; page: Page }): ReactElement {
  const waiting = useApprovals().data?.approvals.filter(({ status }) => status === 'pending').length ?? 0
  return (
    <header className="top">
      <div className="brand">
        <GateMark />
        <span>Toolgate</span>
      </div>
      <nav aria-label="Pages">
        <ul>
          {PAGES.map((name) => (
            <li key={name}>
              <a
                href={formatAddress({ page: name, choices: new Map() })}
                aria-current={name === page ? 'page' : undefined}
              >
                {TITLES[name]}
                {name === 'approvals' && waiting > 0 && (
                  <span className="waiting">
                    {waiting}
                    <span className="unseen"> waiting</span>
                  </span>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Account session={session} />
    </header>
  )
}

function Account({ session }: { session: SessionBody }): ReactElement {
  const client = useQueryClient()
  async function logOut(): Promise<void> {
    await postJson('/api/logout', {}).catch(() => undefined)
    client.clear()
    location.reload()
  }
  return (
    <div className="account">
      <span className="who" title={session.roles.join(', ')}>
        <Exact text={session.user} />
      </span>
      <button type="button" className="quiet" onClick={() => void logOut()}>
        Log out
      </button>
    </div>
  )
}
