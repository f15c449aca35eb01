import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { COLOUR_RULES, enter, findPageFaults, type Seat, setStage, type Stage, takePicture } from './browser.ts'
import { findChromium } from './chromium.ts'
import { findLayoutFaults } from './layout.ts'
import { type LivelyGateway, PERSON, startLivelyGateway } from './lively-gateway.ts'
import { findTabFaults } from './tab-walk.ts'
import { type View, VIEWS } from './views.ts'

const executablePath = findChromium()
const SOURCE = join(import.meta.dirname, '../src')
const FORMS = [390, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ colorScheme, width, name: `${colorScheme}-${width}` })),
)
/** Places depend on the width alone, and the focus is drawn in both schemes. */
const WALKED: ReadonlySet<string> = new Set(['light-390', 'dark-1440'])

if (executablePath !== undefined)
  describe('every page', () => {
    let stage: Stage
    let lively: LivelyGateway
    let seat: Seat
    let page: Page
    const linked = new Set<string>()

    before(async () => {
      stage = await setStage(executablePath)
      lively = await startLivelyGateway(stage.consoleDir)
      seat = await stage.open({ reducedMotion: 'reduce' })
      page = seat.page
      await enter(page, lively.url, PERSON)
      await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
    })
    after(async () => {
      await seat?.context.close()
      await lively?.close()
      await stage?.close()
      assert.deepEqual(seat?.strayed, [])
    })

    for (const [name, views] of Object.entries(VIEWS))
      for (const view of views)
        it(`${name}: ${view.name}`, async () => {
          await show(view)
          const faults: string[] = []
          const links = await page
            .locator('nav a')
            .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
          for (const link of links) linked.add(link)
          for (const { colorScheme, width, name: form } of FORMS) {
            if (view.widths?.includes(width) === false) continue
            await page.emulateMedia({ colorScheme })
            await page.setViewportSize({ width, height: 900 })
            await page.evaluate(() => {
              scrollTo(0, 0)
              return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
            })
            await page.waitForFunction(isLaidOut)
            await takePicture(page, `${name} ${view.name} ${form}`, view.isModal !== true)
            // Only the answers about colours depend on the scheme.
            const found = [...(await findPageFaults(page, colorScheme === 'dark' ? COLOUR_RULES : undefined))]
            if (WALKED.has(form)) found.push(...(await findLayoutFaults(page)), ...(await findTabFaults(page)))
            faults.push(...found.map((fault) => `${form}: ${fault}`))
          }
          assert.deepEqual(faults, [])
          assert.equal(await page.evaluate(() => document.getAnimations().length), 0, 'nothing moves')
          if (view.isModal) {
            await page.keyboard.press('Escape')
            await page.locator('dialog[open], [role=dialog]').waitFor({ state: 'detached' })
            // The focus returns to what has opened it.
            await page.waitForFunction(isBack)
          }
        })

    it('are all that can be opened', () => {
      const parts = globSync('**/*.tsx', { cwd: SOURCE }).filter((file) =>
        /<dialog|<DialogButton|<details|<Drawer|Dialog\.Content|Tabs\.List|role="listbox"/.test(
          readFileSync(join(SOURCE, file), 'utf8'),
        ),
      )
      const shown = new Set(Object.values(VIEWS).flatMap((views) => views.flatMap(({ shows = [] }) => shows)))
      assert.deepEqual(parts.toSorted(), [...shown].toSorted())
      const views = Object.values(VIEWS).flat()
      for (const link of linked)
        assert.ok(
          views.some(({ address }) => `#/${address}`.startsWith(link)),
          link,
        )
    })

    async function show({ address, ready, open }: View): Promise<void> {
      // Another document, so that nothing of the view before is left.
      await page.evaluate(() => sessionStorage.clear())
      await page.goto('about:blank')
      await page.setViewportSize({ width: 1440, height: 900 })
      if ((await page.context().cookies()).length > 0) await page.goto(`${lively.url}/#/${address}`)
      else await enter(page, `${lively.url}/#/${address}`, PERSON)
      await page.locator(ready).first().waitFor()
      await open?.(page)
    }
  })

/** Returns whether the header has the order of the present width, which decides where a walk with Tab begins. */
function isLaidOut(): boolean {
  const [account, links] = ['header .account', 'header nav'].map((selector) => document.querySelector(selector))
  if (!account || !links) return true
  const isFirst = (account.compareDocumentPosition(links) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0
  return isFirst === matchMedia('(width < 48rem)').matches
}

/** Returns whether the focus is on what opened a dialog, or on its like where the row is another one at this width. */
function isBack(): boolean {
  const { openedBy } = globalThis as { openedBy?: Element }
  const at = document.activeElement
  return (
    openedBy === undefined || at === openedBy || (!openedBy.isConnected && at?.textContent === openedBy.textContent)
  )
}
