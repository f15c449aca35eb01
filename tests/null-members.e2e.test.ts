import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { ServersBody, WarningsBody, WhyBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { CALLERS, callerConfig, KEYS } from './support/keys.ts'
import { type AnswerTo, startRawServer } from './support/raw-server.ts'
import { type Era, MODERN, type RpcAnswer } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

/** Servers and clients that write `null` for what is absent, and items that are invalid. */

const SERVER = join(import.meta.dirname, 'support/null-server.js')
const INFO = { name: 'test', version: '1' }
const ALL = { offers: ['tools', 'resources', 'prompts'] as const }
const NAMES = ['old', 'new', 'pipe'] as const
const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }

let gateway: TestGateway
const servers: Awaited<ReturnType<typeof startRawServer>>[] = []

before(async () => {
  const { answerTo } = (await import(SERVER)) as { answerTo: (text: string, era: string) => string | undefined }
  const inEra =
    (era: string): AnswerTo =>
    (text) =>
      answerTo(text, era)
  for (const era of ['legacy', 'modern']) servers.push(await startRawServer(inEra(era)))
  gateway = await startTestGateway({
    servers: [
      httpServer('old', servers[0]?.url ?? '', ALL),
      httpServer('new', servers[1]?.url ?? '', ALL),
      nodeServer('pipe', [SERVER], ALL),
    ],
    callers: [...CALLERS, callerConfig('demo-acme', { user: 'ada', tenant: 'acme', roles: ['approver'] }, 'console')],
    policy: [{ allow: ['*', 'resource:*:*', 'prompt:*:*'] }],
  })
})

after(async () => {
  await gateway?.close()
  for (const server of servers) await server.close()
})

/** Returns the pointers of all members that are `null`. */
function nullsIn(value: unknown, path = ''): readonly string[] {
  if (value === null) return [path]
  if (typeof value !== 'object') return []
  return Object.entries(value).flatMap(([key, item]) => nullsIn(item, `${path}/${key}`))
}

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
  describe(`members that a server writes as null, for a client with ${who}`, () => {
    let client: Client
    before(async () => {
      client = await connect()
    })
    after(() => client?.close())

    it('are absent from every list, whose items are all there', async () => {
      const { tools } = await client.listTools()
      for (const server of NAMES)
        assert.deepEqual(
          tools.map(({ name }) => name).filter((name) => name.startsWith(`${server}__`)),
          ['bare', 'dangling', 'hints', 'shaped'].map((name) => `${server}__${name}`),
        )
      const { prompts } = await client.listPrompts()
      assert.equal(prompts.length, 2 * NAMES.length)
      const { resourceTemplates } = await client.listResourceTemplates()
      // Several servers list the same resources, so that nobody can own one.
      assert.equal(resourceTemplates.length, NAMES.length)
      // A default is data, in which `null` has a meaning.
      assert.deepEqual(
        nullsIn(tools).filter((path) => !path.endsWith('/default')),
        [],
      )
      assert.deepEqual(nullsIn([prompts, resourceTemplates]), [])
      const hints = tools.find(({ name }) => name === 'old__hints')
      assert.deepEqual(hints?.annotations, { destructiveHint: false })
      assert.deepEqual(hints?.icons, [{ src: 'data:image/png;base64,' }])
    })

    for (const server of NAMES)
      it(`are absent from the results of ${server}`, async () => {
        const call = await client.callTool({ name: `${server}__bare`, arguments: {} })
        assert.deepEqual(call.content, [
          { type: 'text', text: 'said' },
          { type: 'resource_link', uri: 'file:///a', name: 'a' },
        ])
        assert.ok(!('isError' in call) && !('structuredContent' in call))
        const prompt = await client.getPrompt({ name: `${server}__asks`, arguments: { who: 'me' } })
        assert.deepEqual(
          [prompt.messages, nullsIn(prompt)],
          [[{ role: 'user', content: { type: 'text', text: 'said' } }], []],
        )
        const ref = { type: 'ref/prompt' as const, name: `${server}__asks` }
        const { completion } = await client.complete({ ref, argument: { name: 'who', value: '' } })
        assert.deepEqual(completion, { values: ['v'] })
      })
  })

it('are named in the record of the call', async () => {
  await gateway.call('admin', MODERN, 'old__bare', {})
  const { body } = await gateway.api('/api/audit?tool=old:bare&event=tool_result&limit=1')
  const { records } = body as { records: readonly { readonly detail?: string }[] }
  assert.equal(records[0]?.detail, 'null members left out')
})

describe('a structured content that is null', () => {
  it('passes to clients where the tool declares an output, and the server speaks MCP 2026-07-28', async () => {
    const call = async (name: string) => (await gateway.call('admin', MODERN, name, {})).result as object
    assert.equal(((await call('new__shaped')) as { structuredContent?: unknown }).structuredContent, null)
    assert.ok(!('structuredContent' in (await call('new__bare'))))
    assert.ok(!('structuredContent' in (await call('old__shaped'))))
  })
})

describe('members that a client writes as null', () => {
  for (const era of ['2025-11-25', MODERN] as Era[])
    it(`are absent, in ${era}`, async () => {
      const ask = async (method: string, params: object) =>
        (await gateway.ask('admin', era, method, params as Record<string, unknown>)).json() as RpcAnswer
      for (const [method, params] of [
        ['tools/list', { cursor: null }],
        ['tools/call', { name: 'old__bare', arguments: null, task: null }],
        ['prompts/list', { cursor: null }],
        ['prompts/get', { name: 'old__asks', arguments: { who: null } }],
        ['prompts/get', { name: 'old__plain', arguments: null }],
        [
          'completion/complete',
          { ref: { type: 'ref/prompt', name: 'old__asks' }, argument: { name: 'who', value: '' }, context: null },
        ],
        [
          'completion/complete',
          {
            ref: { type: 'ref/prompt', name: 'old__asks' },
            argument: { name: 'who', value: '' },
            context: { arguments: { x: null } },
          },
        ],
      ] as const) {
        const { result, error } = await ask(method, params)
        assert.ok(result && result['isError'] !== true, `${method} ${JSON.stringify(params)}: ${error?.message}`)
      }
    })
})

describe('fields that are null in a body of the HTTP API', () => {
  it('are absent, and a required one is missing', async () => {
    const why = async (body: object) => gateway.api('/api/why', { key: KEYS.console, method: 'POST', body })
    const absent = { app: null, caller: null, input: null, history: null }
    assert.equal((await why({ tool: 'old:bare', as: 'admin', ...absent })).status, 200)
    const missing = await why({ tool: null, as: 'admin' })
    assert.equal(missing.status, 400)
    assert.match(JSON.stringify(missing.body), /The field \\"tool\\" is missing/)
  })
})

describe('an item that is invalid', () => {
  const bad = [
    ['old:wrong-title', /its tool "wrong-title" cannot be offered: has a title that is not a string/],
    [
      'old:no-input',
      /its tool "no-input" cannot be offered: inputSchema.*"#\/\$defs\/gone", which is not in this schema/,
    ],
    [`old:${'n'.repeat(200)}`, /its tool "nnnnnnnn…" cannot be offered: .*200 characters/],
    ['prompt:old:twice', /its prompt "twice" cannot be offered: has two arguments of one name/],
    ['resource:old:not a uri', /its resource "not a uri" cannot be offered: uri must not hold spaces/],
  ] as const

  it('is named by the warnings, which say why', async () => {
    const { warnings } = (await gateway.api('/api/warnings', { key: KEYS.console })).body as WarningsBody
    const texts = warnings
      .filter(({ code, path }) => code === 'item_rejected' && path === 'servers.old')
      .map(({ text }) => text)
    for (const [, text] of bad)
      assert.ok(
        texts.some((one) => text.test(one)),
        `${text} in ${texts.join('\n')}`,
      )
    assert.ok(texts.some((one) => /"dangling" is offered without its outputSchema: .*"#\/\$defs\/gone"/.test(one)))
    assert.equal(texts.length, bad.length + 1)
  })

  it('is what "why" answers', async () => {
    for (const [id, text] of bad) {
      const { status, body } = await gateway.api(`/api/why?tool=${encodeURIComponent(id)}&as=admin`, {
        key: KEYS.console,
      })
      assert.equal(status, 404)
      assert.match(JSON.stringify(body).replaceAll('\\"', '"'), text, id)
    }
    const { body } = await gateway.api('/api/why?tool=old:dangling&as=admin', { key: KEYS.console })
    assert.match((body as WhyBody).leftOut ?? '', /offered without its outputSchema/)
  })

  it('is not explained to a person with a tenant, whose list may be of others', async () => {
    const key = 'demo-acme'
    const why = async (id: string) => (await gateway.api(`/api/why?tool=${id}&as=ada`, { key })).body
    const gone = JSON.stringify(await why('old:no-input'))
    assert.equal(gone.replaceAll('no-input', 'nonesuch'), JSON.stringify(await why('old:nonesuch')))
    assert.ok(!('leftOut' in ((await why('old:dangling')) as object)))
    const { warnings } = (await gateway.api('/api/warnings', { key })).body as WarningsBody
    assert.deepEqual(warnings, [])
  })

  it('is logged once', () => {
    for (const [, text] of bad) {
      const reason = new RegExp(text.source.replace(/^its \w+ "(.*)" cannot be offered: /, ''))
      const lines = gateway.log.filter((line) => {
        const all = `${line.message} ${line.detail ?? ''}`
        return (line.server === 'old' || all.includes('servers.old:')) && reason.test(all)
      })
      assert.equal(lines.length, 1, `${reason}: ${JSON.stringify(lines)}`)
    }
  })

  it('is listed with its server, and nobody learns of it from a list or a call', async () => {
    const { servers: rows } = (await gateway.api('/api/servers', { key: KEYS.console })).body as ServersBody
    const rejected = rows.find(({ name }) => name === 'old')?.rejected ?? []
    assert.equal(rejected.length, bad.length + 1)
    assert.deepEqual(rejected.find(({ part }) => part)?.name, 'dangling')
    const { result } = await gateway.call('admin', MODERN, 'old__no-input')
    assert.match(JSON.stringify(result), /Tool \\"old__no-input\\" is not available\. Available tools: old__/)
    assert.doesNotMatch(JSON.stringify(result), /schema|offered/i)
  })
})
