import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, beforeEach, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { ApprovalsBody } from '../../gateway/src/model/rows.ts'
import { checkFocus, tabAndPress, tabAndType, tabTo } from './keyboard.ts'
import { type LivelyGateway, PERSON, startLivelyGateway } from './lively-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('with the keyboard alone, a person', (stage) => {
  let lively: LivelyGateway
  let page: Page

  before(async () => {
    lively = await startLivelyGateway(stage.consoleDir)
  })
  after(() => lively?.close())
  beforeEach(async () => {
    ;({ page } = await stage.open({ viewport: { width: 1280, height: 900 } }))
    await page.goto(lively.url)
    await tabAndType(page, page.getByLabel('Console key'), PERSON)
    await page.keyboard.press('Enter')
    await heading('Tools').waitFor()
  })

  const heading = (name: string) => page.getByRole('heading', { level: 1, name })
  const button = (name: string | RegExp, within: Locator | Page = page) =>
    within.getByRole('button', { name, exact: typeof name === 'string' })
  const press = (control: Locator) => tabAndPress(page, control)
  const type = (field: Locator, text: string) => tabAndType(page, field, text)

  it('approves with a note, rejects, undoes and revokes', async () => {
    await goTo('Approvals')
    const rejected = await decided('rejected')
    const focused = page.locator('.detail')
    // The first ones are of the tenant acme, and not theirs to decide.
    while (!/reconcile/.test(await next(focused)));
    await page.keyboard.press('ArrowRight')
    await type(focused.getByLabel('Reason'), 'as every quarter')
    await armed(focused)
    await press(button(/^Approve payments/, focused))
    await focused.getByText('The call can run once.').waitFor()
    await checkFocus(page, 'approving')
    assert.match(await decided('approved'), /as every quarter/)
    await armed(focused, '.revoke button')
    await press(button(/^Revoke/, focused))
    await focused.getByText('The approval was revoked.').waitFor()
    await checkFocus(page, 'revoking')
    assert.match(await next(focused), /equal requests/)
    await page.keyboard.press('ArrowRight')
    await press(focused.locator('.asked-by-all > summary'))
    await armed(focused)
    await press(button('Reject only this one', focused).first())
    await checkFocus(page, 'rejecting one of equal requests')
    await press(button(/^Undo/, focused))
    await checkFocus(page, 'undoing')
    await armed(focused)
    await page.keyboard.press('r')
    await focused.locator('.undo').first().waitFor()
    await page.keyboard.press('u')
    await focused.locator('.undo').first().waitFor({ state: 'detached' })
    assert.equal(await decided('rejected'), rejected)
  })

  it('hears of a new request, and what was read keeps its place', async () => {
    await goTo('Approvals')
    await page.locator('.request').first().waitFor()
    const shown = await page.locator('.request .opener').allInnerTexts()
    await lively.call('demo-bert', 'payments:edit', { path: 'b.txt' })
    await page.locator('[role=status]').getByText('1 new request').waitFor({ state: 'attached' })
    assert.deepEqual(await page.locator('.request .opener').allInnerTexts(), shown)
    await press(button(/^1 new/))
    await button(/^1 new/).waitFor({ state: 'detached' })
    await checkFocus(page, 'showing the new request')
  })

  it('sets a halt and lifts it', async () => {
    await press(button('Halt…').first())
    await page.keyboard.type('guest')
    await page
      .getByRole('dialog')
      .getByText(/^This stops/)
      .waitFor()
    await type(page.getByLabel('Reason'), 'a stolen phone')
    await page.keyboard.press('Enter')
    await page.getByText('Halted: user guest').waitFor()
    await checkFocus(page, 'a halt')
    await press(button('Release user guest'))
    await page.getByText('Halted: user guest').waitFor({ state: 'detached' })
    await checkFocus(page, 'a release')
  })

  it('sees as another caller, and tries a tool with a form, without and with running it', async () => {
    await type(page.getByLabel('See as'), 'vera')
    await page
      .getByRole('option', { name: /^vera \(/ })
      .first()
      .waitFor()
    await page.keyboard.press('Enter')
    await page.locator('.summary').getByText(/^vera/).waitFor()
    await press(page.getByRole('link', { name: 'transfer', exact: true }))
    await press(page.getByRole('link', { name: 'Its page, with the playground' }))
    await heading('payments:transfer').waitFor()
    const field = (name: string) => page.getByLabel(name, { exact: true })
    await type(field('to'), 'ann')
    await type(field('amount'), '7')
    await type(page.getByLabel('currency'), 'CHF')
    const tags = page.getByRole('group', { name: 'tags' })
    await press(tags.getByRole('button', { name: 'Add to tags' }))
    await checkFocus(page, 'adding to a list')
    await type(tags.getByLabel('tags 1'), 'rent')
    await press(tags.getByRole('button', { name: 'Add to tags' }))
    await type(tags.getByLabel('tags 2'), 'late')
    await press(button('Remove tags 2', tags))
    await checkFocus(page, 'removing from a list')
    await type(page.getByRole('group', { name: 'bank' }).getByLabel('iban'), 'CH1')
    await type(page.getByLabel('cover'), '{"pages": 2}')
    await press(button('Dry run'))
    await page.getByText('A call with this input would run. Nothing was run.').waitFor()
    await tabTo(page, button('Call it…'))
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Call the tool' })
    await press(button('Call it now', dialog))
    const result = dialog.getByRole('group', { name: 'The result' })
    assert.match(await result.innerText(), /transfer ran/)
    await checkFocus(page, 'the call')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.waitForFunction(() => document.activeElement?.textContent === 'Call it…')
    const input = {
      to: 'ann',
      amount: 7,
      currency: 'CHF',
      tags: ['rent'],
      bank: { iban: 'CH1' },
      cover: { pages: 2 },
    }
    assert.deepEqual(lively.sent('transfer'), [input])
  })

  it('reads a resource and gets a prompt', async () => {
    for (const [kind, name, fill] of [
      ['resource', 'file:///work/a.txt', undefined],
      ['prompt', 'greet', 'Ann'],
    ] as const) {
      await goTo('Tools')
      await type(page.getByLabel('See as'), 'vera')
      await page
        .getByRole('option', { name: /^vera \(/ })
        .first()
        .waitFor()
      await page.keyboard.press('Enter')
      await type(page.getByLabel('Kind'), kind)
      await press(page.getByRole('link', { name, exact: true }))
      await press(page.getByRole('link', { name: 'Its page, with the playground' }))
      if (fill !== undefined) await type(page.getByLabel('who'), fill)
      await press(button('Call it…'))
      const dialog = page.getByRole('dialog')
      await press(button('Call it now', dialog))
      await dialog.getByRole('group', { name: 'The result' }).waitFor()
      await page.keyboard.press('Escape')
    }
  })

  it('changes the policy: who loses what, which calls, a draft that stays, a download, the file applied', async () => {
    await goTo('Policy')
    await press(button('Edit'))
    const editor = page.locator('textarea.code')
    await checkFocus(page, 'Edit')
    const text = await editor.inputValue()
    const tighter = text.replace(', mode: shadow', '')
    await tabTo(page, editor)
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(tighter)
    await press(button('What would change'))
    const access = page.getByRole('region', { name: 'Who gains and who loses' })
    assert.match(await access.getByRole('row').filter({ hasText: 'guest' }).innerText(), /–\s+payments:balance/)
    await page.getByRole('region', { name: 'Calls that would end otherwise' }).waitFor()
    const [saved] = await Promise.all([page.waitForEvent('download'), press(button('Download'))])
    assert.equal(readFileSync(await saved.path(), 'utf8'), tighter)

    await goTo('Calls')
    await goTo('Policy')
    await page.getByText('You have a draft that is not in force.').waitFor()
    await press(button('Continue the draft'))
    assert.equal(await editor.inputValue(), tighter)

    writeFileSync(lively.file, readFileSync(lively.file, 'utf8').replace(text, tighter))
    await press(button('Check the file'))
    await page.getByText('This would change:').waitFor()
    await press(button('Apply the file'))
    await page.getByText('Applied: revision 2.').waitFor()
    await checkFocus(page, 'applying the file')
    await press(button('Close'))
    await checkFocus(page, 'closing the editor')
    assert.equal(await page.getByText('You have a draft').count(), 0)

    await press(button('Edit'))
    await page.keyboard.insertText('# so far\n')
    await press(button('Discard'))
    await button('Edit').waitFor()
    await checkFocus(page, 'discarding the draft')
  })

  it('finds a call by outcome, time and text, opens it with its run, and exports', async () => {
    await goTo('Calls')
    await type(page.getByLabel('Filter'), 'outcome:waiting')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => !document.querySelector('.records')?.textContent.includes('proc:echo'))
    await type(page.getByLabel('Time'), 'from')
    await type(page.getByLabel('From'), '01012026')
    await type(page.getByLabel('Filter'), 'eve@evil outcome:waiting')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.querySelectorAll('.record').length === 1)
    await checkFocus(page, 'a filter')
    await press(page.locator('.record .opener'))
    const drawer = page.locator('.detail')
    await drawer.locator('.timeline li').nth(1).waitFor()
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
    await page.waitForFunction(() => document.activeElement?.matches('.record .opener'))
    await page.keyboard.press('Home')
    const link = page.getByRole('link', { name: 'CSV' })
    await page.reload()
    const [saved] = await Promise.all([page.waitForEvent('download', { timeout: 60_000 }), press(link)])
    assert.match(readFileSync(await saved.path(), 'utf8'), /payments:transfer/)
  })

  it('makes a key, and revokes it', async () => {
    await goTo('People and keys')
    await press(page.getByRole('link', { name: 'Keys', exact: true }))
    await press(button('Make a key…'))
    const dialog = page.getByRole('dialog', { name: 'Make a key' })
    await type(dialog.getByLabel('Whose'), 'bert')
    await type(dialog.getByLabel('Name'), 'bert-laptop')
    await press(button('Make the key', dialog))
    await dialog.getByLabel('The key', { exact: true }).waitFor()
    await checkFocus(page, 'making a key')
    await press(button('Done', dialog))
    await checkFocus(page, 'closing the dialog')
    await press(button('Revoke bert-laptop'))
    await checkFocus(page, 'Revoke')
    await press(button(/^Revoke now/))
    await page.getByRole('row').filter({ hasText: 'bert-laptop' }).waitFor({ state: 'detached' })
    await checkFocus(page, 'revoking a key')
  })

  it('restarts a server', async () => {
    await goTo('Servers')
    await press(page.getByRole('link', { name: 'proc', exact: true }))
    await press(button('Restart…'))
    await press(button('Restart now'))
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.getByRole('log').getByText('is restarted by a person').waitFor()
    await checkFocus(page, 'a restart')
  })

  it('goes anywhere with Ctrl-K, and reads the keys with ?', async () => {
    await page.keyboard.press('Control+k')
    await page.waitForFunction(() => document.activeElement?.tagName === 'INPUT')
    await page.keyboard.type('balance')
    await page
      .getByRole('option', { name: /payments:balance/ })
      .first()
      .waitFor()
    await page.keyboard.press('Enter')
    await heading('payments:balance').waitFor()
    await checkFocus(page, 'the palette')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  })

  it('keeps the focus while lists are fetched again', async () => {
    for (const [address, ready] of LISTS) {
      await page.goto(`${lively.url}/#/${address}`)
      await page.locator(ready).first().waitFor()
      const last = page.locator(`main :is(${ready}) :is(a, button)`).last()
      await last.focus()
      await page.evaluate(() => Object.assign(globalThis, { before: document.activeElement }))
      const fetched = page.waitForResponse((response) => response.url().includes('/api/halts'))
      const { id } = await lively.gateway.gate.halt({ tool: 'proc:pid', reason: 'for a moment' })
      await lively.call('demo-clara', 'payments:balance')
      await fetched
      await page.getByText('Halted: tool proc:pid').waitFor()
      await lively.api('DELETE', `/api/halts/${id}`)
      await page.getByText('Halted: tool proc:pid').waitFor({ state: 'detached' })
      assert.ok(
        await page.evaluate(() => document.activeElement === (globalThis as { before?: Element }).before),
        `${address} keeps the focus`,
      )
    }
  })

  /** Opens a page by its link in the header. */
  async function goTo(name: string): Promise<void> {
    await press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: new RegExp(`^${name}`) }))
    await heading(name).waitFor()
  }

  /** Goes to the next request with J, and returns its text. */
  async function next(focused: Locator): Promise<string> {
    const at = await page.evaluate(() => document.activeElement?.closest<HTMLElement>('.request')?.dataset['id'])
    await page.keyboard.press('j')
    await page.waitForFunction((old) => {
      const now = document.activeElement?.closest<HTMLElement>('.request')?.dataset['id']
      return now !== undefined && now !== old && document.querySelector<HTMLElement>('.approval')?.dataset['id'] === now
    }, at)
    return focused.innerText()
  }

  async function armed(card: Locator, kind = '.approve'): Promise<void> {
    await card.locator(`${kind}[aria-disabled=false]`).first().waitFor()
  }

  async function decided(status: string): Promise<string> {
    const { approvals } = (await lively.api('GET', `/api/approvals?status=${status}`)) as ApprovalsBody
    return JSON.stringify(approvals)
  }
})

/** Pages whose lists change while a person reads them, and their rows. */
const LISTS = [
  ['tools?as=bert', '.tool'],
  ['live', '.record'],
  ['calls', '.record'],
  ['approvals', '.request'],
  ['servers', 'tbody tr'],
  ['people?view=matrix', '.matrix tbody tr'],
  ['people?view=keys', 'tbody tr'],
  ['overview', 'tbody tr'],
] as const
