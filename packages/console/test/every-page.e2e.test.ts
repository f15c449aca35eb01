import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { COLOUR_RULES, findPageFaults, logIn, type Seat, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'
import { findLayoutFaults } from './layout.ts'
import { type LivelyGateway, PERSON, startLivelyGateway } from './lively-gateway.ts'
import { findTabFaults } from './tab-walk.ts'
import { type View, VIEWS } from './views.ts'

const executablePath = findChromium()
const SOURCE = join(import.meta.dirname, '../src')
const FORMS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [390, 1440].map((width) => ({ colorScheme, width, name: `${colorScheme}-${width}` })),
)
/** Places depend on the width alone, and the focus is drawn in both schemes. */
const WALKED: ReadonlySet<string> = new Set(['light-390', 'dark-1440'])
/** Where pictures go, for people who look at them. */
const { TOOLGATE_SCREENSHOTS: pictures } = process.env

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
      await page.goto(lively.url)
      await logIn(page, PERSON)
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
          for (const link of await page.locator('nav a').all()) linked.add((await link.getAttribute('href')) ?? '')
          for (const { colorScheme, width, name: form } of FORMS) {
            await page.emulateMedia({ colorScheme })
            await page.setViewportSize({ width, height: 900 })
            await page.evaluate(() => scrollTo(0, 0))
            await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
            await page.waitForFunction(isLaidOut)
            if (pictures !== undefined)
              await page.screenshot({
                path: join(pictures, `${name} ${view.name} ${form}.png`.replaceAll(' ', '_')),
                fullPage: view.isModal !== true,
              })
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
      await page.goto(`${lively.url}/#/${address}`)
      const login = page.getByLabel('Console key')
      await login.or(page.locator(ready)).first().waitFor()
      if (await login.isVisible()) await logIn(page, PERSON)
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
