import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { ERAS, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Definitions and results of a server reach clients unchanged, whatever fields they have. */

const RESULT = {
  content: [
    { type: 'text', text: 'done', annotations: { priority: 1 }, 'x-block': [1], _meta: { 'a.b/c': 1 } },
    { type: 'x-later', of: { a: 'revision', none: null } },
  ],
  structuredContent: { rows: [{ id: 1, 'x-own': null }] },
  isError: false,
  _meta: { 'example.com/trace': { id: 'abc' } },
  'x-result': { kept: true },
}

/** Has every field that MCP knows, and some that it does not. */
const FULL = {
  name: 'report',
  title: 'Report',
  description: 'Writes a report.',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { of: { type: 'string', 'x-hint': { a: [1, null] } } },
    required: ['of'],
    additionalProperties: false,
  },
  outputSchema: { type: 'object', properties: { rows: { type: 'array' } }, required: ['rows'] },
  annotations: {
    title: 'A report',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
    'x-audience': ['people'],
  },
  icons: [{ src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark', 'x-own': 1 }],
  _meta: { 'io.modelcontextprotocol/ui': { resourceUri: 'ui://report' }, 'example.com/n': 1e21 },
  execution: { taskSupport: 'optional', 'x-later': 1 },
  'x-unknown': { deep: [{ kept: null }, -0.5, 'ü', ''] },
}
const PLAIN = { name: 'plain', inputSchema: { type: 'object' }, annotations: { title: 'Only here' } }
const TOOLS: RecordedTool[] = [{ ...FULL, run: () => RESULT }, PLAIN]

for (const upstreamEra of ['legacy', 'modern'] as const) {
  describe(`a server of the ${upstreamEra} era`, () => {
    let upstream: RecordingServer
    let gateway: TestGateway

    before(async () => {
      upstream = await startRecordingServer(TOOLS, { era: upstreamEra })
      gateway = await startTestGateway({ servers: [httpServer('up', upstream.url)] })
    })
    after(async () => {
      await gateway?.close()
      await upstream?.close()
    })

    for (const era of ERAS) {
      it(`has its tools listed as it lists them, except for their names (${era})`, async () => {
        const { result } = (await gateway.ask('viewer', era, 'tools/list')).json() as RpcAnswer
        assert.deepEqual(result?.tools, [
          { ...PLAIN, name: 'up__plain' },
          { ...FULL, name: 'up__report' },
        ])
      })

      it(`has its results passed on as it sends them (${era})`, async () => {
        const { result } = await gateway.call('viewer', era, 'up__report', { of: 'x' })
        assert.ok(result)
        const { _meta: meta, resultType, ...rest } = result
        const { _meta: sentMeta, ...sent } = RESULT
        assert.deepEqual(rest, sent)
        assert.equal(resultType, era === MODERN ? 'complete' : undefined)
        const { 'io.modelcontextprotocol/serverInfo': hop, ...kept } = meta ?? {}
        assert.deepEqual(kept, sentMeta)
        assert.equal(hop !== undefined, era === MODERN)
      })
    }
  })
}
