import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import { type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { send } from '../../../tests/support/http.ts'
import { CALLERS, KEYS } from '../../../tests/support/keys.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { toMessage } from '../../../tests/support/rpc.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { logIn } from './browser.ts'
import { describeConsole } from './suite.ts'

describeConsole('what a decision depends on, in the console', (stage) => {
  let upstream: RecordingServer
  let gateway: RunningGateway
  let page: Page
  beforeEach(async () => {
    const inputSchema = { type: 'object', properties: { amount: { type: 'number' } } }
    upstream = await stage.keep(startRecordingServer([{ name: 'look' }, { name: 'pay', inputSchema }]))
    gateway = await stage.keep(start())
    ;({ page } = await stage.open())
  })

  it('is in the row of the tool and on its page, with the rule and an input that shows it', async () => {
    await open('#/tools?as=viewer')
    const row = page.locator('.tool').filter({ hasText: 'pay' })
    await row.getByText('depends on the input', { exact: true }).waitFor()
    assert.equal(await page.locator('.tool').filter({ hasText: 'look' }).getByText('depends on').count(), 0)
    await picture('tools')
    await row.getByRole('link').first().click()
    const depends = page.getByRole('list', { name: 'What it depends on' })
    await depends.getByText(/denies up:pay, where input\.amount > 100/).waitFor()
    await depends.getByText('{"amount":101}').waitFor()
    assert.equal(await page.getByText('No rule denies it').count(), 0)
    await picture('tool')
  })

  it('is a limit that is used up, until when, and in the matrix how many tools depend on the call', async () => {
    await call('up__look', {})
    await open('#/tools?as=viewer')
    const row = page.locator('.tool').filter({ hasText: 'look' })
    await row.getByText('not now', { exact: true }).waitFor()
    await row.getByRole('link').first().click()
    await page.getByText(/The limit up:look:1\/60 is used up/).waitFor()
    await page.getByText(/free again in/).waitFor()
    await page.goto(`${gateway.url}/#/people?view=matrix`)
    await page.getByText('1 depends', { exact: true }).first().waitFor()
    await picture('matrix')
  })

  async function picture(name: string): Promise<void> {
    const folder = process.env['TOOLGATE_PICTURES']
    if (folder !== undefined) await page.screenshot({ path: `${folder}/depends-${name}.png` })
  }

  async function start(): Promise<RunningGateway> {
    const started = await startGateway(
      {
        file: '/test/toolgate.yaml',
        listen: { host: '127.0.0.1', port: 0 },
        servers: [httpServer('up', upstream.url)],
        callers: CALLERS,
        groups: [],
        policy: [{ name: 'payments', allow: ['*'], deny: [{ match: 'up:pay', input: 'input.amount > 100' }] }],
        limits: ['up:look:1/60'],
        audit: { store: 'memory', mode: 'batched' },
      },
      { consoleDir: stage.consoleDir },
    )
    await started.ready
    return started
  }

  async function call(name: string, args: object): Promise<void> {
    const message = toMessage('2026-07-28', 'tools/call', { name, arguments: args })
    await send(`${gateway.url}/mcp`, {
      headers: { ...message.headers, authorization: `Bearer ${KEYS.viewer}` },
      body: JSON.stringify(message.body),
    })
  }

  async function open(hash: string): Promise<void> {
    await page.goto(`${gateway.url}/${hash}`)
    await logIn(page)
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  }
})
