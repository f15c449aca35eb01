import { useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useEffect, useRef } from 'react'
import type { Page } from './address.ts'
import { useAddress, useApi, useHealth } from './hooks.ts'
import { followLive } from './live-updates.ts'
import { verdicts } from './approval-verdicts.ts'
import { ApprovalsPage } from './pages/approvals.tsx'
import { CallsPage } from './pages/calls.tsx'
import { CallersPage } from './pages/callers.tsx'
import { ConnectionsPage } from './pages/connections.tsx'
import { KeysPage } from './pages/keys.tsx'
import { LivePage } from './pages/live.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { LoginPage, SessionEnded } from './pages/login.tsx'
import { ReplicasPage } from './pages/replicas.tsx'
import { ServersPage } from './pages/servers.tsx'
import { ToolPage } from './pages/tool.tsx'
import { ToolsPage } from './pages/tools.tsx'
import { Announcer } from './parts/announcer.tsx'
import { FaultBoundary, Failed, Loading } from './parts/panels.tsx'
import { Halts } from './parts/halts.tsx'
import { Header } from './parts/header.tsx'
import { StaleStrip, Warnings } from './parts/notices.tsx'
import { Shortcuts } from './parts/shortcuts.tsx'
import type { SessionBody } from './wire.ts'

const CONTENT: Readonly<Record<Page, () => ReactElement>> = {
  tools: ToolsPage,
  tool: ToolPage,
  overview: OverviewPage,
  live: LivePage,
  calls: CallsPage,
  approvals: ApprovalsPage,
  callers: CallersPage,
  keys: KeysPage,
  connections: ConnectionsPage,
  servers: ServersPage,
  replicas: ReplicasPage,
}

/** Shows the login, or the page of the address for a logged-in user. */
export function App(): ReactElement {
  const session = useApi<SessionBody>({ key: ['session'], path: '/api/session' })
  const isOut = session.error?.status === 401
  if (session.data) return <Shell session={session.data} hasEnded={isOut} />
  if (isOut) return <LoginPage />
  return (
    <main className="alone">
      {session.error ? <Failed error={session.error} retry={session.refetch} /> : <Loading what="the console" />}
    </main>
  )
}

/** The page of a logged-in user. If the session ends, the page stays, under a dialog to log in again. */
function Shell({ session, hasEnded }: { session: SessionBody; hasEnded: boolean }): ReactElement {
  const client = useQueryClient()
  const [{ page }] = useAddress()
  const main = useRef<HTMLElement>(null)
  const { isStale } = useHealth()
  useEffect(() => (hasEnded ? undefined : followLive(client)), [client, hasEnded])
  useEffect(() => verdicts.onSettled(() => void client.invalidateQueries({ queryKey: ['approvals'] })), [client])
  useFocusOnMove(page, main)
  const Content = CONTENT[page]
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header session={session} page={page} />
      <StaleStrip />
      <Warnings />
      <Halts />
      <main ref={main} tabIndex={-1} className={isStale || hasEnded ? 'stale' : undefined}>
        <FaultBoundary key={page}>
          <Content />
        </FaultBoundary>
      </main>
      <Announcer />
      {!hasEnded && <Shortcuts session={session} />}
      {hasEnded && <SessionEnded user={session.user} />}
    </>
  )
}

/** Focuses the heading of a new page, so that screen readers announce it. */
function useFocusOnMove(page: Page, main: React.RefObject<HTMLElement | null>): void {
  const shown = useRef(page)
  useEffect(() => {
    if (shown.current === page) return
    shown.current = page
    scrollTo({ top: 0 })
    const heading = main.current?.querySelector('h1')
    heading?.setAttribute('tabindex', '-1')
    heading?.focus({ preventScroll: true })
  }, [page, main])
}
