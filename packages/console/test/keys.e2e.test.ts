import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { RunningGateway } from '../../gateway/src/index.ts'
import { send } from '../../../tests/support/http.ts'
import { callerConfig } from '../../../tests/support/keys.ts'
import { checkForms, enter } from './browser.ts'
import { keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('keys in the console', (stage) => {
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    gateway = await keepGateway(stage, CONFIG)
    ;({ page } = await stage.open())
  })

  const statusOf = async (key: string, path = '/api/list') =>
    (await send(`${gateway.url}${path}`, { method: 'GET', headers: { authorization: `Bearer ${key}` } })).status
  const rowOf = (id: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: id }) })

  it('makes a key that is shown once and works at once, and revokes it after asking once more', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Make a key…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Make a key' })
    await dialog.getByLabel('Whose').selectOption('vera of acme, agent')
    await dialog.getByLabel('Valid for').selectOption('a year')
    await dialog.getByLabel('Name').fill('vera-laptop')
    await dialog.getByLabel('desk').check()
    await dialog.getByRole('button', { name: 'Make the key' }).click()
    const key = await dialog.getByLabel('The key', { exact: true }).inputValue()
    assert.match(key, /^tgk_[\w-]{43}$/)
    assert.equal(await statusOf(key, '/api/list?app=desk'), 200)
    await dialog.getByRole('button', { name: 'Done' }).click()
    await dialog.waitFor({ state: 'hidden' })
    const row = rowOf('vera-laptop')
    assert.match(await row.innerText(), /vera-laptop\s+vera of acme\s*agent · viewer\s+desk\s+in 365 days/)
    assert.match(await row.innerText(), /owner\s*(?:just now|[\d.]+ s ago)/)
    assert.equal((await page.content()).includes(key), false)
    await page.getByRole('button', { name: 'Make a key…' }).click()
    assert.equal(await dialog.getByLabel('The key', { exact: true }).count(), 0)
    await page.keyboard.press('Escape')

    await row.getByRole('button', { name: 'Revoke vera-laptop' }).click()
    await row.getByRole('button', { name: 'Keep' }).click()
    assert.equal(await statusOf(key, '/api/list?app=desk'), 200)
    await row.getByRole('button', { name: 'Revoke vera-laptop' }).click()
    await row.getByRole('button', { name: 'Revoke now' }).click()
    await row.waitFor({ state: 'detached' })
    assert.equal(await statusOf(key, '/api/list?app=desk'), 401)
  })

  it('offers console keys for oneself only, and each key of a user whose keys differ', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Make a key…' }).click()
    assert.deepEqual(await page.getByLabel('Whose').locator('option').allTextContents(), [
      'vera of acme, agent',
      'udo, agent like ci (admin)',
      'udo, agent like laptop (viewer)',
      'owner, person',
    ])
    const dialog = page.getByRole('dialog', { name: 'Make a key' })
    await dialog.getByLabel('Whose').selectOption('udo, agent like laptop (viewer)')
    await dialog.getByLabel('Name').fill('ci')
    await dialog.getByRole('button', { name: 'Make the key' }).click()
    await dialog.getByRole('alert').getByText('a key has the id "ci" already').waitFor()
    await dialog.getByLabel('Name').fill('second')
    await dialog.getByRole('button', { name: 'Make the key' }).click()
    const key = await dialog.getByLabel('The key', { exact: true }).inputValue()
    assert.equal(await statusOf(key), 200)
    await dialog.getByRole('button', { name: 'Done' }).click()
    assert.match(await rowOf('second').innerText(), /agent · viewer/)
  })

  it('is no page of people who may not manage keys', async () => {
    await openAs('demo-looker')
    assert.equal(await page.getByRole('link', { name: 'Keys', exact: true }).count(), 0)
    await page.getByRole('alert').getByText('Keys take a person with the role').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Make a key…' }).count(), 0)
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await openAs('demo-console')
    await page.getByRole('button', { name: 'Make a key…' }).click()
    await page.getByLabel('Name').fill('x'.repeat(64))
    await checkForms(page, 'the form of a key')
    await page.getByRole('button', { name: 'Make the key' }).click()
    await page.getByLabel('The key', { exact: true }).waitFor()
    await checkForms(page, 'the key')
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: /^Revoke x/ }).click()
    await checkForms(page, 'the list of keys')
  })

  async function openAs(key: string): Promise<void> {
    await enter(page, `${gateway.url}/#/people?view=keys`, key)
    await page.getByRole('heading', { level: 1, name: 'People and keys' }).waitFor()
  }
})

const CONFIG = {
  callers: [
    callerConfig('demo-vera', { user: 'vera', tenant: 'acme', roles: ['viewer'] }),
    { ...callerConfig('demo-ci', { user: 'udo', roles: ['admin'] }), id: 'ci', expiresAtMs: 1 },
    { ...callerConfig('demo-laptop', { user: 'udo', roles: ['viewer'] }), id: 'laptop' },
    callerConfig('demo-console', { user: 'owner', roles: ['approver'] }, 'console'),
    callerConfig('demo-looker', { user: 'looker', roles: [] }, 'console'),
  ],
  apps: [{ name: 'desk', import: [], tools: ['files:*'], policy: [] }],
}
