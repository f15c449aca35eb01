import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Page } from 'playwright-core'
import { checkForms, checkPage, enter } from './browser.ts'
import { type FakeGateway, startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('what a run has done', (stage) => {
  it('is on the card of an approval', async () => {
    const page = await open('approvals')
    await page.getByRole('link', { name: 'memory:delete_entities' }).click()
    const card = page.locator('.detail .approval')
    const trail = card.locator('.trail')
    await trail.waitFor()
    const lines = await trail.locator(':scope > div').allInnerTexts()
    const read = lines.map((line) => line.replaceAll(/\s+/g, ' ').replace(/\d+ \w+ ago/, 'AGO'))
    assert.match(read[0] ?? '', /^Has read untrusted web:fetch/)
    assert.match(read[1] ?? '', /^Sends to to eve@evil.example.*U\+202E.* from untrusted output$/)
    assert.match(read[2] ?? '', /^Sends to cc ann@acme.example the user named it$/)
    await card.getByText('The run’s timeline').click()
    await card.locator('.timeline li').filter({ hasText: 'now untrusted' }).waitFor()
    await card.getByText('The run is private, untrusted.').waitFor()
    await checkForms(page, 'the trail on a card')
  })

  it('is on the timeline of a run, with its labels rising', async () => {
    const page = await open('live?tool=mail:send')
    // From the row of a call, with the keyboard alone.
    const row = page.locator('[data-opens]').first()
    await row.waitFor()
    await row.focus()
    await page.keyboard.press('Enter')
    const steps = page.locator('.timeline li')
    await steps.nth(3).waitFor()
    const texts = (await steps.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
    assert.match(texts[0] ?? '', /the run run-7 run_started/)
    assert.match(texts[1] ?? '', /crm:find tool_result now private/)
    assert.match(texts[2] ?? '', /web:fetch tool_result now untrusted .*evil.example/)
    assert.match(texts[3] ?? '', /mail:send tool_blocked to eve.*U\+202E.* is untrusted$/)
    assert.equal(await steps.nth(3).getAttribute('aria-current'), 'true')
    await page.getByText('The run is private, untrusted.').waitFor()
    await checkForms(page, 'the timeline of a run')
    await steps.nth(2).getByRole('link').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /^Record / }).waitFor()
    await page.locator('.timeline li[aria-current]').filter({ hasText: 'web:fetch' }).waitFor()
  })

  it('is in the drawer of a call, with its record marked', async () => {
    const page = await open('calls?run=run-7&open=run-2')
    const current = page.locator('.detail .timeline li[aria-current]')
    await current.filter({ hasText: 'web:fetch' }).waitFor()
    await checkPage(page, 'the drawer of a call')
  })

  it('shows what is left of budgets', async () => {
    const holder = { tenant: 'acme', user: 'vera' }
    const budget = { rule: 'pay:*', limit: '50000/86400', holder, max: 50_000, used: 45_000, remaining: 5000 }
    const page = await open('people?view=matrix', [{ ...budget, resetMs: 3_600_000 }])
    const row = page.locator('.budgets tbody tr')
    await row.waitFor()
    const text = (await row.innerText()).replaceAll(/\s+/g, ' ')
    for (const part of ['tenant acme, user vera', 'pay:*', '45,000 of 50,000', '5,000'])
      assert.ok(text.includes(part), text)
    await checkForms(page, 'budgets')
  })

  async function open(address: string, budgets: Parameters<FakeGateway['setBudgets']>[0] = []): Promise<Page> {
    const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
    gateway.recordRun()
    gateway.setBudgets(budgets)
    const { page } = await stage.open()
    await enter(page, `${gateway.url}/#/${address}`)
    return page
  }
})
