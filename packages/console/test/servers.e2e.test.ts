import assert from 'node:assert/strict'
import { join } from 'node:path'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { AgentCallBody, AuditBody } from '../../gateway/src/model/rows.ts'
import type { RunningGateway } from '../../gateway/src/index.ts'
import { send } from '../../../tests/support/http.ts'
import { callerConfig, CALLERS, KEYS } from '../../../tests/support/keys.ts'
import { nodeServer } from '../../../tests/support/servers.ts'
import { checkForms, enter } from './browser.ts'
import { keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

const SERVER = join(import.meta.dirname, '../../../tests/support/reload-server.js')

describeConsole('servers in the console', (stage) => {
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    gateway = await keepGateway(stage, CONFIG)
    ;({ page } = await stage.open())
  })

  const ask = async <Body>(path: string, key: string, body?: object): Promise<Body> => {
    const answer = await send(`${gateway.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return answer.json() as Body
  }
  const call = (tool: string, input: object = {}) =>
    ask<AgentCallBody>('/api/call', KEYS.viewer, { tool: `proc:${tool}`, input })
  const rowOf = (name: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) })
  const details = (name: string) => page.getByRole('region', { name: `Server ${name}` })

  it('restarts a server with the keyboard alone: its process is another one, its calls end, and the audit says who', async () => {
    const first = await call('pid')
    const running = call('wait', { file: '/no/such/file' })
    await openAs(KEYS.console)
    await rowOf('proc').getByRole('link', { name: 'proc' }).focus()
    await page.keyboard.press('Enter')
    await details('proc').getByRole('button', { name: 'Restart…' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Restart proc' })
    await dialog.getByText('Its running calls end with an error.').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).focus()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'hidden' })
    await details('proc').getByRole('button', { name: 'Restart…' }).click()
    await dialog.getByRole('button', { name: 'Restart now' }).click()
    await dialog.waitFor({ state: 'hidden' })
    assert.equal((await running).status, 'failed')
    const cells = rowOf('proc').filter({ hasText: 'ready' }).getByRole('cell')
    await cells.filter({ hasText: /^1$/ }).first().waitFor()
    const second = await call('pid')
    assert.deepEqual([first.status, second.status], ['done', 'done'])
    assert.notDeepEqual(second, { ...first, callId: second.callId })
    const { records } = await ask<AuditBody>('/api/audit?event=config_changed', KEYS.console)
    assert.deepEqual(
      records.map(({ reason, detail, user_id }) => [reason, detail, user_id]),
      [['server_restarted', 'proc', 'owner']],
    )
    await details('proc').getByText('is restarted by a person').waitFor()
  })

  it('restarts a server that waits for its next start, and shows why it is down', async () => {
    await openAs(KEYS.console)
    const row = rowOf('broken')
    await row.getByText(/Exited with code 3/i).waitFor()
    await row.getByRole('link', { name: 'broken' }).click()
    await details('broken').getByText('no such thing').first().waitFor()
    await details('broken').getByRole('button', { name: 'Restart…' }).click()
    await page.getByRole('button', { name: 'Restart now' }).click()
    await details('broken').getByText('is restarted by a person').waitFor()
    await details('broken').getByRole('button', { name: 'Halt broken…' }).click()
    assert.equal(await page.getByLabel('Tools', { exact: true }).last().inputValue(), 'broken:*')
  })

  it('shows who has an instance, and their lines', async () => {
    await ask('/api/call', KEYS.viewer, { tool: 'own:echo', input: {} })
    await openAs(KEYS.console, 'own')
    await details('own').getByRole('heading', { name: '1 user with an instance' }).waitFor()
    await details('own').getByText('viewer: idle').waitFor()
  })

  it('has no logs and no restart for a person without the role, nor for one of a tenant', async () => {
    for (const key of ['demo-looker', 'demo-tina']) {
      const refused = await ask<{ error: { code: string } }>('/api/servers/proc/restart', key, {})
      assert.equal(refused.error.code, 'restart_forbidden')
    }
    const unknown = await ask<{ error: { message: string } }>('/api/servers/prok/restart', KEYS.console, {})
    assert.equal(unknown.error.message, 'No server is named "prok". Did you mean "proc"?')
    await openAs('demo-looker', 'proc')
    await details('proc').getByText('The log takes the role operator or approver').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Restart…' }).count(), 0)
  })

  it('has no accessibility fault and no sideways scroll, light and dark, wide and narrow', async () => {
    await openAs(KEYS.console, 'broken')
    await details('broken').getByText('no such thing').first().waitFor()
    await checkForms(page, 'the servers')
    await details('broken').getByRole('button', { name: 'Restart…' }).click()
    await checkForms(page, 'the question before a restart', [1440])
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 390, height: 844 })
    await details('broken').getByRole('button', { name: 'Restart…' }).click()
    await checkForms(page, 'the question before a restart', [390])
  })

  async function openAs(key: string, server = ''): Promise<void> {
    await enter(page, `${gateway.url}/#/servers${server === '' ? '' : `?server=${server}`}`, key)
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor()
  }
})

const CONFIG = {
  servers: [
    nodeServer('proc', [SERVER]),
    nodeServer('own', [SERVER], { per: 'user' }),
    nodeServer('broken', ['-e', "console.error('no such thing'); process.exit(3)"]),
  ],
  callers: [
    ...CALLERS,
    callerConfig('demo-looker', { user: 'looker' }, 'console'),
    callerConfig('demo-tina', { user: 'tina', tenant: 'acme', roles: ['operator'] }, 'console'),
  ],
}
