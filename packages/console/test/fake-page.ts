import { enter, type Stage } from './browser.ts'
import { type FakeOptions, startFakeGateway } from './fake-gateway.ts'
import type { Suite } from './suite.ts'

/** A page of the console in front of a fake gateway. */
export type OpenedPage = Awaited<ReturnType<Stage['open']>> & {
  readonly gateway: Awaited<ReturnType<typeof startFakeGateway>>
}

export interface AskedPage {
  /** The address after `#/`. */
  readonly address: string
  /** The selector of an element that shows that the page is ready. */
  readonly ready: string
  readonly gateway: Partial<FakeOptions>
  readonly browser: Parameters<Stage['open']>[0]
}

/** Opens a page as a logged-in person. It is closed after the test, and nothing may stray. */
export async function withFakePage(
  stage: Suite,
  { address, ready, gateway: options, browser }: AskedPage,
  work: (opened: OpenedPage) => Promise<void>,
): Promise<void> {
  const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir, ...options }))
  const seat = await stage.open(browser)
  await enter(seat.page, `${gateway.url}/#/${address}`)
  await seat.page.locator(ready).first().waitFor()
  await work({ ...seat, gateway })
}
