import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { checkForms, type Stage } from './browser.ts'
import type { FakeOptions } from './fake-gateway.ts'
import { type OpenedPage, withFakePage } from './fake-page.ts'
import { describeConsole } from './suite.ts'

const MAX_RENDERED = 80

describeConsole('the page of calls', (stage) => {
  it('has no fault, light and dark, wide and narrow', async () => {
    await withPage({}, {}, async ({ page }) => {
      await page.getByLabel('Filter').fill('t')
      await page.getByRole('option', { name: /^tenant:/ }).waitFor()
      await checkForms(page, 'the calls', [1440, 2560, 390])
      await page.getByLabel('Filter').fill('')
      await page.locator('a.opener').first().click()
      await page.getByRole('complementary', { name: /^Call of/ }).waitFor()
      await checkForms(page, 'a call', [1440, 2560, 390])
    })
  })

  it('shows a call as one row, with its records inside', async () => {
    await withPage({}, {}, async ({ page }) => {
      await page.getByLabel('Filter').fill('outcome:done')
      await page.getByLabel('Filter').press('Enter')
      await page.locator('tr.record .badge').filter({ hasText: 'done' }).first().waitFor()
      await page.locator('a.opener').first().press('Enter')
      const dialog = page.getByRole('complementary', { name: /^Call of/ })
      assert.deepEqual(await dialog.locator('h3 .badge').allInnerTexts(), ['tool_call', 'tool_result'])
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await page.waitForFunction(() => document.activeElement?.matches('a.opener'))
      await page.keyboard.press('ArrowDown')
      await page.waitForFunction(() => document.activeElement?.closest('[data-index="1"]') !== null)
    })
  })

  it('shows the row beside the list, which the arrow keys change and Tab does not; the right arrow key leads into it', async () => {
    await withPage({}, {}, async ({ page }) => {
      const opened = () => page.evaluate(() => new URLSearchParams(location.hash.split('?')[1]).get('open'))
      const ids = await page.locator('a.opener').evaluateAll((all) => all.map((one) => one.getAttribute('data-opens')))
      await page.locator('a.opener').first().press('Enter')
      await page.locator('.detail').waitFor()
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('ArrowDown')
      await page.waitForFunction((id) => location.hash.includes(`open=${id}`), ids[2])
      assert.equal(await page.locator('tr.record:has(.opener[aria-current])').getAttribute('data-index'), '2')
      for (let i = 0; i < 4; i++) await page.keyboard.press('Tab')
      await page.locator(`a.opener[data-opens="${ids[3]}"]`).waitFor()
      await page.waitForFunction(() => document.activeElement?.closest('[data-index="2"]') === null)
      assert.equal(await opened(), ids[2])
      await page.locator(`a.opener[data-opens="${ids[2]}"]`).focus()
      await page.keyboard.press('ArrowRight')
      await page.waitForFunction(() => document.activeElement?.matches('.detail'))
      await page.keyboard.press('Escape')
      await page.locator('.detail').waitFor({ state: 'detached' })
      await page.waitForFunction((id) => document.activeElement?.getAttribute('data-opens') === id, ids[2])
    })
  })

  it('names what is wrong with a filter, keeps the list as it was, and completes with the keyboard', async () => {
    await withPage({}, {}, async ({ page }) => {
      const filter = page.getByRole('combobox', { name: 'Filter' })
      await filter.fill('usr:viewer')
      await filter.press('Enter')
      await page.getByRole('alert').filter({ hasText: 'There is no key “usr”: is it user?' }).waitFor()
      assert.equal(new URL(page.url()).hash, '#/calls')
      await filter.fill('use')
      await filter.press('ArrowDown')
      assert.equal(await page.locator('.filter-box [aria-selected=true]').innerText(), 'user: the user')
      await filter.press('Enter')
      await page.getByRole('option', { name: /^user:viewer/ }).waitFor()
      await filter.pressSequentially('view')
      await filter.press('ArrowDown')
      await filter.press('Enter')
      await page.waitForFunction(() => location.hash === '#/calls?user=viewer')
      await page.getByRole('button', { name: 'Clear', exact: true }).click()
      await page.waitForFunction(() => location.hash === '#/calls')
      assert.equal(await filter.inputValue(), '')
    })
  })

  it('searches a text, keeps the filter in the address, and opens a call from it', async () => {
    await withPage({}, {}, async ({ page, gateway }) => {
      await page.getByLabel('Filter').fill('enoent')
      await page.getByLabel('Filter').press('Enter')
      await page.waitForFunction(() => location.hash === '#/calls?text=enoent')
      await page.waitForFunction(() =>
        [...document.querySelectorAll('tr.record .badge')].every((badge) => badge.textContent === 'failed'),
      )
      const id = await page.locator('a.opener').first().getAttribute('data-opens')
      await page.goto(`${gateway.url}/#/calls?text=nowhere&open=${id}`)
      await page.getByText('No call matches').waitFor()
      await page.locator('.detail h3').first().waitFor()
    })
  })

  it('says how many calls are new, and shows them when asked', async () => {
    await withPage({}, {}, async ({ page, gateway }) => {
      await page.getByText('Live', { exact: true }).last().waitFor()
      const first = await page.locator('a.opener').first().getAttribute('data-opens')
      gateway.record(11)
      const show = page.getByRole('button', { name: '7 new – show' })
      await show.waitFor()
      assert.equal(await page.locator('a.opener').first().getAttribute('data-opens'), first)
      await show.click()
      await page.waitForFunction((old) => document.querySelector('a.opener')?.getAttribute('data-opens') !== old, first)
    })
  })

  it('exports what the filter selects', async () => {
    await withPage({}, {}, async ({ page }) => {
      await page.getByLabel('Filter').fill('outcome:refused')
      await page.getByLabel('Filter').press('Enter')
      await page.waitForFunction(() => location.hash.includes('outcome=refused'))
      const coming = page.waitForEvent('download')
      await page.getByRole('link', { name: 'CSV' }).click()
      const lines = readFileSync(await (await coming).path(), 'utf8')
        .trim()
        .split('\r\n')
      assert.equal(lines[0]?.split(',')[2], 'outcome')
      assert.ok(lines.length > 10 && lines.slice(1).every((line) => line.split(',')[2] === 'refused'))
    })
  })

  it('shows 100,000 records, and renders the calls near the screen', async (t) => {
    await withPage({ recordCount: 100_000 }, {}, async ({ page }) => {
      await page.getByText('200 newest calls, more below').waitFor()
      for (let i = 0; i < 5; i++) {
        const shown = await page.locator('.feed-bar .dim').innerText()
        await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
        await page.waitForFunction((text) => document.querySelector('.feed-bar .dim')?.textContent !== text, shown)
      }
      assert.ok((await page.locator('tr.record').count()) < MAX_RENDERED)
      t.diagnostic(`${await page.locator('.feed-bar .dim').innerText()} after scrolling`)
    })
  })

  const withPage = (
    gateway: Partial<FakeOptions>,
    browser: Parameters<Stage['open']>[0],
    work: (opened: OpenedPage) => Promise<void>,
  ) => withFakePage(stage, { address: 'calls', ready: 'tr.record', gateway, browser }, work)
})
