import { useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useEffect, useRef } from 'react'
import type { Page } from './address.ts'
import { FIRST_ANSWERED } from './first.ts'
import { useAddress, useApi, useHealth, useLater } from './hooks.ts'
import { followLive } from './live-updates.ts'
import { verdicts } from './approval-verdicts.ts'
import { LOGIN, loadTheRest, PAGE_CONTENT, SESSION_ENDED } from './pages.ts'
import { Announcer } from './parts/announcer.tsx'
import { FaultBoundary, Failed, Loading, NotLoaded } from './parts/panels.tsx'
import { Halts } from './parts/halts.tsx'
import { Header } from './parts/header.tsx'
import { StaleStrip, Warnings } from './parts/notices.tsx'
import { Shortcuts } from './parts/shortcuts.tsx'
import { Session } from './session.ts'
import type { SessionBody } from './wire.ts'

/** Shows the login, or the page of the address for a logged-in user. */
export function App(): ReactElement {
  const session = useApi<SessionBody>({ key: ['session'], path: '/api/session' })
  const isOut = session.error?.status === 401
  if (session.data) return <Shell session={session.data} hasEnded={isOut} />
  if (isOut) return <LoggedOut />
  return (
    <main className="alone">
      {session.error ? <Failed error={session.error} retry={session.refetch} /> : <Loading what="the console" />}
    </main>
  )
}

function LoggedOut(): ReactElement {
  const { Content, hasFailed } = useLater(LOGIN)
  if (Content) return <Content />
  return <main className="alone">{hasFailed ? <NotLoaded /> : <Loading what="the login" />}</main>
}

/** The page of a logged-in user. If the session ends, the page stays, under a dialog to log in again. */
function Shell({ session, hasEnded }: { session: SessionBody; hasEnded: boolean }): ReactElement {
  const client = useQueryClient()
  const { page } = useAddress()
  const main = useRef<HTMLElement>(null)
  const { isStale } = useHealth()
  useEffect(() => (hasEnded ? undefined : followLive(client)), [client, hasEnded])
  useEffect(
    () =>
      verdicts.onSettled(() => {
        void client.invalidateQueries({ queryKey: ['approvals'] })
        void client.invalidateQueries({ queryKey: ['grants'] })
      }),
    [client],
  )
  const { Content, hasFailed } = useLater(PAGE_CONTENT[page])
  const isShown = Content !== undefined
  useFocusOnMove(isShown ? page : undefined, main)
  useEffect(() => void (isShown && loadTheRest(FIRST_ANSWERED)), [isShown])
  const ended = useLater(SESSION_ENDED, hasEnded)
  return (
    <Session value={session}>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header session={session} page={page} />
      <StaleStrip />
      <Warnings />
      <Halts />
      <main ref={main} tabIndex={-1} className={classOf(page, isStale || hasEnded)}>
        <FaultBoundary key={page}>
          {Content ? <Content /> : hasFailed ? <NotLoaded /> : <Loading what="the page" />}
        </FaultBoundary>
      </main>
      <Announcer />
      {!hasEnded && <Shortcuts session={session} />}
      {hasEnded && ended.Content && <ended.Content user={session.user} />}
    </Session>
  )
}

/** Pages of text, which is not read in lines as long as a wide window. */
const TEXTS: ReadonlySet<Page> = new Set(['tool', 'policy', 'overview'])

function classOf(page: Page, isStale: boolean): string | undefined {
  return `${TEXTS.has(page) ? 'text' : ''} ${isStale ? 'stale' : ''}`.trim() || undefined
}

/** Focuses the heading of a new page once it is there, so that screen readers announce it. */
function useFocusOnMove(page: Page | undefined, main: React.RefObject<HTMLElement | null>): void {
  const shown = useRef(page)
  useEffect(() => {
    if (page === undefined || shown.current === page) return
    const isFirst = shown.current === undefined
    shown.current = page
    if (isFirst) return
    scrollTo({ top: 0 })
    const heading = main.current?.querySelector('h1')
    heading?.setAttribute('tabindex', '-1')
    heading?.focus({ preventScroll: true })
  }, [page, main])
}
