import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { createGate, defineTool, type JsonSchema, type Tool } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { ToolLists } from '@toolgate/mcp'
import { createRounds } from '../calls/rounds.ts'
import { LegacyPath } from './legacy.ts'
import { HeldStreams } from './held-streams.ts'
import { createKeepAlive } from './answer-stream.ts'
import { ClientQuestions } from './questions.ts'
import { Sessions } from '../calls/sessions.ts'

/** Serves tools to clients of MCP 2025-11-25. Returns a function that sends a request like such a client. */
async function serve(t: TestContext, tools: readonly Tool[]) {
  const gate = createGate({ tools })
  const clock = { monotonicMs: () => 0, wallMs: () => 0 }
  const path = new LegacyPath({
    gate,
    lists: new ToolLists(gate),
    rounds: createRounds({ gate, clock, state: memoryState({ clock }), publicUrl: undefined, isStopping: () => false }),
    listTtlMs: 1000,
    authenticator: { renewed: (credential) => credential },
    capabilities: () => ({ tools: { listChanged: true } }),
    methods: () => [],
    sessions: new Sessions({ clock }),
    keepAlive: createKeepAlive(),
    held: new HeldStreams({ clock }),
    questions: new ClientQuestions(),
    streams: { notify: () => {} },
    serverInfo: { name: 'test', version: '1' },
  })
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on(
      'end',
      () =>
        void path.handle(
          {
            message: JSON.parse(Buffer.concat(chunks).toString()),
            headers: request.headers,
            credential: { id: 'k', for: 'mcp', caller: { user: 'vera' }, issuer: 'key' },
            session: undefined,
          },
          response,
        ),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await gate.close()
  })
  const { port } = server.address() as AddressInfo
  return async (method: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-11-25',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    const text = await answer.text()
    return JSON.parse(/^data: (\{.*\})$/m.exec(text)?.[1] ?? text).result
  }
}

const tool = (name: string, outputSchema: JsonSchema | undefined, structuredContent: unknown, rest: object = {}) =>
  defineTool({ name, outputSchema, execute: () => ({ content: [], structuredContent, ...rest }) })

describe('LegacyPath', () => {
  it('lists only schemas that an earlier client can read, and returns results that match them: structured content is an object', async (t) => {
    const list = { type: 'array', items: { type: 'number' } }
    const ask = await serve(t, [
      tool('list', list, [1, 2]),
      tool('object', { type: 'object', properties: { a: true } }, { a: 1 }),
      tool('said', { anyOf: [{ type: 'object' }, { type: 'null' }] }, { a: 1 }),
      tool('unsaid', undefined, [1, 2]),
    ])
    const listed = (await ask('tools/list'))['tools'] as readonly { name: string; outputSchema?: JsonSchema }[]
    const wrapped = (schema: object) => ({ type: 'object', properties: { result: schema }, required: ['result'] })
    assert.deepEqual(
      listed.map(({ name, outputSchema }) => [name, outputSchema]),
      [
        ['list', wrapped(list)],
        ['object', { type: 'object', properties: { a: {} } }],
        ['said', wrapped({ anyOf: [{ type: 'object' }, { type: 'null' }] })],
        ['unsaid', undefined],
      ],
    )
    const structured = async (name: string) => (await ask('tools/call', { name, arguments: {} }))['structuredContent']
    assert.deepEqual(await structured('list'), { result: [1, 2] })
    assert.deepEqual(await structured('object'), { a: 1 })
    assert.deepEqual(await structured('said'), { result: { a: 1 } })
    assert.deepEqual(await structured('unsaid'), { result: [1, 2] })
    assert.deepEqual((await ask('tools/call', { name: 'unsaid', arguments: {} }))['content'], [
      { type: 'text', text: '[1,2]' },
    ])
  })

  it('passes an error on unchanged', async (t) => {
    const ask = await serve(t, [tool('fails', { type: 'array' }, undefined, { isError: true })])
    assert.deepEqual(await ask('tools/call', { name: 'fails', arguments: {} }), { content: [], isError: true })
  })
})
