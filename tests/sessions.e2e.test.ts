import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS, type Who } from './support/keys.ts'
import { type RpcAnswer, toMessage } from './support/rpc.ts'

/** Sessions of earlier revisions (MCP 2025-11-25, transports, "session management"). */
let gateway: TestGateway
const ERA = '2025-11-25'

before(async () => {
  gateway = await startTestGateway({ search: { offer: 'always' } })
})
after(() => gateway.close())

async function initialize(who: Who): Promise<string> {
  const params = { protocolVersion: ERA, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const { headers } = await gateway.ask(who, ERA, 'initialize', params)
  return headers['mcp-session-id'] as string
}

function ask(who: Who, session: string, method = 'tools/list', params: object = {}) {
  const { headers, body } = toMessage(ERA, method, params as never)
  const sent = { ...headers, authorization: `Bearer ${KEYS[who]}`, 'mcp-session-id': session }
  return send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
}

function bare(who: Who, session: string, method: 'GET' | 'DELETE') {
  const headers = { authorization: `Bearer ${KEYS[who]}`, accept: 'text/event-stream', 'mcp-session-id': session }
  return send(gateway.mcpUrl, { method, headers })
}

const isUnknown = (answer: Awaited<ReturnType<typeof ask>>) => {
  assert.equal(answer.status, 404, answer.text)
  assert.deepEqual((answer.json() as RpcAnswer).error, { code: -32_001, message: 'Session not found.' })
}

describe('a session of an earlier revision', () => {
  it('lasts from initialize to DELETE, and is 404 afterwards', async () => {
    const session = await initialize('viewer')
    assert.equal((await ask('viewer', session)).status, 200)
    assert.equal((await bare('viewer', session, 'DELETE')).status, 200)
    isUnknown(await ask('viewer', session))
    isUnknown(await ask('viewer', session, 'tools/call', { name: 'search_tools', arguments: { query: 'x' } }))
    isUnknown(await bare('viewer', session, 'GET'))
    isUnknown(await bare('viewer', session, 'DELETE'))
  })

  it('is 404 if it is unknown, with the same text for a session of another user', async () => {
    const foreign = await ask('viewer', await initialize('admin'))
    isUnknown(foreign)
    for (const session of [randomUUID(), 's1', 'a b', 'x'.repeat(500), '__proto__']) {
      const answer = await ask('viewer', session)
      isUnknown(answer)
      assert.equal(answer.text, foreign.text)
    }
  })

  it('is always new after initialize, even if that names a session', async () => {
    const { headers, body } = toMessage(ERA, 'initialize', {
      protocolVersion: ERA,
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    } as never)
    const sent = { ...headers, authorization: `Bearer ${KEYS.viewer}`, 'mcp-session-id': 'ended' }
    const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
    assert.equal(answer.status, 200)
    assert.equal((await ask('viewer', answer.headers['mcp-session-id'] as string)).status, 200)
  })

  it('leaves a record of each call in an unknown session, and runs none', async () => {
    await ask('viewer', 's1', 'tools/call', { name: 'search_tools', arguments: { query: 'x' } })
    const { body } = await gateway.api('/api/audit?limit=1')
    const [record] = (body as { records: readonly { event: string; tool: string }[] }).records
    assert.equal(record?.event, 'tool_blocked')
  })

  it('is optional: a client without one is served', async () => {
    const { headers, body } = toMessage(ERA, 'tools/list', {} as never)
    const sent = { ...headers, authorization: `Bearer ${KEYS.viewer}` }
    assert.equal((await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })).status, 200)
  })
})
