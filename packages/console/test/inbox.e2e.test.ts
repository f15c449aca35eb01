import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Page } from 'playwright-core'
import { checkForms, checkPage, enter, press } from './browser.ts'
import { type FakeGateway, type FakeOptions, startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

const MAX_RENDERED = 60

describeConsole('the inbox of approvals', (stage) => {
  let gateway: FakeGateway
  let page: Page

  it('approves equal requests one by one, each as its own decision', async () => {
    await open()
    for (const [id, run] of [
      ['b1', 'run-1'],
      ['b2', 'run-2'],
      ['b3', 'run-3'],
    ] as const)
      gateway.ask(id, undefined, { inputHash: 'same', run })
    gateway.ask('b4', undefined, { inputHash: 'other' })
    await page.getByRole('button', { name: '4 new requests – show' }).click()
    await page.locator('.request').filter({ hasText: '3 requests' }).locator('.opener').click()
    const card = page.locator('.approval').filter({ hasText: '3 equal requests' })
    await card.locator('.asked-by-all > summary').click()
    assert.deepEqual(await card.locator('.asked-by-all .id').allInnerTexts(), ['run-1', 'run-2', 'run-3'])
    await press(card.getByRole('button', { name: 'Reject only this one' }).nth(1))
    await press(card.getByRole('button', { name: 'Approve all 2 files:move_file' }))
    await card.getByText('approved', { exact: true }).nth(2).waitFor()
    await page.waitForFunction(() => !document.querySelector('.undo'))
    // The button goes as the rejection is sent, which is before it arrives.
    while (gateway.verdicts.length < 3) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual(
      gateway.verdicts.map(({ id, decision }) => [id, decision]),
      [
        ['b1', 'approve'],
        ['b3', 'approve'],
        ['b2', 'reject'],
      ],
    )
    await checkPage(page, 'a group of requests')
  })

  it('undoes a rejection, which nobody was told of', async () => {
    await open()
    const card = page.locator('.approval').first()
    await press(card.getByRole('button', { name: 'Reject files:write_file' }))
    await card.getByText(/The agent learns of it in \d s\./).waitFor()
    await card.getByRole('button', { name: 'Undo the rejection of files:write_file' }).click()
    await page.getByRole('status').getByText('Undone. The request waits again').waitFor()
    await press(card.getByRole('button', { name: 'Approve files:write_file' }))
    await card.getByText('The call can run once.').waitFor()
    await press(card.getByRole('button', { name: 'Revoke the approval of files:write_file' }))
    await card.getByText('The approval was revoked.').waitFor()
    assert.deepEqual(
      gateway.verdicts.map(({ decision }) => decision),
      ['approve', 'revoke'],
    )
    await page.getByRole('link', { name: 'memory:delete_entities' }).click()
    await press(page.getByRole('button', { name: 'Reject memory:delete_entities' }))
    await page.locator('.undo').waitFor()
    await checkPage(page, 'a rejection that can be undone')
  })

  it('sends a rejection at once when the page goes', async () => {
    await open()
    await press(page.getByRole('button', { name: 'Reject files:write_file' }))
    await page.locator('.undo').waitFor()
    await page.goto('about:blank')
    while (gateway.verdicts.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual([gateway.verdicts[0]?.id, gateway.verdicts[0]?.decision], ['a1', 'reject'])
  })

  it('is used with J, K, A, R and U alone', async () => {
    await open()
    const focused = (): Promise<string | undefined> =>
      page.evaluate(() => document.activeElement?.closest('.request')?.querySelector('.opener')?.textContent)
    const waitForFocus = async (tool: string): Promise<void> => {
      await page.waitForFunction(
        (wanted) =>
          document.activeElement?.closest('.request')?.querySelector('.opener')?.textContent === wanted &&
          document.querySelector('.detail h2')?.textContent === wanted,
        tool,
      )
    }
    await page.keyboard.press('a')
    await page.keyboard.press('j')
    await waitForFocus('files:write_file')
    await page.keyboard.press('j')
    await waitForFocus('memory:delete_entities')
    await page.keyboard.press('j')
    assert.equal(await focused(), 'memory:delete_entities')
    await page.keyboard.press('k')
    await waitForFocus('files:write_file')
    await page.locator('.approval .approve[aria-disabled=false]').first().waitFor()
    await page.keyboard.press('r')
    await page.locator('.approval .undo').waitFor()
    await page.keyboard.press('u')
    await page.locator('.approval .undo').waitFor({ state: 'detached' })
    await page.keyboard.press('j')
    await waitForFocus('memory:delete_entities')
    await page.locator('.approval .approve[aria-disabled=false]').waitFor()
    await page.keyboard.press('a')
    await page.getByText('The call can run once.').waitFor()
    assert.deepEqual(
      gateway.verdicts.map(({ id, decision }) => [id, decision]),
      [['a2', 'approve']],
    )
    // In a field they are letters.
    await page.keyboard.press('k')
    await page.keyboard.press('x')
    const reason = page.getByRole('group', { name: 'The selected requests' }).getByLabel('Reason')
    await reason.fill('')
    await reason.press('a')
    assert.equal(await reason.inputValue(), 'a')
    assert.equal(gateway.verdicts.length, 1)
  })

  it('never decides another request than the one that has the focus', async () => {
    await open()
    await page.locator('.approval .approve[aria-disabled=false]').waitFor()
    await page.locator('.request .opener').nth(1).focus()
    assert.equal(await page.locator('.detail h2').innerText(), 'files:write_file')
    await page.keyboard.press('a')
    await page.keyboard.press('r')
    await page.keyboard.press('Enter')
    await page.locator('.detail h2').getByText('memory:delete_entities').waitFor()
    await page.locator('.approval .approve[aria-disabled=false]').waitFor()
    await page.keyboard.press('a')
    await page.getByText('The call can run once.').waitFor()
    assert.deepEqual(
      gateway.verdicts.map(({ id, decision }) => [id, decision]),
      [['a2', 'approve']],
    )
    assert.equal(await page.locator('.undo').count(), 0)
  })

  it('filters by tool, caller, run and tenant, and keeps the filter in the address', async () => {
    await open({ moreApprovals: 40 })
    const filter = page.getByRole('combobox', { name: 'Filter' })
    await filter.fill('user:viewer run:run-105')
    await filter.press('Enter')
    await page.getByText('Waiting 1 of 42').waitFor()
    assert.match(await page.evaluate(() => location.hash), /user=viewer&run=run-105$/)
    await filter.fill('')
    await filter.press('Enter')
    await page.getByText('Waiting 42', { exact: true }).waitFor()
    await page.evaluate(() => location.assign('#/approvals?tool=none'))
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await page.getByText('Waiting 42', { exact: true }).waitFor()
    await filter.fill('tool:files:move_file')
    await filter.press('Enter')
    await page.getByText(/Waiting \d+ of 42/).waitFor()
    gateway.ask('b1', 'acme')
    gateway.ask('b2', undefined, { tool: 'files:edit_file' })
    await page.getByRole('button', { name: '1 new request – show' }).waitFor()
  })

  it('shows a text and its replacement as a difference, and tabs and lines as such', async () => {
    await open({ moreApprovals: 1 })
    const json = page.locator('.approval').first().locator('pre')
    assert.deepEqual(await json.locator('.removed').allTextContents(), ['removed: \tretries: 3,'])
    assert.deepEqual(await json.locator('.added').allTextContents(), [
      'added: \tretries: 5,',
      'added: \tverbose: true,',
    ])
    assert.doesNotMatch(await json.innerText(), /\\n|\\t/)
  })

  it('shows 500 requests, and renders those near the screen', async (t) => {
    await open({ moreApprovals: 500 })
    await page.getByText('Waiting 502').waitFor()
    const readyMs = await page.evaluate(async () => {
      location.hash = '#/tools'
      while (!document.querySelector('.listing-rows')) await new Promise((resolve) => requestAnimationFrame(resolve))
      const started = performance.now()
      location.hash = '#/approvals'
      while (!document.querySelector('.request')) await new Promise((resolve) => requestAnimationFrame(resolve))
      return performance.now() - started
    })
    t.diagnostic(`500 requests on the page after ${Math.round(readyMs)} ms`)
    assert.ok((await page.locator('.request').count()) < MAX_RENDERED)
    await page.keyboard.press('j')
    for (let i = 1; i <= 30; i++) {
      await page.waitForFunction(
        (wanted) => document.activeElement?.closest('[data-index]')?.getAttribute('data-index') === wanted,
        String(i - 1),
      )
      await page.keyboard.press('j')
    }
    await page.waitForFunction(() => document.activeElement?.closest('[data-index="30"]'))
    assert.ok((await page.locator('.request').count()) < MAX_RENDERED)
  })

  it('has 30 rows on a usual screen, with the open request beside them', async () => {
    await open({ moreApprovals: 500 })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByText('Waiting 502').waitFor()
    const whole = await page
      .locator('.request')
      .evaluateAll((all) => all.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length)
    assert.ok(whole >= 30, `${whole} rows`)
    await page.locator('.detail .approve').last().waitFor()
    await checkForms(page, 'an inbox of 500', [1440, 2560])
  })

  it('counts in the title, and notifies once a button has allowed it', async () => {
    await open({}, () => {
      const shown: string[] = []
      class FakeNotification extends EventTarget {
        static permission = 'default'
        static async requestPermission(): Promise<string> {
          return (FakeNotification.permission = 'granted')
        }
        constructor(title: string, { body }: { body: string }) {
          super()
          shown.push(`${title}: ${body}`)
        }
      }
      Object.assign(globalThis, { Notification: FakeNotification, shown })
      document.hasFocus = () => false
    })
    const shown = (): Promise<string[]> => page.evaluate(() => (globalThis as unknown as { shown: string[] }).shown)
    await page.waitForFunction(() => document.title === '(2) Approvals · Toolgate')
    gateway.ask('b1')
    await page.waitForFunction(() => document.title.startsWith('(3)'))
    assert.deepEqual(await shown(), [])
    const button = page.getByRole('button', { name: 'Desktop notifications' })
    await button.click()
    await page.locator('button[aria-pressed=true]').waitFor()
    await page.getByRole('link', { name: 'Tools', exact: true }).click()
    gateway.ask('b2', undefined, { tool: 'files:\u202Eodd', user: 'vera' })
    await page.waitForFunction(() => document.title === '(4) Tools · Toolgate')
    assert.deepEqual(await shown(), ['files:U+202Eodd waits for approval: for vera'])
  })

  async function open(options: Partial<FakeOptions> = {}, init?: () => void): Promise<void> {
    gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir, ...options }))
    ;({ page } = await stage.open({ viewport: { width: 1280, height: 1000 } }))
    if (init) await page.addInitScript(init)
    await enter(page, `${gateway.url}/#/approvals`)
    await page.locator('.request').nth(1).waitFor()
    await page.locator('.approval').waitFor()
    await page.getByText('Live', { exact: true }).last().waitFor()
  }
})
