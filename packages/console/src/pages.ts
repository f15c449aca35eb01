import type { Page } from './address.ts'
import { createLater, type Later } from './later.ts'

/** The content of each page, loaded when the page is opened. */
export const PAGE_CONTENT: Readonly<Record<Page, Later>> = {
  tools: createLater(async () => (await import('./pages/tools.tsx')).ToolsPage),
  tool: createLater(async () => (await import('./pages/tool.tsx')).ToolPage),
  overview: createLater(async () => (await import('./pages/overview.tsx')).OverviewPage),
  live: createLater(async () => (await import('./pages/live.tsx')).LivePage),
  calls: createLater(async () => (await import('./pages/calls.tsx')).CallsPage),
  runs: createLater(async () => (await import('./pages/runs.tsx')).RunsPage),
  approvals: createLater(async () => (await import('./pages/approvals.tsx')).ApprovalsPage),
  policy: createLater(async () => (await import('./pages/policy.tsx')).PolicyPage),
  people: createLater(async () => (await import('./pages/people.tsx')).PeoplePage),
  servers: createLater(async () => (await import('./pages/servers.tsx')).ServersPage),
  replicas: createLater(async () => (await import('./pages/replicas.tsx')).ReplicasPage),
}

export const LOGIN = createLater(async () => (await import('./pages/login.tsx')).LoginPage)
export const SESSION_ENDED = createLater(async () => (await import('./pages/login.tsx')).SessionEnded)
export const PALETTE = createLater(async () => (await import('./parts/palette.tsx')).Palette)

/**
 * Loads the parts one by one while the browser is idle, so that opening one does not wait for the network. It waits for
 * the first view, because the browser is also idle while that waits for data.
 */
export async function loadTheRest(firstView: Promise<unknown>): Promise<void> {
  await firstView
  for (const part of [SESSION_ENDED, PALETTE, ...Object.values(PAGE_CONTENT)]) {
    await new Promise((resolve) => (globalThis.requestIdleCallback ?? setTimeout)(resolve))
    await part.load()
  }
}
