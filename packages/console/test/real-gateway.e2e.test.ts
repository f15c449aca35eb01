import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { beforeEach, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { RunningGateway } from '../../gateway/src/index.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { enter, logIn, press } from './browser.ts'
import { callAsViewer, keepGateway } from './real-gateway.ts'
import { describeConsole } from './suite.ts'

describeConsole('the console of a real gateway', (stage) => {
  let upstream: RecordingServer
  let gateway: RunningGateway
  let page: Page
  let watched: number
  beforeEach(async () => {
    upstream = await stage.keep(startRecordingServer([{ name: 'look' }, { name: 'pay' }]))
    watched = await freePort()
    gateway = await start()
    ;({ page } = await stage.open())
  })

  it('changes a badge when the port of a group opens, and back when it closes', async () => {
    await open('#/tools?as=viewer')
    const group = page.locator('.section').filter({ has: page.getByRole('button', { name: 'Web pages', exact: true }) })
    await group.getByText('unavailable', { exact: true }).waitFor()
    await group.getByText(`Nothing listens on 127.0.0.1:${watched}`).waitFor()
    await group.getByText('Start the browser.').waitFor()
    await page.getByText('Live', { exact: true }).last().waitFor()
    const listener = await listen(watched)
    await group.getByText('available', { exact: true }).waitFor()
    await page.locator('.summary').filter({ hasText: 'viewer sees 2 of 2 tools.' }).waitFor()
    await close(listener)
    await group.getByText('unavailable', { exact: true }).waitFor()
    await page.locator('.summary').filter({ hasText: 'viewer sees 1 of 2 tools.' }).waitFor()
  })

  it('shows a call from its approval to its end: requested, approved, run, done', async () => {
    await open('#/approvals')
    await page.getByText('No call is waiting').waitFor()
    const input = { amount: 12, note: 'for \u202Eevar' }
    assert.match(await call('up__pay', input), /Waiting for approval/)
    const card = page.locator('.detail').filter({ has: page.getByRole('heading', { name: 'up:pay' }) })
    await card.getByText('"note": "for U+202Eevar"').waitFor()
    assert.equal(upstream.calls('pay').length, 0)
    await press(card.getByRole('button', { name: 'Approve up:pay' }))
    await card.getByText('The call can run once.').waitFor()
    assert.doesNotMatch(await call('up__pay', input), /Waiting/)
    assert.deepEqual(
      upstream.calls('pay').map(({ params }) => params['arguments']),
      [input],
    )
    await card.getByText('The call has run.').waitFor()
    await page.getByRole('link', { name: 'History' }).click()
    await page.locator('.decided').getByText('approved, used').last().waitFor()
    await page.getByRole('link', { name: 'Live' }).click()
    const row = page.getByRole('row').filter({ hasText: 'tool_result' }).filter({ hasText: 'up:pay' })
    await row.getByRole('link').click()
    await page.locator('.detail').getByRole('listitem').filter({ hasText: 'tool_call' }).first().waitFor()
  })

  it('reconnects after a restart of the gateway, with a new login', async () => {
    await open('#/live')
    await page.getByRole('heading', { name: 'Live', level: 1 }).waitFor()
    const { port } = new URL(gateway.url)
    await gateway.close()
    await page.getByText(/^Not connected\. This page is from/).waitFor()
    gateway = await start(Number(port))
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    await logIn(page)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await call('up__pay', { amount: 1 })
    await page.getByRole('row').filter({ hasText: 'tool_approval_required' }).first().waitFor()
  })

  function start(port = 0): Promise<RunningGateway> {
    const web = {
      name: 'web',
      title: 'Web pages',
      tools: ['up:look'],
      visibility: 'conditional',
      dependsOn: [],
      availableWhen: [{ tcp: { host: '127.0.0.1', port: watched } }],
      suggestion: 'Start the browser.',
    } as const
    return keepGateway(
      stage,
      {
        listen: { host: '127.0.0.1', port },
        servers: [httpServer('up', upstream.url)],
        groups: [web],
        policy: [{ ask: ['up:pay'] }],
      },
      { probeEveryMs: 50 },
    )
  }

  function call(name: string, args: object): Promise<string> {
    return callAsViewer(gateway, name, args)
  }

  async function open(hash: string): Promise<void> {
    await enter(page, `${gateway.url}/${hash}`)
    await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  }
})

function listen(port: number): Promise<Server> {
  const server = createServer((socket) => socket.end())
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)))
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

async function freePort(): Promise<number> {
  const server = await listen(0)
  const { port } = server.address() as { port: number }
  await close(server)
  return port
}
