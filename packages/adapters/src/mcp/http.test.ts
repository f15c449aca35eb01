import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { Client, type McpSubscription, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, inputRequired, Server, type ServerContext } from '@modelcontextprotocol/server'
import { type Caller, createGate, defineTool, type Gate } from '@toolgate/core'
import { askModern, authOf, INFO, listen, post, toCaller, WAYS, withAuth } from '../testing/mcp-ways.ts'
import { until } from '../testing/until.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function createWorld() {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: ['search', 'delete_all'].map((name) => defineTool({ name, execute: witness.body(name) })),
    policy: ADMINS_DELETE,
    audit,
  })
  return { witness, audit, gate }
}

async function serveV2(gate: Gate, { bus = false, listTtlMs }: { bus?: boolean; listTtlMs?: number } = {}) {
  const cacheHints = { 'tools/list': { ttlMs: 60_000, cacheScope: 'public' } } as const
  const serve = guard(gate, {
    server: () => new Server(INFO, { cacheHints }),
    caller: toCaller,
    watchEveryMs: 20,
    listTtlMs,
  })
  const handler = createMcpHandler(serve, bus ? { bus: serve.bus } : {})
  const http = await listen(
    (request, response) => void toNodeHandler(handler)(withAuth(request) as never, response as never),
  )
  closing.push(http.close, () => handler.close())
  return { url: http.url, handler }
}

async function connect(url: string, caller: Caller): Promise<Client> {
  const client = new Client(INFO, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: authOf(caller) } }))
  closing.push(() => client.close())
  return client
}

describe('guard: MCP 2026-07-28 over HTTP', () => {
  it('marks lists as private, even if the server was made with another scope', async () => {
    for (const [listTtlMs, expected] of [
      [undefined, 0],
      [5000, 5000],
    ] as const) {
      const { url } = await serveV2(createWorld().gate, listTtlMs === undefined ? {} : { listTtlMs })
      const { result } = (await (await askModern(url, VIEWER, 'tools/list', {})).json()) as {
        result: Record<string, unknown>
      }
      assert.equal(result['cacheScope'], 'private')
      assert.equal(result['ttlMs'], expected)
      assert.equal(result['resultType'], 'complete')
    }
  })

  it('answers a hidden tool and an unknown one with the same bytes', async () => {
    const { url } = await serveV2(createWorld().gate)
    const answer = async (name: string) => {
      const response = await askModern(url, VIEWER, 'tools/call', { name, arguments: {} }, name)
      const headers = [...response.headers].filter(([header]) => header !== 'date')
      return [response.status, headers, (await response.text()).replaceAll(name, 'NAME')]
    }
    assert.deepEqual(await answer('delete_all'), await answer('delete_alx'))
    assert.deepEqual(await answer('delete_all'), await answer('__proto____'))
  })

  it('records invalid calls, and answers them with an error', async () => {
    const { gate, audit, witness } = createWorld()
    const { url } = await serveV2(gate)
    for (const [params, problem] of [
      [{ name: 'search', arguments: [1] }, 'params.arguments must be an object.'],
      [{ name: 'search', arguments: 'x' }, 'params.arguments must be an object.'],
    ] as const) {
      const { error } = (await (await askModern(url, VIEWER, 'tools/call', params, 'search')).json()) as {
        error: object
      }
      assert.deepEqual(error, { code: -32_602, message: problem })
    }
    const listed = (await (await askModern(url, VIEWER, 'tools/list', { cursor: 'x' })).json()) as {
      error: { code: number }
    }
    assert.equal(listed.error.code, -32_602)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(
      audit.attempts().map((attempt) => attempt.split(' ').slice(0, 2).join(' ')),
      ['search tool_blocked', 'search tool_blocked'],
    )
  })

  it('lets in only callers that the host has authenticated', async () => {
    const { gate, audit, witness } = createWorld()
    const { url } = await serveV2(gate)
    for (const name of ['search', 'delete_all', 'nothing']) {
      const response = await askModern(url, undefined, 'tools/call', { name, arguments: {} }, name)
      const { error } = (await response.json()) as { error: object }
      assert.deepEqual(error, { code: -32_603, message: 'The caller is not known.' })
    }
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.attempts().length, 3)
  })

  it('passes on what a tool asks its client for: a sample and the roots', async () => {
    const ask = defineTool({
      name: 'ask',
      execute: (_input: object, { context }) => {
        const { inputResponses } = (context as ServerContext).mcpReq
        if (inputResponses) return { content: [{ type: 'text', text: JSON.stringify(inputResponses) }] }
        const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hello?' } }]
        return inputRequired({
          inputRequests: {
            sampled: inputRequired.createMessage({ messages, maxTokens: 5 }),
            roots: inputRequired.listRoots(),
          },
        })
      },
    })
    const audit = createTestAudit()
    const { url } = await serveV2(createGate({ tools: [ask], policy: { allow: ['*'] }, audit }))
    const client = new Client(INFO, {
      versionNegotiation: { mode: 'auto' },
      capabilities: { sampling: {}, roots: {} },
    })
    client.setRequestHandler('sampling/createMessage', () => ({
      role: 'assistant' as const,
      model: 'm',
      content: { type: 'text' as const, text: 'sampled' },
    }))
    client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///workspace' }] }))
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: authOf(VIEWER) } }))
    closing.push(() => client.close())
    const { content } = await client.callTool({ name: 'ask', arguments: {} })
    assert.match(JSON.stringify(content), /sampled.*workspace/)
  })

  it('does not declare listChanged if it cannot notify', async () => {
    for (const bus of [false, true]) {
      const { url } = await serveV2(createWorld().gate, { bus })
      const client = await connect(url, VIEWER)
      assert.deepEqual(client.getServerCapabilities()?.tools, { listChanged: bus })
    }
  })

  it('notifies the streams of callers whose list changed, and no others', async () => {
    const { gate } = createWorld()
    const { url, handler } = await serveV2(gate, { bus: true })
    const heard = { viewer: 0, admin: 0, updates: 0 }
    const follow = async (who: 'viewer' | 'admin', caller: Caller): Promise<McpSubscription> => {
      const client = await connect(url, caller)
      client.setNotificationHandler('notifications/tools/list_changed', () => void heard[who]++)
      client.setNotificationHandler('notifications/prompts/list_changed', () => void heard.updates++)
      return client.listen({ toolsListChanged: true, promptsListChanged: true })
    }
    // Concurrently, so that a mix-up of subscribers would show.
    const streams = await Promise.all(
      Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? follow('viewer', VIEWER) : follow('admin', ADMIN))),
    )
    const first = await connect(url, ADMIN)
    await first.listTools()
    await new Promise((resolve) => setTimeout(resolve, 100))
    gate.setPolicy({ deny: ['delete_all'] })
    await until(() => heard.admin === 3)
    handler.notify.toolsChanged()
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(heard, { viewer: 0, admin: 3, updates: 0 })
    gate.setPolicy({ deny: ['search', 'delete_all'] })
    await until(() => heard.admin === 6 && heard.viewer === 3)
    for (const stream of streams) await stream.close()
  })
})

describe('guard: JSON-RPC batches of revisions that have them', () => {
  for (const name of ['SDK v1 over HTTP, with sessions', 'SDK v2 over HTTP, a client of before'])
    it(`go through the gate one by one, ${name}`, async () => {
      const { gate, audit, witness } = createWorld()
      const open = await WAYS.find((way) => way.name === name)?.open(gate)
      assert.ok(open?.url)
      closing.push(open.close)
      const headers: Record<string, string> = { ...authOf(VIEWER), 'mcp-protocol-version': '2025-03-26' }
      const init = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: INFO }
      const begun = await post(open.url, { jsonrpc: '2.0', id: 1, method: 'initialize', params: init }, headers)
      await begun.text()
      const session = begun.headers.get('mcp-session-id')
      if (session !== null) headers['mcp-session-id'] = session
      const call = (id: number, tool: string) => ({
        jsonrpc: '2.0',
        id,
        method: 'tools/call',
        params: { name: tool, arguments: {} },
      })
      await (await post(open.url, [call(2, 'delete_all'), call(3, 'search'), call(4, 'delete_all')], headers)).text()
      assert.deepEqual(witness.ran, ['search'])
      assert.deepEqual(audit.attempts().toSorted(), [
        'delete_all tool_blocked policy_denied',
        'delete_all tool_blocked policy_denied',
        'search tool_call',
        'search tool_result',
      ])
    })
})

describe('guard: a session that another caller uses', () => {
  it('lists and runs what each request’s caller may', async () => {
    const { gate, witness } = createWorld()
    const open = await WAYS.find(({ name }) => name === 'SDK v1 over HTTP, with sessions')?.open(gate)
    assert.ok(open?.url)
    closing.push(open.close)
    const init = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: INFO }
    const begun = await post(open.url, { jsonrpc: '2.0', id: 1, method: 'initialize', params: init }, authOf(ADMIN))
    await begun.text()
    const session = begun.headers.get('mcp-session-id') as string
    const ask = async (caller: Caller) =>
      (
        await post(
          open.url as string,
          { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'delete_all', arguments: {} } },
          { ...authOf(caller), 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
        )
      ).text()
    assert.match(await ask(VIEWER), /Tool \\"delete_all\\" is not available/)
    assert.match(await ask(ADMIN), /delete_all done/)
    assert.deepEqual(witness.ran, ['delete_all'])
  })
})
