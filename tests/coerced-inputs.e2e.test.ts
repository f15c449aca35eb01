import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { AgentCallBody, ApprovalsBody, AuditBody, WhyInputBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { CALLERS, callerConfig, KEYS } from './support/keys.ts'
import { startRawServer } from './support/raw-server.ts'
import { type Era, MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** `inputs` of a server: texts in place of numbers, as models write them, at every door. */

const ERAS = ['2025-11-25', MODERN] as Era[]
const TOOLS = `[{"name":"total","inputSchema":{"type":"object","properties":{"values":{"type":"array","items":{"type":"integer"}}},"required":["values"]}},
  {"name":"pay","inputSchema":{"type":"object","properties":{"amount":{"type":"integer"}}}}]`

let gateway: TestGateway
let server: Awaited<ReturnType<typeof startRawServer>>
/** The arguments of each call, with their digits. */
const seen: string[] = []

before(async () => {
  server = await startRawServer((text) => {
    const { id, method } = JSON.parse(text) as { id?: number; method: string }
    if (id === undefined) return undefined
    const answer = (result: string) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`
    if (method === 'initialize')
      return answer(
        '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}',
      )
    if (method === 'tools/list') return answer(`{"tools":${TOOLS}}`)
    if (method !== 'tools/call') return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`
    seen.push(/"arguments":(\{[^}]*\})/.exec(text)?.[1] ?? '')
    return answer('{"content":[{"type":"text","text":"done"}]}')
  })
  gateway = await startTestGateway({
    servers: [
      httpServer('loose', server.url, { inputs: 'coerced' }),
      httpServer('open', server.url, { inputs: 'server' }),
      httpServer('strict', server.url),
    ],
    callers: [...CALLERS, callerConfig('demo-own', { user: 'owner' })],
    policy: [
      {
        allow: ['*'],
        deny: [{ match: '*:pay', input: 'input.amount > 1000' }],
        ask: [{ match: 'loose:pay', input: 'input.amount > 100' }],
      },
    ],
  })
})

after(async () => {
  await gateway?.close()
  await server?.close()
})

async function sentFor(run: () => Promise<unknown>): Promise<readonly string[]> {
  const from = seen.length
  await run()
  return seen.slice(from)
}

for (const era of ERAS)
  describe(`a call with texts in place of numbers, in ${era}`, () => {
    const call = (name: string, args: object) => gateway.call('admin', era, name, args)

    it('reaches a server with `inputs: coerced` as its schema wants it', async () => {
      assert.deepEqual(await sentFor(() => call('loose__total', { values: ['1', '1915883588174806058'] })), [
        '{"values":[1,1915883588174806058]}',
      ])
      assert.deepEqual(await sentFor(() => call('loose__total', { values: '["1",2]' })), ['{"values":[1,2]}'])
    })

    it('reaches a server with `inputs: server` as it came, and no other server', async () => {
      assert.deepEqual(await sentFor(() => call('open__total', { values: ['1'] })), ['{"values":["1"]}'])
      assert.deepEqual(await sentFor(() => call('strict__total', { values: ['1'] })), [])
    })

    it('is refused by a rule about the number, whatever the spelling', async () => {
      for (const tool of ['loose__pay', 'open__pay'])
        assert.deepEqual(await sentFor(() => call(tool, { amount: '2000' })), [], tool)
    })
  })

describe('a coerced call', () => {
  it('is approved as it runs, and the audit says that it is coerced', async () => {
    const asked = await sentFor(() => gateway.call('admin', MODERN, 'loose__pay', { amount: '200' }))
    assert.deepEqual(asked, [])
    const { approvals } = (await gateway.api('/api/approvals', { key: KEYS.console })).body as ApprovalsBody
    const waiting = approvals.find(({ tool }) => tool === 'loose:pay')
    assert.deepEqual(waiting?.input, { amount: 200 })
    const headers = { authorization: `Bearer ${KEYS.console}`, 'content-type': 'application/json' }
    await send(`${gateway.url}/api/approvals/${waiting?.id}`, { headers, body: '{"decision":"approve"}' })
    const ran = await sentFor(() => gateway.call('admin', MODERN, 'loose__pay', { amount: '200' }))
    assert.deepEqual(ran, ['{"amount":200}'])
    const { records } = (await gateway.api('/api/audit?tool=loose:pay&limit=20', { key: KEYS.console }))
      .body as AuditBody
    const details = records.filter(({ event }) => event === 'tool_call').map(({ detail }) => detail)
    assert.match(String(details[0]), /^approved by .*; coerced$/)
  })

  it('gets the same answer from /api/why and /api/tool/call', async () => {
    const why = async (tool: string, amount: unknown) =>
      (
        await gateway.api('/api/why', {
          key: KEYS.console,
          method: 'POST',
          body: { tool, as: 'admin', input: { amount } },
        })
      ).body as WhyInputBody
    assert.equal((await why('loose:pay', '2000')).outcome, 'deny')
    assert.equal((await why('loose:pay', '200')).outcome, 'ask')
    assert.equal((await why('loose:pay', '20')).outcome, 'allow')
    assert.equal((await why('strict:pay', '20')).outcome, 'deny')
    const body = { tool: 'loose:pay', as: 'owner', input: { amount: '20' } }
    const ran = await sentFor(async () => {
      const { status } = (await gateway.api('/api/tool/call', { key: KEYS.console, method: 'POST', body }))
        .body as AgentCallBody
      assert.equal(status, 'done')
    })
    assert.deepEqual(ran, ['{"amount":20}'])
  })
})
