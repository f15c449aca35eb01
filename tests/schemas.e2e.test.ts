import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import type { WarningsBody, WhyBody } from '@toolgate/gateway'
import { z } from 'zod'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, textOf } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Schemas of servers, checked by their own dialect on the way through the gateway. */

const FIELDS = z.object({
  email: z.email(),
  wait: z.iso.duration(),
  host: z.hostname(),
  mood: z.emoji(),
  address: z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]),
  data: z.base64(),
  link: z.url(),
  id: z.uuid(),
  day: z.iso.date(),
})
const VALID: z.input<typeof FIELDS> = {
  email: 'vera@example.org',
  wait: 'P1DT2H',
  host: 'example.org',
  mood: '😀',
  address: '10.0.0.0/8',
  data: 'aGVsbG8=',
  link: 'https://example.org',
  id: '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f',
  day: '2026-11-22',
}
const INVALID: readonly (readonly [keyof typeof VALID, unknown])[] = [
  ['email', 'a..b@example.org'],
  ['wait', 'P1W2D'],
  ['host', '-.org'],
  ['mood', 'x'],
  ['address', '999.0.0.1'],
  ['data', '*'],
  ['link', 7],
  ['id', 'no'],
  ['day', '2026-02-30'],
]

const D04 = 'http://json-schema.org/draft-04/schema#'
const D07 = 'http://json-schema.org/draft-07/schema#'
const D19 = 'https://json-schema.org/draft/2019-09/schema'
const object = (value: object, more: object = {}) => ({ type: 'object', properties: { value }, ...more })
/** A schema of each dialect, with a value that passes and one that does not. */
const DIALECTS: readonly (readonly [name: string, inputSchema: object, valid: unknown, invalid: unknown])[] = [
  ['draft-04', object({ minimum: 1, exclusiveMinimum: true }, { $schema: D04 }), 2, 1],
  ['draft-04-id', object({ $ref: '#v' }, { $schema: D04, definitions: { v: { id: '#v', type: 'string' } } }), 'a', 1],
  ['draft-07', object({ items: [{ type: 'string' }], additionalItems: false }, { $schema: D07 }), ['a'], ['a', 'b']],
  [
    'draft-2019-09',
    object({ anyOf: [{ type: 'number' }, { $recursiveRef: '#' }] }, { $schema: D19, required: ['value'] }),
    { value: 0 },
    {},
  ],
  ['unnamed', object({ maximum: 1, exclusiveMaximum: true }), 0, 1],
  ['own-id', object({ $ref: 'Tree' }, { $defs: { tree: { $id: 'Tree', items: { $ref: 'Tree' } } } }), [[]], undefined],
  ['backreference', object({ pattern: '^(.)\\1$', maxLength: 2 }), 'ab', 'abc'],
]

let gateway: TestGateway
let raw: RecordingServer
let zod: { readonly url: string; close(): Promise<void> }

before(async () => {
  zod = await startZodServer()
  const echo = ({ value }: Readonly<Record<string, unknown>>) => ({
    content: [{ type: 'text', text: `got ${JSON.stringify(value)}` }],
  })
  raw = await startRecordingServer(DIALECTS.map(([name, inputSchema]) => ({ name, inputSchema, run: echo })))
  gateway = await startTestGateway({ servers: [httpServer('zod', zod.url), httpServer('raw', raw.url)] })
})

after(async () => {
  await gateway?.close()
  await Promise.all([raw?.close(), zod?.close()])
})

async function startZodServer(): Promise<typeof zod> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'zod', version: '1' })
    server.registerTool('book', { inputSchema: FIELDS }, ({ email }) => ({
      content: [{ type: 'text', text: `booked for ${email}` }],
    }))
    return server
  })
  const handle = toNodeHandler(handler)
  const http = createServer((request, response) => void handle(request as NodeIncomingMessageLike, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      await handler.close()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

describe('a server whose fields are formats of zod', () => {
  for (const era of ['2025-11-25', MODERN] as const satisfies readonly Era[]) {
    it(`can be called, in ${era}`, async () => {
      assert.equal(textOf(await gateway.call('admin', era, 'zod__book', VALID)), 'booked for vera@example.org')
    })

    for (const [field, value] of INVALID) {
      it(`refuses ${JSON.stringify(value)} for ${field}, in ${era}`, async () => {
        const answer = await gateway.call('admin', era, 'zod__book', { ...VALID, [field]: value })
        assert.equal(answer.result?.isError, true)
        assert.match(textOf(answer), new RegExp(`invalid input at "/${field}": must`))
      })
    }
  }

  it('gives no warning', async () => {
    const { warnings } = (await gateway.api('/api/warnings')).body as WarningsBody
    assert.deepEqual(
      warnings.filter(({ path }) => path.startsWith('tools.zod:')),
      [],
    )
  })
})

describe('a server whose schemas are of other dialects', () => {
  for (const [name, , valid, invalid] of DIALECTS) {
    it(`is listed, called and checked: ${name}`, async () => {
      assert.ok((await gateway.list('admin', MODERN)).includes(`raw__${name}`))
      const called = await gateway.call('admin', MODERN, `raw__${name}`, { value: valid })
      assert.equal(textOf(called), `got ${JSON.stringify(valid)}`)
      if (invalid === undefined) return
      const refused = await gateway.call('admin', MODERN, `raw__${name}`, { value: invalid })
      assert.equal(refused.result?.isError, true, textOf(refused))
    })
  }

  it('has a warning with tool and pointer for a pattern that is not checked: in the log, the API and why', async () => {
    const path = 'tools.raw:backreference.inputSchema/properties/value/pattern'
    const message = 'is not checked: this pattern cannot be run, it has a backreference'
    const { warnings } = (await gateway.api('/api/warnings')).body as WarningsBody
    assert.deepEqual(
      warnings.flatMap((one) => (one.code === 'schema_skipped' ? [`${one.path} ${one.text}`] : [])),
      [`${path} ${message}`],
    )
    assert.ok(gateway.log.some((line) => line.level === 'warn' && line.message === `${path}: ${message}`))
    const { schemaWarnings } = (await gateway.api('/api/why?tool=raw:backreference&as=admin')).body as WhyBody
    assert.deepEqual(schemaWarnings, [{ pointer: '/properties/value/pattern', message }])
  })
})
