import assert from 'node:assert/strict'
import { logIn, type Stage } from './browser.ts'
import { type FakeOptions, startFakeGateway } from './fake-gateway.ts'

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

/** Opens a page as a logged-in person, and closes it after `work`. Nothing may stray. */
export async function withFakePage(
  stage: Pick<Stage, 'open' | 'consoleDir'>,
  { address, ready, gateway: options, browser }: AskedPage,
  work: (opened: OpenedPage) => Promise<void>,
): Promise<void> {
  const gateway = await startFakeGateway({ consoleDir: stage.consoleDir, ...options })
  const seat = await stage.open(browser)
  try {
    await seat.page.goto(`${gateway.url}/#/${address}`)
    await logIn(seat.page)
    await seat.page.locator(ready).first().waitFor()
    await work({ ...seat, gateway })
    assert.deepEqual(seat.strayed, [])
  } finally {
    await seat.context.close()
    await gateway.close()
  }
}
