import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { KEYS, type Who } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import type { RpcAnswer } from './support/rpc.ts'
import { everythingServer, filesServer, httpServer, memoryServer } from './support/servers.ts'

type Result = NonNullable<RpcAnswer['result']>
interface CallOptions {
  readonly signal?: AbortSignal
  readonly onprogress?: (progress: { readonly progress: number; readonly total?: number | undefined }) => void
}

/** The common actions of the clients. */
interface AnyClient {
  list(): Promise<Result>
  call(name: string, args?: object, options?: CallOptions): Promise<Result>
  close(): Promise<void>
}

const folder = tempFolder()
const workspace = join(folder.path, 'workspace')
let gateway: TestGateway
let modern: ModernServer
let upstreams: readonly RecordingServer[]

before(async () => {
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'hello.txt'), 'Hello, größe 🙂.')
  modern = await startModernServer()
  const hang = {
    name: 'hang',
    run: (_args: object, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  }
  const old = await startRecordingServer([hang])
  upstreams = [old, await startRecordingServer([hang], { era: 'modern' })]
  gateway = await startTestGateway({
    servers: [
      filesServer(workspace),
      memoryServer(join(folder.path, 'memory.jsonl')),
      everythingServer(),
      httpServer('modern', modern.url),
      ...upstreams.map(({ era, url }) => httpServer(`hang-${era}`, url, { callTimeoutMs: 60_000 })),
    ],
    policy: [{ allow: [{ match: 'hint:read-only' }, { match: '*', when: "'admin' in caller.roles" }] }],
  })
})

after(async () => {
  await gateway?.close()
  await Promise.all([modern?.close(), ...(upstreams ?? []).map((upstream) => upstream.close())])
  folder.remove()
})

const INFO = { name: 'test', version: '1' }

function options(who: Who) {
  return { requestInit: { headers: { authorization: `Bearer ${KEYS[who]}` } } }
}

function connectV2(mode: 'auto' | 'legacy' | { pin: string }) {
  return async (who: Who): Promise<AnyClient> => {
    const client = new Client(INFO, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), options(who)))
    return {
      list: async () => (await client.listTools()) as Result,
      call: async (name, args = {}, more = {}) =>
        (await client.callTool({ name, arguments: { ...args } }, more)) as Result,
      close: () => client.close(),
    }
  }
}

async function connectV1(who: Who): Promise<AnyClient> {
  const client = new ClientV1(INFO)
  await client.connect(new TransportV1(new URL(gateway.mcpUrl), options(who)))
  const request = (method: string, params: object, more = {}) =>
    client.request(
      { method, params } as never,
      (method === 'tools/list' ? ListToolsResultSchema : CallToolResultSchema) as typeof CallToolResultSchema,
      more,
    )
  return {
    list: async () => (await request('tools/list', {})) as unknown as Result,
    call: async (name, args = {}, more = {}) =>
      (await request('tools/call', { name, arguments: args }, more)) as Result,
    close: () => client.close(),
  }
}

const CLIENTS: readonly [string, (who: Who) => Promise<AnyClient>][] = [
  ['the SDK 2.4 client, which asks for the revision', connectV2('auto')],
  ['the SDK 2.4 client, pinned to 2026-07-28', connectV2({ pin: '2026-07-28' })],
  ['the SDK 2.4 client, as one of before', connectV2('legacy')],
  ['the SDK 1.32 client', connectV1],
]

const textOf = ({ content }: Result) => (content ?? []).map(({ text }) => text ?? '').join('\n')
const hello = () => join(workspace, 'hello.txt')

for (const [name, connect] of CLIENTS) {
  describe(name, () => {
    let client: AnyClient
    before(async () => {
      client = await connect('admin')
    })
    after(() => client?.close())

    it('lists the tools of every server, with their schemas', async () => {
      const { tools = [] } = await client.list()
      const names = tools.map((tool) => tool.name)
      for (const one of [
        'files__read_text_file',
        'memory__read_graph',
        'everything__echo',
        'modern__add',
        'hang-legacy__hang',
      ])
        assert.ok(names.includes(one), `${one} in ${names.join()}`)
      const add = tools.find((tool) => tool.name === 'modern__add') as unknown as Record<string, unknown>
      assert.equal(add['title'], 'Addition')
      assert.deepEqual((add['outputSchema'] as { required: string[] }).required, ['sum'])
      assert.deepEqual(add['annotations'], { readOnlyHint: true, idempotentHint: true })
    })

    it('calls real servers on stdio and over HTTP', async () => {
      assert.equal(textOf(await client.call('files__read_text_file', { path: hello() })), 'Hello, größe 🙂.')
      assert.match(textOf(await client.call('everything__get-sum', { a: 2, b: 3 })), /5/)
      const entities = [{ name, entityType: 'client', observations: ['was here'] }]
      await client.call('memory__create_entities', { entities })
      assert.match(textOf(await client.call('memory__open_nodes', { names: [name] })), /was here/)
    })

    it('gets structured content', async () => {
      assert.deepEqual((await client.call('modern__add', { a: 2, b: 3 })).structuredContent, { sum: 5 })
      const weather = await client.call('everything__get-structured-content', { location: 'New York' })
      assert.equal(typeof (weather.structuredContent as { temperature: unknown }).temperature, 'number')
    })

    it('gets every kind of content', async () => {
      const types = (result: Result) => (result.content ?? []).map(({ type }) => type)
      assert.ok(types(await client.call('everything__get-tiny-image')).includes('image'))
      assert.ok(types(await client.call('everything__get-resource-links', { count: 2 })).includes('resource_link'))
    })

    it("gets a tool's error as a result", async () => {
      const missing = await client.call('files__read_text_file', { path: join(workspace, 'none.txt') })
      assert.equal(missing.isError, true)
      assert.match(textOf(missing), /ENOENT/)
      const failed = await client.call('modern__fail')
      assert.deepEqual([failed.isError, textOf(failed)], [true, 'It failed.'])
    })

    it("gets an upstream's JSON-RPC error as a JSON-RPC error", async () => {
      await assert.rejects(client.call('modern__rpc_error'), (error: { code: number; data: unknown }) => {
        assert.equal(error.code, -32_050)
        assert.deepEqual(error.data, { hint: 'try another' })
        return true
      })
    })

    it('gets progress, from upstreams of both eras, before the result', async () => {
      for (const [tool, args] of [
        ['modern__slow', { steps: 3, stepMs: 5 }],
        ['everything__trigger-long-running-operation', { duration: 0.03, steps: 3 }],
      ] as const) {
        const heard: unknown[] = []
        const result = await client.call(tool, args, {
          onprogress: ({ progress, total }) => heard.push([progress, total]),
        })
        assert.notEqual(result.isError, true)
        assert.deepEqual(heard, [
          [1, 3],
          [2, 3],
          [3, 3],
        ])
      }
    })

    it('reaches the upstream when it cancels a call, in both eras', async () => {
      for (const upstream of upstreams) {
        upstream.forget()
        const gone = new AbortController()
        const call = client.call(`hang-${upstream.era}__hang`, {}, { signal: gone.signal })
        await until(() => upstream.calls().length === 1)
        gone.abort()
        await assert.rejects(call)
        await until(() => upstream.cancelled === 1)
      }
    })

    it('gets a result that says that a tool is unknown', async () => {
      const other = await connect('viewer')
      try {
        const { tools = [] } = await other.list()
        assert.deepEqual(
          tools.filter(({ name: tool }) => /write|create|delete/.test(tool)),
          [],
        )
        const refused = await other.call('files__write_file', { path: hello(), content: 'x' })
        assert.equal(refused.isError, true)
        assert.match(textOf(refused), /^Tool "files__write_file" is not available\. Available tools: files__/)
      } finally {
        await other.close()
      }
    })

    it('is refused with a console key', async () => {
      await assert.rejects(connect('console'))
    })
  })
}
