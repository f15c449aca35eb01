import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { checkPage, logIn, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'
import { startFakeGateway } from './fake-gateway.ts'

const executablePath = findChromium()
/** Where pictures of the pages go, for people who look at them. */
const { TOOLGATE_PICTURES: pictures } = process.env

if (executablePath !== undefined)
  describe('what a run has done', () => {
    let stage: Stage
    before(async () => {
      stage = await setStage(executablePath)
    })
    after(() => stage.close())

    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [390, 1440])
        it(`is on the card of an approval: ${colorScheme}, ${width} wide`, async () => {
          const gateway = await startFakeGateway({ consoleDir: stage.consoleDir })
          const { context, page, strayed } = await stage.open({ colorScheme, viewport: { width, height: 900 } })
          await page.goto(`${gateway.url}/#/approvals`)
          await logIn(page)
          const trail = page.locator('.approval').filter({ hasText: 'memory:delete_entities' }).locator('.trail')
          await trail.waitFor()
          const lines = await trail.locator(':scope > div').allInnerTexts()
          const read = lines.map((line) => line.replaceAll(/\s+/g, ' ').replace(/\d+ \w+ ago/, 'AGO'))
          assert.match(read[0] ?? '', /^Has read untrusted web:fetch/)
          assert.match(read[1] ?? '', /^Sends to to eve@evil.example.*U\+202E.* from untrusted output$/)
          assert.match(read[2] ?? '', /^Sends to cc ann@acme.example the user named it$/)
          await checkPage(page, 'approvals')
          if (pictures !== undefined)
            await page.screenshot({ path: `${pictures}/trail-${colorScheme}-${width}.png`, fullPage: true })
          await context.close()
          await gateway.close()
          assert.deepEqual(strayed, [])
        })
  })
