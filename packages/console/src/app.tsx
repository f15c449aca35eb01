import type { ReactElement } from 'react'
import { useEffect, useRef } from 'react'
import type { Page } from './address.ts'
import { useAddress, useApi } from './hooks.ts'
import { ApprovalsPage } from './pages/approvals.tsx'
import { AuditPage } from './pages/audit.tsx'
import { LoginPage } from './pages/login.tsx'
import { ToolsPage } from './pages/tools.tsx'
import { Halts } from './parts/halts.tsx'
import { Header } from './parts/header.tsx'
import { Failed, Loading } from './parts/panels.tsx'
import type { SessionBody } from './wire.ts'

const CONTENT: Readonly<Record<Page, () => ReactElement>> = {
  tools: ToolsPage,
  audit: AuditPage,
  approvals: ApprovalsPage,
}

/** Asks who is logged in, and shows the login or the page of the address. */
export function App(): ReactElement {
  const session = useApi<SessionBody>({ key: ['session'], path: '/api/session' })
  if (session.error?.status === 401) return <LoginPage />
  if (session.data) return <Shell session={session.data} />
  return (
    <main className="alone">
      {session.error ? <Failed error={session.error} retry={session.refetch} /> : <Loading what="the console" />}
    </main>
  )
}

function Shell({ session }: { session: SessionBody }): ReactElement {
  const [{ page }] = useAddress()
  const main = useRef<HTMLElement>(null)
  const Content = CONTENT[page]
  useEffect(() => {
    document.title = `${page[0]?.toUpperCase()}${page.slice(1)} · Toolgate`
  }, [page])
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header session={session} page={page} />
      <Halts />
      <main ref={main} tabIndex={-1}>
        <Content key={page} />
      </main>
    </>
  )
}
