import { useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react'
import { linkTo, type Page } from '../address.ts'
import { postJson } from '../api.ts'
import { FIRST_ANSWERED } from '../first.ts'
import { useHealth, useLiveState, useNarrow } from '../hooks.ts'
import { mayManageKeys } from '../keys.ts'
import { useWaiting } from '../pending.ts'
import { desktopNotices } from '../desktop-notices.ts'
import { dropDraft } from '../policy-draft.ts'
import { useTroubles } from '../troubles-query.ts'
import type { LogoutBody, SessionBody, WaitingApprovalRow } from '../wire.ts'
import { Exact } from './exact.tsx'

/** The titles of the pages, in the order of the links. */
export const TITLES: Readonly<Record<Page, string>> = {
  overview: 'Overview',
  tools: 'Tools',
  tool: 'Tool',
  live: 'Live',
  calls: 'Calls',
  runs: 'Runs',
  approvals: 'Approvals',
  policy: 'Policy',
  people: 'People and keys',
  servers: 'Servers',
  replicas: 'Replicas',
}
export const NAVIGATED = (Object.keys(TITLES) as Page[]).filter((page) => page !== 'tool')

/** Pages for operators only. The gateway decides who may see them; this only hides them. */
export const OPERATORS: ReadonlySet<Page> = new Set(['replicas'])

export function Header({ session, page }: { session: SessionBody; page: Page }): ReactElement {
  const pending = useWaiting().data?.approvals
  const waiting = pending?.length ?? 0
  useNotices(pending)
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${TITLES[page]} · Toolgate`
  }, [page, waiting])
  // It is beside the links on a wide screen and above them on a narrow one. The order of the Tab key is the same.
  const isNarrow = useNarrow()
  const links = <Links key="links" session={session} page={page} waiting={waiting} />
  const account = (
    <Account key="account" session={session}>
      {isNarrow && <Urgent waiting={waiting} />}
    </Account>
  )
  return (
    <header className="top">
      <div className="brand">
        <GateMark />
        <span>Toolgate</span>
      </div>
      {isNarrow ? [account, links] : [links, account]}
    </header>
  )
}

interface LinksProps {
  readonly session: SessionBody
  readonly page: Page
  /** The number of waiting approvals. */
  readonly waiting: number
}

function Links({ session, page, waiting }: LinksProps): ReactElement {
  const current = page === 'tool' ? 'tools' : page
  return (
    <nav aria-label="Pages">
      <ul>
        {NAVIGATED.filter((name) => !OPERATORS.has(name) || mayManageKeys(session)).map((name) => (
          <li key={name}>
            <a
              ref={name === current ? showLink : undefined}
              href={linkTo(name)}
              aria-current={name === current ? 'page' : undefined}
            >
              {TITLES[name]}
              {name === 'approvals' && waiting > 0 && (
                <span className="pending-count">
                  {waiting}
                  <span className="unseen"> waiting</span>
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

interface AccountProps {
  readonly session: SessionBody
  readonly children: ReactNode
}

function Account({ session: { user, label = user, tenant, roles }, children }: AccountProps): ReactElement {
  const named = label === user ? [] : [user]
  const rights = [...(tenant === undefined ? [] : [`of ${tenant}`]), ...roles].join(', ')
  return (
    <div className="account">
      {children}
      <Connection />
      <span className="who" title={[...named, rights].join(', ')}>
        <Exact text={label} />
        {rights !== '' && (
          <span className="rights dim">
            {' '}
            <Exact text={rights} />
          </span>
        )}
      </span>
      <LogOut />
    </div>
  )
}

/** Shows on a phone, where the links are scrolled, what waits and what is wrong. */
function Urgent({ waiting }: { waiting: number }): ReactElement {
  const [isReady, setReady] = useState(false)
  useEffect(() => void FIRST_ANSWERED.then(() => setReady(true)), [])
  const { troubles } = useTroubles(undefined, isReady)
  return (
    <>
      {waiting > 0 && (
        <a href={linkTo('approvals')} className="pending-count urgent">
          {waiting}
          <span className="unseen"> waiting</span>
        </a>
      )}
      {troubles.length > 0 && (
        <a href={linkTo('overview')} className="pending-count urgent wrong">
          {troubles.length}
          <span className="unseen"> wrong</span>
        </a>
      )}
    </>
  )
}

/** Notifies the person of requests that they may decide and that arrived after the page was opened. */
function useNotices(pending: readonly WaitingApprovalRow[] | undefined): void {
  const known = useRef<ReadonlySet<string>>(undefined)
  useEffect(() => {
    if (!pending) return
    const before = known.current
    known.current = new Set(pending.map(({ id }) => id))
    if (before) desktopNotices.show(pending.filter(({ id, mayDecide }) => mayDecide && !before.has(id)))
  }, [pending])
}

/**
 * Scrolls the links sideways to the current one on a narrow screen. `scrollIntoView` would also move the starting point
 * of the Tab key.
 *
 * It waits for the next frame, which needs a layout anyway.
 */
function showLink(link: HTMLElement | null): void {
  requestAnimationFrame(() => {
    const nav = link?.closest('nav')
    if (!link || !nav) return
    const [shown, { left, right }] = [nav.getBoundingClientRect(), link.getBoundingClientRect()]
    nav.scrollLeft += Math.min(left - shown.left, 0) + Math.max(right - shown.right, 0)
  })
}

/** Shows how the page is kept up to date. */
function Connection(): ReactElement {
  const state = useLiveState()
  const { isStale } = useHealth()
  if (isStale) return <span className="connection off">Not connected</span>
  if (state === 'open') return <span className="connection on">Live</span>
  return <span className="connection">{state === 'connecting' ? 'Connecting…' : 'Every 2 s'}</span>
}

function LogOut(): ReactElement {
  const client = useQueryClient()
  async function logOut(): Promise<void> {
    const ended = await postJson<LogoutBody>('/api/logout', {}).catch((): LogoutBody => ({}))
    client.clear()
    dropDraft()
    if (ended.logoutUrl === undefined) location.reload()
    else location.assign(ended.logoutUrl)
  }
  return (
    <button type="button" className="quiet" onClick={() => void logOut()}>
      Log out
    </button>
  )
}

/** The logo of Toolgate: an arch with bars. */
export function GateMark(): ReactElement {
  return (
    <svg className="gate-mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M8 25V14a8 8 0 0 1 16 0v11M13.300 25V12.800M18.700 25V12.800M6 25h20" />
    </svg>
  )
}
