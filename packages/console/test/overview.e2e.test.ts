import assert from 'node:assert/strict'
import { it } from 'node:test'
import { checkForms, checkPage, type Stage } from './browser.ts'
import type { FakeOptions } from './fake-gateway.ts'
import { type OpenedPage, withFakePage } from './fake-page.ts'
import { describeConsole } from './suite.ts'

describeConsole('the overview', (stage) => {
  it('has no fault, light and dark, wide and narrow', async () => {
    await withPage({}, {}, async ({ page }) => {
      await page.getByRole('heading', { name: 'Refused most' }).waitFor()
      await page.getByText('Last lines of stderr').click()
      await checkForms(page, 'the overview')
    })
  })

  it('shows what the gateway counts, not what the page has loaded', async () => {
    await withPage({ recordCount: 50_000 }, {}, async ({ page, gateway }) => {
      const calls = page.locator('.figure').filter({ hasText: 'Calls' }).locator('dd')
      await calls.waitFor()
      // It answers at once with what is counted so far.
      await page.getByText(/^The audit is count/).waitFor({ state: 'detached', timeout: 45_000 })
      const first = Number((await calls.innerText()).replace(',', ''))
      assert.ok(first > 30_000, `${first}`)
      gateway.record(11)
      await page.getByRole('button', { name: 'hour' }).click()
      await page.waitForFunction(
        (more) => document.querySelector('.figure dd')?.textContent === more,
        format(first + 7),
      )
      assert.match(await page.evaluate(() => location.hash), /period=1h/)
      await page.getByRole('button', { name: 'week' }).press('Enter')
      await page.locator('button[aria-pressed=true]').getByText('week').waitFor()
    })
  })

  it('shows a server that is down first, with its last lines and its restarts', async () => {
    await withPage({}, {}, async ({ page }) => {
      const row = page
        .getByRole('row')
        .filter({ has: page.getByRole('rowheader') })
        .first()
      await row.getByText('down', { exact: true }).waitFor()
      await row.getByText('Last lines of stderr').click()
      await row.getByText('Error: REMOTE_TOKEN is wrong', { exact: true }).waitFor()
      assert.equal(await row.locator('[data-label=Restarts]').innerText(), '4')
    })
  })

  it('takes a range of the chart by pointer and by keyboard, and shows the exact counts of a bar', async () => {
    await withPage({}, {}, async ({ page }) => {
      const bars = page.locator('.bars')
      const box = await bars.boundingBox()
      assert.ok(box)
      await page.mouse.move(box.x + box.width * 0.5, box.y + 50)
      await page
        .locator('.bars-value')
        .getByText(/: (no calls|\d+ )/)
        .waitFor()
      await page.mouse.down()
      await page.mouse.move(box.x + box.width - 2, box.y + 50)
      await page.mouse.up()
      await page.getByRole('link', { name: 'Show these calls' }).waitFor()
      assert.match(await page.evaluate(() => location.hash), /from=20.*&to=20/)
      await checkForms(page, 'a chosen range')
      await page.getByRole('button', { name: 'Whole period' }).click()
      await page.locator('.bars-chosen').waitFor({ state: 'detached' })
      await bars.focus()
      for (const key of ['End', 'Shift+ArrowLeft', 'Shift+ArrowLeft', 'Enter']) await page.keyboard.press(key)
      await page.locator('.bars-chosen').waitFor()
      await page.getByRole('link', { name: 'Show these calls' }).click()
      assert.match(await page.evaluate(() => location.hash), /calls\?range=.*from=20/)
    })
  })

  it('shows on a phone what waits and what is wrong', async () => {
    await withPage({}, { viewport: { width: 390, height: 800 } }, async ({ page }) => {
      await page
        .locator('.account')
        .getByRole('link', { name: /\d+ waiting/ })
        .waitFor()
      await page
        .locator('.account')
        .getByRole('link', { name: /\d+ wrong/ })
        .waitFor()
    })
  })

  it('says first what is wrong, since when, and leads to where a person acts', async () => {
    await withPage(
      { warnings: [{ code: 'selector_unmatched', path: 'policy[0]', text: 'no tool matches' }] },
      {},
      async ({ page }) => {
        const troubles = page.getByRole('region', { name: /need a look$/ })
        const [server, group] = ['The server remote is down', 'The group Web pages is not available'].map((hasText) =>
          troubles.getByRole('listitem').filter({ hasText }),
        )
        assert.match((await server?.innerText()) ?? '', /since .*REMOTE_TOKEN is wrong/s)
        assert.match((await group?.innerText()) ?? '', /ECONNREFUSED/)
        await troubles.getByRole('link', { name: 'The configuration has a warning' }).waitFor()
        await server?.getByRole('link').click()
        assert.match(await page.evaluate(() => location.hash), /servers\?server=remote/)
      },
    )
  })

  it('says so when nothing has happened', async () => {
    await withPage({ empty: true }, {}, async ({ page }) => {
      await page.getByText('No calls in this period').waitFor()
      await page.getByText('Nothing was refused.').waitFor()
      await checkPage(page, 'an empty overview')
    })
  })

  const withPage = (
    gateway: Partial<FakeOptions>,
    browser: Parameters<Stage['open']>[0],
    work: (opened: OpenedPage) => Promise<void>,
  ) => withFakePage(stage, { address: 'overview', ready: '.figure', gateway, browser }, work)
})

function format(n: number): string {
  return n.toLocaleString('en-GB')
}
