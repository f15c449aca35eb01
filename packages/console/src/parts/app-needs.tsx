import type { ReactElement } from 'react'
import { count, toSentence } from '../format.ts'
import { useApi } from '../hooks.ts'
import type { AppRow, NeedRow, NeedsBody } from '../wire.ts'
import { StateBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Since } from './when.tsx'

const REFRESH_MS = 2000

/** What must be started or set for the tools of an app. Open while something is missing; nothing where nothing is needed. */
export function AppNeeds({ app }: { app: AppRow }): ReactElement | null {
  const { name, title = name } = app
  const { data } = useApi<NeedsBody>({
    key: ['needs', name],
    path: '/api/needs',
    parameters: { app: name },
    everyMs: REFRESH_MS,
  })
  // The list of the app that was shown before stays until this one's arrives.
  if (!data || data.app !== name || data.needs.length === 0) return null
  const missing = data.needs.filter(({ state }) => state !== 'available').length
  return (
    <section className={missing > 0 ? 'needs missing' : 'needs'} aria-label="What it needs">
      <details open={missing > 0}>
        <summary>
          <Exact text={title} className="strong" /> needs {count(data.needs.length, 'thing')}:{' '}
          {missing === 0 ? 'all available' : `${missing} not available`}
        </summary>
        <ul>
          {data.needs.map((need) => (
            <Needed key={`${need.kind} ${need.what} ${need.groups.join(' ')}`} need={need} />
          ))}
        </ul>
      </details>
    </section>
  )
}

function Needed({ need }: { need: NeedRow }): ReactElement {
  const { what, groups, state, reason, suggestion, since } = need
  return (
    <li>
      <div className="needs-head">
        <StateBadge state={state} />
        <Exact text={what} className="strong" />
        {since !== undefined && (
          <span className="dim">
            <Since ms={since} />
          </span>
        )}
        {groups.length > 0 && (
          <span className="dim end">
            {groups.length === 1 ? 'group' : 'groups'}{' '}
            {groups.map((group, i) => (
              <span key={group}>
                {i > 0 && ', '}
                <Exact text={group} className="id" />
              </span>
            ))}
          </span>
        )}
      </div>
      {(reason !== undefined || suggestion !== undefined) && (
        <p>
          {reason !== undefined && <Exact text={toSentence(reason)} />}{' '}
          {suggestion !== undefined && <Exact text={suggestion} className="suggestion" />}
        </p>
      )}
    </li>
  )
}
