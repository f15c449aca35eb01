import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { ErrorBody, GatewayConfig } from '@toolgate/gateway'
import { openTestGateway, type TestGateway, until } from './support/gateway.ts'
import { type HeldServer, startHeldServer } from './support/held-server.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { ERAS, MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { HOSTILE, httpServer, nodeServer } from './support/servers.ts'

/** What clients and people are told while a server has not listed yet. */

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const STARTING = 'Something may be missing, because a server is still starting. List again in a moment.'
const DOWN = 'Something may be missing, because a server is down.'
const policy: GatewayConfig['policy'] = [{ allow: ['*'], deny: [{ match: '*:secret' }, { match: 'prompt:*:*' }] }]

async function start(
  server: Partial<GatewayConfig['servers'][number]> = {},
  given: Partial<GatewayConfig> = {},
  others: GatewayConfig['servers'] = [],
): Promise<{ gateway: TestGateway; held: HeldServer }> {
  const held = await startHeldServer()
  closing.push(held.close)
  const slow = httpServer('slow', held.url, { era: 'legacy', offers: ['tools', 'prompts'], ...server })
  const gateway = await openTestGateway({ servers: [slow, ...others], policy, ...given })
  closing.push(gateway.close)
  await held.asked
  return { gateway, held }
}

const noteOf = ({ result }: RpcAnswer) => result?._meta?.['dev.toolgate/incomplete']

describe('a server that is still starting', () => {
  for (const era of [ERAS[1], MODERN] as const)
    it(`is said in lists and for unknown names, unnamed, until it has listed (${era})`, async () => {
      const { gateway, held } = await start()
      const ask = async (method: string, params?: object) =>
        (await gateway.ask('viewer', era, method, params as never)).json() as RpcAnswer
      assert.equal(noteOf(await ask('tools/list')), STARTING)
      assert.equal(noteOf(await ask('prompts/list')), STARTING)
      const hidden = await gateway.call('viewer', era, 'slow__secret')
      const unknown = await gateway.call('viewer', era, 'slow__sccret')
      assert.equal(textOf(hidden).replaceAll('secret', 'sccret'), textOf(unknown))
      assert.ok(textOf(hidden).endsWith(STARTING), textOf(hidden))
      assert.ok(((await ask('prompts/get', { name: 'slow__ask' })).error?.message ?? '').endsWith(STARTING))
      held.release()
      await gateway.ready
      assert.deepEqual(await gateway.list('viewer', era), ['slow__open'])
      assert.equal(noteOf(await ask('tools/list')), undefined)
      const later = await gateway.call('viewer', era, 'slow__secret')
      assert.ok(!textOf(later).includes('starting'))
      assert.equal(
        textOf(later).replaceAll('secret', 'sccret'),
        textOf(await gateway.call('viewer', era, 'slow__sccret')),
      )
    })

  it('is said by the API to agents and people, who learn its name and why', async () => {
    const { gateway, held } = await start()
    const key = KEYS.viewer
    const list = async () => (await gateway.api('/api/list', { key })).body as { readonly incomplete?: string }
    assert.equal((await list()).incomplete, STARTING)
    for (const path of ['/api/decide', '/api/call']) {
      const said = async (tool: string) => {
        const { body } = await gateway.api(path, { key, method: 'POST', body: { tool } })
        return (body as { readonly text: string }).text.replaceAll(tool, 'TOOL')
      }
      assert.equal(await said('slow:secret'), await said('slow:nothing'))
      assert.ok((await said('slow:secret')).endsWith(STARTING))
    }
    const { body } = await gateway.api('/api/why?tool=slow:open&as=viewer')
    assert.match(
      (body as ErrorBody).error.message,
      /^No tool has the id "slow:open" yet: the server "slow" is still starting\.$/,
    )
    held.release()
    await gateway.ready
    assert.equal((await list()).incomplete, undefined)
    assert.equal((await gateway.api('/api/why?tool=slow:open&as=viewer')).status, 200)
  })

  it('is announced to a client when it has listed', async () => {
    const { gateway, held } = await start()
    const changed = Promise.withResolvers<void>()
    const client = new Client({ name: 'c', version: '1' })
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve())
    const requestInit = { headers: { authorization: `Bearer ${KEYS.viewer}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }) as never)
    closing.push(() => client.close())
    assert.deepEqual((await client.listTools()).tools, [])
    // It opens its stream after the handshake.
    await until(async () => {
      const answer = await send(`${gateway.url}/metrics`, {
        method: 'GET',
        headers: { authorization: `Bearer ${KEYS.console}` },
      })
      return /^toolgate_list_streams 1$/m.test(answer.text)
    })
    held.release()
    await changed.promise
    assert.deepEqual(
      (await client.listTools()).tools.map(({ name }) => name),
      ['slow__open'],
    )
  })

  it('is waited for by lists and calls, where the file says so', async () => {
    const { gateway, held } = await start({ waitForStart: true, startTimeoutMs: 60_000 })
    const listed = gateway.list('viewer', MODERN)
    const called = gateway.call('viewer', MODERN, 'slow__open')
    const seen = gateway.api('/api/list', { key: KEYS.viewer })
    held.release()
    assert.deepEqual(await listed, ['slow__open'])
    assert.equal(textOf(await called), 'done')
    assert.equal(((await seen).body as { readonly items: readonly unknown[] }).items.length, 1)
  })

  it('holds up no call of another server', async () => {
    const { gateway } = await start({ waitForStart: true, startTimeoutMs: 60_000 }, {}, [
      nodeServer('ready', [HOSTILE, 'banner']),
    ])
    await until(() => gateway.servers().some(({ name, status }) => name === 'ready' && status === 'ready'))
    assert.notEqual(textOf(await gateway.call('viewer', MODERN, 'ready__echo', { message: 'at once' })), '')
    assert.equal(gateway.servers().find(({ name }) => name === 'slow')?.status, 'starting')
  })

  it('is waited for no longer than its time limit', async () => {
    const { gateway } = await start({ waitForStart: true, startTimeoutMs: 50 })
    assert.deepEqual(await gateway.list('viewer', MODERN), [])
  })

  it('is said in what search finds', async () => {
    const { gateway, held } = await start({}, { search: { offer: 'always' } })
    const found = async () => textOf(await gateway.call('viewer', MODERN, 'search_tools', { query: 'open' }))
    assert.ok((await found()).endsWith(STARTING), await found())
    held.release()
    await gateway.ready
    assert.ok(!(await found()).includes('starting'))
  })
})

describe('a server whose first start failed', () => {
  it('is said to be down, with the reason for people', async () => {
    const { gateway, held } = await start()
    held.release('fails')
    await until(() => gateway.servers()[0]?.status === 'down')
    assert.equal(noteOf((await gateway.ask('viewer', MODERN, 'tools/list')).json() as RpcAnswer), DOWN)
    assert.ok(textOf(await gateway.call('viewer', MODERN, 'slow__open')).endsWith(DOWN))
    const { body } = await gateway.api('/api/why?tool=slow:open&as=viewer')
    assert.match((body as ErrorBody).error.message, /the server "slow" is down \(.*500.*\)\.$/)
  })
})
