import assert from 'node:assert/strict'
import { after, afterEach, before, describe } from 'node:test'
import { type Seat, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'

/** The built console and a browser, with what a test has opened. All of it is closed after the test, the latest first. */
export interface Suite extends Pick<Stage, 'consoleDir'> {
  /** Opens a page on which nothing may stray. */
  open(options?: Parameters<Stage['open']>[0]): Promise<Seat>
  keep<Kept extends { close(): unknown }>(starting: Kept | Promise<Kept>): Promise<Kept>
}

/** Describes what people see in the console. Without a browser on this machine there is nothing to describe. */
export function describeConsole(name: string, define: (suite: Suite) => void): void {
  const executablePath = findChromium()
  if (executablePath === undefined) return
  describe(name, () => {
    let stage: Stage
    const ends: (() => unknown)[] = []
    before(async () => {
      stage = await setStage(executablePath)
    })
    after(() => stage?.close())
    afterEach(async () => {
      for (const end of ends.splice(0).toReversed()) await end()
    })
    define({
      get consoleDir() {
        return stage.consoleDir
      },
      async open(options = {}) {
        const seat = await stage.open(options)
        ends.push(async () => {
          await seat.context.close()
          assert.deepEqual(seat.strayed, [])
        })
        return seat
      },
      async keep(starting) {
        const kept = await starting
        ends.push(() => kept.close())
        return kept
      },
    })
  })
}
