import assert from 'node:assert/strict'
import { it } from 'node:test'
import { checkPage, logIn } from './browser.ts'
import { startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

/** Where pictures of the pages go, for people who look at them. */
const { TOOLGATE_PICTURES: pictures } = process.env

describeConsole('what a run has done', (stage) => {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [390, 1440])
      it(`is on the card of an approval: ${colorScheme}, ${width} wide`, async () => {
        const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
        gateway.recordRun()
        const { page } = await stage.open({ colorScheme, viewport: { width, height: 900 } })
        await page.goto(`${gateway.url}/#/approvals`)
        await logIn(page)
        const card = page.locator('.approval').filter({ hasText: 'memory:delete_entities' })
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
        await checkPage(page, 'approvals')
        if (pictures !== undefined)
          await page.screenshot({ path: `${pictures}/trail-${colorScheme}-${width}.png`, fullPage: true })
      })

  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [390, 1440])
      it(`is on the timeline of a run, with its labels rising: ${colorScheme}, ${width} wide`, async () => {
        const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
        gateway.recordRun()
        const { page } = await stage.open({ colorScheme, viewport: { width, height: 900 } })
        await page.goto(`${gateway.url}/#/live?tool=mail:send`)
        await logIn(page)
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
        await checkPage(page, 'the timeline')
        if (pictures !== undefined) {
          await steps.nth(3).scrollIntoViewIfNeeded()
          await page.screenshot({ path: `${pictures}/timeline-${colorScheme}-${width}.png` })
        }
        await steps.nth(2).getByRole('link').focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: /^Record / }).waitFor()
        await page.locator('.timeline li[aria-current]').filter({ hasText: 'web:fetch' }).waitFor()
      })

  it('is in the drawer of a call, with its record marked', async () => {
    const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
    gateway.recordRun()
    const { page } = await stage.open()
    await page.goto(`${gateway.url}/#/calls?run=run-7&open=run-2`)
    await logIn(page)
    const current = page.getByRole('dialog').locator('.timeline li[aria-current]')
    await current.filter({ hasText: 'web:fetch' }).waitFor()
    await checkPage(page, 'the drawer of a call')
  })

  for (const [colorScheme, width] of [
    ['light', 1440],
    ['dark', 390],
  ] as const)
    it(`shows what is left of budgets: ${colorScheme}, ${width} wide`, async () => {
      const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
      const holder = { tenant: 'acme', user: 'vera' }
      const budget = { rule: 'pay:*', limit: '50000/86400', holder, max: 50_000, used: 45_000, remaining: 5000 }
      gateway.setBudgets([{ ...budget, resetMs: 3_600_000 }])
      const { page } = await stage.open({ colorScheme, viewport: { width, height: 900 } })
      await page.goto(`${gateway.url}/#/people?view=matrix`)
      await logIn(page)
      const row = page.locator('.budgets tbody tr')
      await row.waitFor()
      const text = (await row.innerText()).replaceAll(/\s+/g, ' ')
      for (const part of ['tenant acme, user vera', 'pay:*', '45,000 of 50,000', '5,000'])
        assert.ok(text.includes(part), text)
      await checkPage(page, 'budgets')
      if (pictures !== undefined) {
        await row.scrollIntoViewIfNeeded()
        await page.screenshot({ path: `${pictures}/budgets-${colorScheme}-${width}.png` })
      }
    })
})
