import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import { checkForms, checkPage, enter, takePicture } from './browser.ts'
import { type FakeGateway, startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('the palette', (stage) => {
  let gateway: FakeGateway
  let page: Page
  beforeEach(async () => {
    gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
    ;({ page } = await stage.open())
    await enter(page, gateway.url)
    await page
      .getByText(/sees \d+ of 16 tools/)
      .first()
      .waitFor()
  })

  const found = () => page.getByRole('listbox', { name: 'Found' }).getByRole('option')
  const field = () => page.getByRole('combobox', { name: 'Go to' })
  const marked = () => page.locator('[role=option][aria-selected=true]').innerText()

  it('opens with Ctrl-K, finds tools, callers and pages, and goes there with the keyboard alone', async () => {
    await page.keyboard.press('Control+k')
    assert.equal(await field().evaluate((element) => element === document.activeElement), true)
    await page.keyboard.type('move_f')
    await found().filter({ hasText: 'move_file' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'move_file' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('admin')
    await found().filter({ hasText: 'admin' }).first().waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('admin sees 12 of 16 tools.').first().waitFor()
    await page.keyboard.press('Control+k')
    const first = await marked()
    await page.keyboard.press('ArrowDown')
    assert.notEqual(await marked(), first)
    await page.keyboard.press('ArrowUp')
    assert.equal(await marked(), first)
    await page.keyboard.press('ArrowUp')
    assert.notEqual(await marked(), first)
    await page.keyboard.type('nothing is called this')
    await page.getByText('Nothing has this name.').waitFor()
    await found().filter({ hasText: 'search all calls' }).waitFor()
    await page.keyboard.press('Enter')
    await field().waitFor({ state: 'hidden' })
    await page.getByText('No call matches').waitFor()
    assert.equal(await page.getByLabel('Filter').inputValue(), 'nothing is called this')
  })

  it('shows the keys with ?, but not while somebody types', async () => {
    await page.getByLabel('Search').focus()
    await page.keyboard.press('?')
    assert.equal(await page.getByLabel('Search').inputValue(), '?')
    await page.getByRole('heading', { level: 1 }).click()
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keys' })
    await help.getByText('next and previous request').waitFor()
    await checkPage(page, 'the help about keys')
    await takePicture(page, 'the keys')
    await page.keyboard.press('Control+k')
    await field().waitFor()
    await page.keyboard.press('Escape')
    await field().waitFor({ state: 'hidden' })
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await page.keyboard.press('Control+k')
    await field().waitFor()
    await page.keyboard.type('file')
    await found().filter({ hasText: 'move_file' }).waitFor()
    await checkForms(page, 'the palette')
  })
})
