import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestGateway } from '../support/gateway.ts'
import { send } from '../support/http.ts'
import { KEYS } from '../support/keys.ts'
import type { Json } from '../support/mcp-host.ts'
import { type Era, MODERN, toMessage } from '../support/rpc.ts'
import { httpServer } from '../support/servers.ts'
import { startFront } from './support/front.ts'
import { startEarlierFixture, startModernFixture } from './support/servers.ts'

/**
 * The referee's scenarios can pass although nothing works. So the same requests go to a server directly and through the
 * gateway, and every answer must have the same content: all messages, in order, without what names the server.
 */

const REQUESTS: readonly (readonly [method: string, params?: Json])[] = [
  ['tools/list'],
  ...['simple_text', 'image_content', 'audio_content', 'embedded_resource', 'multiple_content_types'].map(
    (name) => ['tools/call', { name: `test_${name}`, arguments: {} }] as const,
  ),
  ['tools/call', { name: 'test_error_handling', arguments: {} }],
  ['tools/call', { name: 'test_argument_header', arguments: { region: 'eu' } }],
  ['tools/call', { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 'p' } }],
  ['resources/list'],
  ['resources/templates/list'],
  ['resources/read', { uri: 'test://static-text' }],
  ['resources/read', { uri: 'test://static-binary' }],
  ['resources/read', { uri: 'test://template/7/data' }],
  ['resources/read', { uri: 'test://nothing' }],
  ['prompts/list'],
  ['prompts/get', { name: 'test_simple_prompt' }],
  ['prompts/get', { name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } }],
  ['prompts/get', { name: 'test_prompt_with_image' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } },
  ],
]

/** Sends all requests as a client of an era and returns the messages of every answer. */
async function transcriptOf(url: string, era: Era): Promise<readonly unknown[]> {
  let session: Record<string, string> = {}
  if (era !== MODERN) {
    const clientInfo = { name: 'test', version: '1' }
    const begin = toMessage(era, 'initialize', { protocolVersion: era, capabilities: {}, clientInfo })
    const { headers } = await send(url, { headers: begin.headers, body: JSON.stringify(begin.body) })
    session = { 'mcp-session-id': String(headers['mcp-session-id']) }
  }
  const transcript: unknown[] = []
  for (const [i, [method, params]] of REQUESTS.entries()) {
    const { headers, body } = toMessage(era, method, params, i + 1)
    const region = method === 'tools/call' && 'region' in ((params?.['arguments'] ?? {}) as Json)
    const more = { ...session, ...(era === MODERN && region && { 'mcp-param-region': 'eu' }) }
    const answer = await send(url, { headers: { ...headers, ...more }, body: JSON.stringify(body) })
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream')
    const messages = isStream ? answer.events() : [answer.json()]
    transcript.push({ method, params, status: answer.status, messages: messages.map(masked) })
  }
  return transcript
}

/** Without what describes the server that answers, and with lists in one order. */
function masked(value: unknown): unknown {
  if (Array.isArray(value)) {
    const all = value.map(masked)
    const isList = all.every((one) => typeof one === 'object' && one !== null && 'name' in one)
    return isList ? all.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : all
  }
  if (typeof value !== 'object' || value === null) return value
  const { _meta: meta, ttlMs: _ttl, cacheScope: _scope, ...rest } = value as Json
  const { 'io.modelcontextprotocol/serverInfo': _info, ...kept } = (meta ?? {}) as Json
  const whole = Object.keys(kept).length > 0 ? { ...rest, _meta: kept } : rest
  return Object.fromEntries(Object.entries(whole).map(([key, one]) => [key, masked(one)]))
}

describe('the content of every answer', () => {
  for (const [era, start] of [
    ['2025-11-25', startEarlierFixture],
    [MODERN, startModernFixture],
  ] as const)
    it(`is the same directly and through the gateway (${era})`, async () => {
      const fixture = await start()
      const gateway = await startTestGateway({
        servers: [httpServer('fixture', fixture.url, { per: 'shared', offers: ['tools', 'resources', 'prompts'] })],
        policy: [{ allow: ['*', 'resource:*:*', 'prompt:*:*'] }],
      })
      const front = await startFront(gateway.mcpUrl, KEYS.admin, 'fixture__')
      try {
        const direct = await transcriptOf(fixture.url, era)
        const through = await transcriptOf(front.url, era)
        for (const [i, expected] of direct.entries()) assert.deepEqual(through[i], expected)
        assert.equal(through.length, direct.length)
      } finally {
        await front.close()
        await gateway.close()
        await fixture.close()
      }
    })
})
