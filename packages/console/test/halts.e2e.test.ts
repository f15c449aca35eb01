import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { RunningGateway } from '../../gateway/src/index.ts'
import { callerConfig } from '../../../tests/support/keys.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { checkForms, checkPage, enter } from './browser.ts'
import { keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

const WIDTHS = [1200, 360]
const HOSTILE = '<img src=x onerror="document.title=1">'

describeConsole('halts in the console', (stage) => {
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    gateway = await keepGateway(stage, CONFIG)
    ;({ page } = await stage.open())
  })

  it('halts with the keyboard alone, and returns the focus', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Halt…' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Halt' })
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await page.waitForFunction(() => document.activeElement?.textContent === 'Halt…')
    await page.keyboard.press('Enter')
    await dialog.getByLabel('User').fill('viewer')
    await dialog.getByLabel('Reason').fill('stolen phone')
    await page.keyboard.press('Enter')
    await dialog.getByText('The halt is set, but matches nothing now: there are no tools.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByText('Halted: user viewer').waitFor()
    assert.deepEqual(
      gateway.gate.halts.map(({ target, reason, by }) => [target, reason, by]),
      [[{ user: 'viewer' }, 'stolen phone', 'owner']],
    )
  })

  it('shows each halt with its reason, person and time, and releases it', async () => {
    await gateway.gate.halt({ tool: 'files:*', tenant: 'acme', reason: HOSTILE, by: 'olga' })
    await gateway.gate.halt({ user: 'viewer', reason: 'stolen phone', by: 'olga' })
    await openAs('demo-console')
    await page.getByRole('status').getByText('2 active halts').waitFor()
    const row = page.getByRole('listitem').filter({ hasText: 'user viewer' })
    assert.match(await row.innerText(), /Halted: user viewer\. Stolen phone\.\s+By olga, (just now|[\d.]+ s ago)/)
    await page.getByText(HOSTILE).waitFor()
    await row.getByRole('button', { name: 'Release user viewer' }).click()
    await page.getByRole('status').getByText('1 active halt').waitFor()
    assert.deepEqual(
      gateway.gate.halts.map(({ target }) => target),
      [{ tool: 'files:*', tenant: 'acme' }],
    )
  })

  it('requires a target, and shows why the gateway refuses a halt', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Halt…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Halt' })
    const submit = dialog.getByRole('button', { name: 'Halt now' })
    await submit.click()
    await dialog.getByRole('alert').getByText('Fill in a field, or choose everything.').waitFor()
    await dialog.getByLabel('Everything that I may halt').check()
    assert.equal(await dialog.getByLabel('User').isDisabled(), true)
    await dialog.getByLabel('Everything that I may halt').uncheck()
    await dialog.getByLabel('Tools').fill('group:none')
    await dialog.getByLabel('Reason').fill('r')
    await submit.click()
    await dialog.getByRole('alert').getByText('group:none').waitFor()
    assert.deepEqual(gateway.gate.halts, [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Halt…' }).click()
    assert.equal(await dialog.getByLabel('Tools').inputValue(), '')
  })

  it('says what a halt would stop before it is set', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Halt…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Halt' })
    await dialog.getByLabel('User').fill('viewer')
    await dialog.getByText('This stops nothing now: there are no tools.').waitFor()
    await dialog.getByLabel('Tools').fill('files:')
    await dialog.getByRole('status').getByText('files:').waitFor()
    await dialog.getByLabel('Tools').fill('')
    await dialog.getByLabel('User').fill('')
    await dialog.getByRole('status').and(page.locator(':empty')).waitFor({ state: 'attached' })
    // The palette would take the place of what is filled in here.
    await dialog.getByLabel('User').fill('viewer')
    await page.keyboard.press('Control+k')
    assert.equal(await page.getByRole('combobox', { name: 'Go to' }).count(), 0)
    assert.equal(await dialog.getByLabel('User').inputValue(), 'viewer')
  })

  it('halts an unknown name at once, and shows that it matches nothing, with the nearest names', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Halt…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Halt' })
    await dialog.getByLabel('User').fill('veiwer')
    await dialog.getByLabel('Reason').fill('stolen phone')
    await dialog.getByRole('button', { name: 'Halt now' }).click()
    await dialog.getByText('The halt is set, but matches nothing now').waitFor()
    await checkPage(page, 'a halt of nobody')
    assert.deepEqual(
      gateway.gate.halts.map(({ target }) => target),
      [{ user: 'veiwer' }],
    )
  })

  it('offers the names that the gateway has seen', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Halt…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Halt' })
    await dialog.getByLabel('User').focus()
    await page.locator('datalist option[value="viewer"]').waitFor({ state: 'attached' })
    await dialog.getByLabel('User').fill('own')
    await page
      .locator('datalist:not(:has(option[value="viewer"])) option[value="owner"]')
      .waitFor({ state: 'attached' })
  })

  it('lets a person without the role look, and shows them nothing without halts', async () => {
    await openAs('demo-looker')
    assert.equal(await page.getByRole('region', { name: 'Halts' }).count(), 0)
    await gateway.gate.halt({ all: true, reason: 'fire' })
    await page.getByText('Halted: everything').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Release|^Halt/ }).count(), 0)
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await openAs('demo-console')
    await checkForms(page, 'nothing is halted', WIDTHS)
    await gateway.gate.halt({ tool: `files:${'x'.repeat(200)}`, reason: 'y'.repeat(300), by: 'olga' })
    await page.getByText('1 active halt').waitFor()
    await checkForms(page, 'something is halted', WIDTHS)
    await page.getByRole('button', { name: 'Halt…' }).click()
    await page.getByRole('dialog', { name: 'Halt' }).getByRole('button', { name: 'Halt now' }).click()
    await page.getByRole('alert').getByText('Fill in a field').waitFor()
    await checkForms(page, 'the dialog of a halt', WIDTHS)
  })

  async function openAs(key: string): Promise<void> {
    await enter(page, gateway.url, key)
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  }
})

const CONFIG = {
  // One that is not there: tools may come, and none has.
  servers: [httpServer('files', 'http://127.0.0.1:9/mcp', { startTimeoutMs: 500, callTimeoutMs: 500 })],
  callers: [
    callerConfig('demo-viewer', { user: 'viewer', roles: ['viewer'] }),
    callerConfig('demo-console', { user: 'owner', roles: ['approver'] }, 'console'),
    callerConfig('demo-looker', { user: 'looker', roles: [] }, 'console'),
  ],
}
