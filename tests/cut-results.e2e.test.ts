import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { startRawServer } from './support/raw-server.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Results that are cut, for SDK clients, which reject a result that does not fit its output schema. */

const INFO = { name: 'test', version: '1' }
const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
const row = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'], additionalProperties: false }
const rowsOf = (more: object) => ({
  type: 'object',
  properties: { rows: { type: 'array', items: row, ...more } },
  required: ['rows'],
  additionalProperties: false,
})
const page = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
const ROWS = { rows: Array.from({ length: 3000 }, (_, id) => ({ id })) }
const PAGE = { text: 'word '.repeat(10_000) }
const OUTPUTS = { rows: ROWS, all: ROWS, page: PAGE, list: ROWS.rows } as const
const TOOLS = [
  { name: 'rows', inputSchema: { type: 'object' }, outputSchema: rowsOf({}) },
  { name: 'all', inputSchema: { type: 'object' }, outputSchema: rowsOf({ minItems: 3000 }) },
  { name: 'page', inputSchema: { type: 'object' }, outputSchema: page },
  { name: 'list', inputSchema: { type: 'object' }, outputSchema: { type: 'array', items: row } },
]

function resultOf(method: string, { name }: { readonly name?: keyof typeof OUTPUTS }): object | undefined {
  if (method === 'server/discover') return { supportedVersions: [MODERN], capabilities: { tools: {} } }
  if (method === 'tools/list') return { tools: TOOLS }
  if (method !== 'tools/call' || !name) return undefined
  const structuredContent = OUTPUTS[name]
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}

let gateway: TestGateway
let server: Awaited<ReturnType<typeof startRawServer>>

before(async () => {
  server = await startRawServer((text) => {
    const { id, method, params = {} } = JSON.parse(text) as { id?: number; method: string; params?: object }
    if (id === undefined) return undefined
    const result = resultOf(method, params)
    const error = { code: -32_601, message: 'Method not found' }
    return JSON.stringify({
      jsonrpc: '2.0',
      id,
      ...(result ? { result: { resultType: 'complete', ...result } } : { error }),
    })
  })
  gateway = await startTestGateway({
    servers: [httpServer('s', server.url)],
    calls: { maxOutputChars: 20_000, concurrency: [] },
  })
})

after(async () => {
  await gateway?.close()
  await server?.close()
})

const clients = {
  'SDK 1.x': async () => {
    const client = new ClientV1(INFO)
    await client.connect(new TransportV1(new URL(gateway.mcpUrl), { requestInit }))
    return client as unknown as Client
  },
  'SDK 2.x in MCP 2026-07-28': async () => {
    const client = new Client(INFO, { versionNegotiation: { mode: { pin: MODERN } } })
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
    return client
  },
}

for (const [who, connect] of Object.entries(clients))
  describe(`a result that is cut, for ${who}`, () => {
    let client: Client
    before(async () => {
      client = await connect()
      await client.listTools()
    })
    after(() => client?.close())
    const call = async (name: string) => {
      const result = await client.callTool({ name: `s__${name}`, arguments: {} })
      const texts = (result.content as { readonly text: string }[]).map(({ text }) => text)
      assert.ok(JSON.stringify(result).length < 24_000)
      return { ...result, texts, note: texts.at(-1) ?? '' }
    }

    it('has fewer rows, which fit the schema, and a note', async () => {
      const { structuredContent, note, isError } = await call('rows')
      const { rows } = structuredContent as typeof ROWS
      assert.ok(rows.length > 100 && rows.length < 3000)
      assert.deepEqual(rows, ROWS.rows.slice(0, rows.length))
      assert.equal(note, `[cut: "rows" has the first ${rows.length} of 3000 items]`)
      assert.notEqual(isError, true)
    })

    it('has fewer items of a list', async () => {
      const { structuredContent, note, isError } = await call('list')
      const list = Array.isArray(structuredContent)
        ? structuredContent
        : (structuredContent as { result: unknown[] }).result
      assert.ok(list.length > 100 && list.length < 3000)
      assert.match(note, /the structured content has the first \d+ of 3000 items/)
      assert.notEqual(isError, true)
    })

    for (const name of ['all', 'page'])
      it(`shows the text and a note where ${name} cannot be cut within its schema`, async () => {
        const { structuredContent, texts, note, isError } = await call(name)
        assert.deepEqual([structuredContent, isError], [undefined, true])
        assert.ok((texts[0] ?? '').length > 10_000)
        assert.match(note, /^\[cut: the tool ran\. Its structured content is left out/)
      })
  })

describe('the audit of a result that is cut', () => {
  it('says so, and that the tool did not fail', async () => {
    await gateway.call('admin', MODERN, 's__page')
    const { records } = (await gateway.api('/api/audit?tool=s:page&limit=5', { key: KEYS.console })).body as AuditBody
    const ended = records.find(({ event }) => event === 'tool_result')
    assert.deepEqual([ended?.detail, ended?.reason, ended?.is_error], ['the output was cut', undefined, undefined])
  })
})
