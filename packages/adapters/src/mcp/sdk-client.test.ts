import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { createMCPClient } from '@ai-sdk/mcp'
import {
  Client as ClientV2,
  InMemoryTransport as MemoryV2,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as MemoryV1 } from '@modelcontextprotocol/sdk/inMemory.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createMcpHandler, InMemoryServerEventBus, ProtocolError, Server } from '@modelcontextprotocol/server'
import { createGate, type Policy } from '@toolgate/core'
import { type McpResult, RpcError } from '@toolgate/mcp'
import { INFO, listen, textOf } from '../testing/mcp-ways.ts'
import { until } from '../testing/until.ts'
import { ADMIN, createTestAudit, VIEWER } from '../testing/world.ts'
import { fromMcpClient, type McpClient } from './sdk-client.ts'
import type { McpSourceOptions } from './source.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

interface Listed {
  readonly name: string
  readonly [field: string]: unknown
}
type Run = (
  args: Record<string, unknown>,
  ctx: { signal: AbortSignal; progress(progress: number): Promise<void> },
) => McpResult | Promise<McpResult>

/** The server behind the client. It lists in pages of two, and records the requests that reach it. */
function createUpstream(tools: readonly Listed[], runs: Readonly<Record<string, Run>> = {}) {
  const upstream = {
    tools,
    ran: [] as string[],
    fails: false,
    changed: [] as (() => void)[],
    server() {
      const server = new Server(INFO, { capabilities: { tools: { listChanged: true } } })
      server.setRequestHandler('tools/list', ({ params }) => {
        if (upstream.fails) throw new Error('no list today')
        const from = Number(params?.cursor ?? 0)
        const page = upstream.tools.slice(from, from + 2).map((tool) => ({ inputSchema: { type: 'object' }, ...tool }))
        return { tools: page, ...(from + 2 < upstream.tools.length && { nextCursor: String(from + 2) }) } as never
      })
      server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
        upstream.ran.push(params.name)
        const progressToken = mcpReq._meta?.progressToken
        const progress = async (value: number) => {
          if (progressToken !== undefined)
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: value } })
        }
        const run = runs[params.name]
        return (await (run?.(params.arguments ?? {}, { signal: mcpReq.signal, progress }) ?? {
          content: [{ type: 'text', text: `${params.name} done` }],
        })) as never
      })
      upstream.changed.push(() => void server.sendToolListChanged().catch(() => {}))
      return server
    },
    announceChange() {
      for (const tell of upstream.changed) tell()
    },
  }
  return upstream
}

type Upstream = ReturnType<typeof createUpstream>

interface Kind {
  readonly name: string
  readonly hearsChanges: boolean
  connect(upstream: Upstream): Promise<McpClient & { close(): Promise<void> }>
}

async function serve(upstream: Upstream): Promise<string> {
  const bus = new InMemoryServerEventBus()
  const handler = createMcpHandler(() => upstream.server(), { bus })
  upstream.changed.push(() => bus.publish({ kind: 'tools_list_changed' }))
  const http = await listen((request, response) => void toNodeHandler(handler)(request as never, response as never))
  closing.push(http.close, () => handler.close())
  return http.url
}

const KINDS: readonly Kind[] = [
  {
    name: 'SDK v2, 2026-07-28',
    hearsChanges: true,
    async connect(upstream) {
      const client = new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } })
      await client.connect(new StreamableHTTPClientTransport(new URL(await serve(upstream))))
      assert.equal(client.getProtocolEra(), 'modern')
      return client
    },
  },
  {
    name: 'SDK v2, a server of before',
    hearsChanges: true,
    async connect(upstream) {
      const [near, far] = MemoryV2.createLinkedPair()
      const client = new ClientV2(INFO)
      await upstream.server().connect(far as never)
      await client.connect(near)
      return client
    },
  },
  {
    name: 'SDK v1',
    hearsChanges: true,
    async connect(upstream) {
      const [near, far] = MemoryV1.createLinkedPair()
      const client = new ClientV1(INFO)
      await upstream.server().connect(far as never)
      await client.connect(near as never)
      return client
    },
  },
  {
    name: 'SDK v1 over HTTP',
    hearsChanges: false,
    async connect(upstream) {
      const client = new ClientV1(INFO)
      await client.connect(new HttpV1(new URL(await serve(upstream))) as never)
      return client
    },
  },
  {
    name: '@ai-sdk/mcp',
    hearsChanges: false,
    connect: async (upstream) => createMCPClient({ transport: { type: 'http', url: await serve(upstream) } }),
  },
]

const TOOLS: readonly Listed[] = ['alpha', 'read_file', 'read_dir', 'write_file', 'delete_all'].map((name) => ({
  name,
}))

for (const kind of KINDS) {
  describe(`fromMcpClient: ${kind.name}`, () => {
    async function world(upstream: Upstream, { policy, ...options }: McpSourceOptions & { policy?: Policy } = {}) {
      const client = await kind.connect(upstream)
      closing.push(() => client.close())
      const source = await fromMcpClient(client, options)
      closing.push(() => source.close())
      const audit = createTestAudit()
      const gate = createGate({ sources: [source], policy: policy ?? [], audit })
      closing.push(() => gate.close())
      return { client, source, gate, audit }
    }

    it('has the tools of every page, under the namespace', async () => {
      const { gate } = await world(createUpstream(TOOLS), { namespace: 'files' })
      const { ids } = await gate.view(VIEWER)
      assert.deepEqual(ids, [
        'files:alpha',
        'files:delete_all',
        'files:read_dir',
        'files:read_file',
        'files:write_file',
      ])
    })

    it('calls no hidden tool', async () => {
      const upstream = createUpstream(TOOLS)
      const { gate, audit } = await world(upstream, {
        overlay: { 'write_*': { tags: ['write'] }, delete_all: { tags: ['write'] } },
        policy: { deny: ['tag:write'] },
      })
      const view = await gate.view(VIEWER)
      for (const tool of ['write_file', 'delete_all', 'constructor'])
        assert.equal((await view.call({ tool, input: {} })).status, 'refused')
      const done = await view.call({ tool: 'alpha', input: {} })
      assert.equal(done.status === 'done' && textOf(done.output as McpResult), 'alpha done')
      assert.deepEqual(upstream.ran, ['alpha'])
      assert.equal(audit.attempts().length, 5)
    })

    it('passes input, results and progress unchanged', async () => {
      const content = [
        { type: 'text', text: 'a' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      ]
      const inputs: unknown[] = []
      const upstream = createUpstream(
        [
          {
            name: 'work',
            title: 'Work',
            description: 'Works.',
            inputSchema: { type: 'object', properties: { n: { type: 'integer' } } },
            outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
            icons: [{ src: 'https://example.com/i.png' }],
            _meta: { 'example.com/own': 1 },
          },
        ],
        {
          async work(args, { progress }) {
            inputs.push(args)
            for (const value of [1, 2]) await progress(value)
            return { content, structuredContent: { sum: 5 }, _meta: { 'example.com/kept': true } }
          },
        },
      )
      const { gate } = await world(upstream)
      const view = await gate.view(VIEWER)
      const { title, description, outputSchema, icons, _meta } = view.tools[0] ?? {}
      assert.deepEqual([icons, _meta], [[{ src: 'https://example.com/i.png' }], { 'example.com/own': 1 }])
      assert.deepEqual([title, description, Object.keys(outputSchema ?? {})[0]], ['Work', 'Works.', 'type'])
      const heard: unknown[] = []
      const outcome = await view.call({ tool: 'work', input: { n: 3 }, onProgress: (progress) => heard.push(progress) })
      assert.equal(outcome.status, 'done')
      const result = (outcome.status === 'done' ? outcome.output : {}) as McpResult
      assert.deepEqual(result.content, content)
      assert.deepEqual(result.structuredContent, { sum: 5 })
      assert.equal(result._meta?.['example.com/kept'], true)
      assert.deepEqual(inputs, [{ n: 3 }])
      if (kind.name !== '@ai-sdk/mcp') assert.deepEqual(heard, [{ progress: 1 }, { progress: 2 }])
    })

    it('cancels at the server, and passes its errors on', async () => {
      let stopped = false
      const upstream = createUpstream([{ name: 'hang' }, { name: 'rpc' }, { name: 'fails' }], {
        hang: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              stopped = true
              reject(new Error('stopped'))
            })
          }),
        rpc() {
          throw new ProtocolError(-32_050, 'Not at this hour.', { hint: 'noon' })
        },
        fails: () => ({ content: [{ type: 'text', text: 'It failed.' }], isError: true }),
      })
      const { gate } = await world(upstream)
      const view = await gate.view(VIEWER)
      const gone = new AbortController()
      const hanging = view.call({ tool: 'hang', input: {}, signal: gone.signal })
      await until(() => upstream.ran.includes('hang'))
      gone.abort(new Error('enough'))
      const hung = await hanging
      assert.equal(hung.status === 'failed' && hung.code, 'tool_aborted')
      if (kind.name !== 'SDK v1 over HTTP') await until(() => stopped)
      const rpc = await view.call({ tool: 'rpc', input: {} })
      assert.equal(rpc.text, 'rpc failed: Not at this hour.')
      assert.ok(rpc.status === 'failed' && rpc.error instanceof Error)
      const { code, data } = rpc.error as unknown as { code: number; data: unknown }
      assert.deepEqual([code, data], [-32_050, { hint: 'noon' }])
      const failed = await view.call({ tool: 'fails', input: {} })
      assert.equal(failed.status === 'done' && (failed.output as McpResult).isError, true)
    })

    it('lets the hints of a server only tighten, unless it is trusted', async () => {
      const tools = [{ name: 'tool', annotations: { readOnlyHint: true, destructiveHint: false } }]
      const sees = async (options: McpSourceOptions, policy: Policy) =>
        (await (await world(createUpstream(tools), { ...options, policy })).gate.view(VIEWER)).has('tool')
      const allowed: Policy = { allow: ['hint:read-only'] }
      assert.equal(await sees({}, allowed), false)
      assert.equal(await sees({ trustHints: true }, allowed), true)
      assert.equal(await sees({ overlay: { 't*': { annotations: { readOnlyHint: true } } } }, allowed), true)
      assert.equal(await sees({ overlay: { tool: { annotations: { idempotentHint: true } } } }, allowed), false)
      assert.equal(await sees({}, { deny: ['hint:destructive'] }), false)
    })

    it('follows the list, and keeps unchanged tools', async () => {
      const upstream = createUpstream(TOOLS)
      const { gate, source } = await world(upstream)
      const before = (await gate.view(VIEWER)).get('alpha')
      upstream.tools = [{ name: 'alpha' }, { name: 'new' }]
      if (kind.hearsChanges) {
        await until(async () => {
          upstream.announceChange()
          return (await gate.view(VIEWER)).has('new')
        })
      } else await source.refresh()
      const view = await gate.view(VIEWER)
      assert.deepEqual(view.ids, ['alpha', 'new'])
      assert.equal(view.get('alpha'), before)
      assert.equal((await view.call({ tool: 'read_file', input: {} })).status, 'refused')
    })

    it('keeps its tools when the list cannot be read, and reports it', async () => {
      const upstream = createUpstream(TOOLS)
      const { gate, source } = await world(upstream)
      upstream.fails = true
      await source.refresh()
      assert.match(String(source.failure), /no list today/)
      assert.equal((await gate.view(VIEWER)).size, 5)
      upstream.fails = false
      await source.refresh()
      assert.equal(source.failure, undefined)
    })

    it('does not affect other servers when its client closes', async () => {
      const upstream = createUpstream(TOOLS)
      const client = await kind.connect(upstream)
      const source = await fromMcpClient(client, { namespace: 'one' })
      const other = createUpstream([{ name: 'fine' }])
      const second = await kind.connect(other)
      closing.push(() => second.close())
      const gate = createGate({ sources: [source, await fromMcpClient(second, { namespace: 'two' })] })
      await client.close()
      const view = await gate.view(VIEWER)
      const failed = await view.call({ tool: 'one:alpha', input: {} })
      assert.equal(failed.status, 'failed')
      const done = await view.call({ tool: 'two:fine', input: {} })
      assert.equal(done.status, 'done')
      await source.refresh()
      assert.ok(source.failure)
      assert.equal((await gate.view(VIEWER)).size, 6)
    })

    it('hides its tools while it is down, if a group requires its probe', async () => {
      const upstream = createUpstream(TOOLS)
      const client = await kind.connect(upstream)
      closing.push(() => client.close())
      const source = await fromMcpClient(client, { namespace: 'files' })
      const gate = createGate({
        sources: [source],
        groups: { files: { tools: ['files:*'], availableWhen: [source.probe], suggestion: 'Start the server.' } },
      })
      closing.push(() => gate.close())
      await until(async () => (await gate.view(VIEWER)).size === 5)
      upstream.fails = true
      await source.refresh()
      await until(async () => (await gate.view(VIEWER)).size === 0)
      const { text } = await (await gate.view(VIEWER)).call({ tool: 'files:alpha', input: {} })
      assert.equal(text, 'files:alpha is unavailable: the server files does not answer. Start the server.')
      upstream.fails = false
      await source.refresh()
      await until(async () => (await gate.view(VIEWER)).size === 5)
    })

    it('leaves out tools that cannot be offered, and reports patterns that match nothing', async () => {
      const saysTasks = ['SDK v1', 'SDK v1 over HTTP', 'SDK v2, a server of before'].includes(kind.name)
      const { source, gate } = await world(
        createUpstream([
          { name: 'fine' },
          { name: 'fine' },
          { name: 'a\tb' },
          // MCP 2026-07-28 no longer has this, and @ai-sdk/mcp does not pass it on.
          ...(saysTasks ? [{ name: 'later', execution: { taskSupport: 'required' } }] : []),
        ]),
        { overlay: { 'f*': { tags: ['x'] }, gone: { tags: ['y'] } } },
      )
      assert.deepEqual((await gate.view(ADMIN)).ids, ['fine'])
      const left = source.leftOut.map(({ tool, reason }) => `${tool} ${reason}`)
      assert.match(left[0] ?? '', /^fine is listed twice/)
      assert.match(left[1] ?? '', /^a\tb /)
      if (saysTasks) assert.equal(left[2], 'later can only be run as a task, which is not supported')
      assert.deepEqual(source.unmatched, ['gone'])
    })

    it('warns of an overlay that matches no tool, and has its tools when it is returned', async () => {
      const pattern = `gone-${kind.name.replaceAll(/\W/g, '')}`
      const seen: string[] = []
      const onProcessWarning = ({ message }: Error) => {
        if (message.includes(pattern)) seen.push(message)
      }
      process.on('warning', onProcessWarning)
      const { source } = await world(createUpstream([]), { overlay: { [pattern]: { tags: ['y'] } } })
      await new Promise((resolve) => setImmediate(resolve))
      process.off('warning', onProcessWarning)
      assert.deepEqual(seen.length, 1)
      assert.match(seen[0] ?? '', /^overlay\.gone-\w+: "gone-\w+" names no tool of the server \w+$/)
      assert.equal(source.isListed?.(), true)
    })
  })
}

describe('fromMcpClient', () => {
  it('rejects an invalid client, an unknown field, and a server that lists in a circle', async () => {
    await assert.rejects(fromMcpClient({} as never), /client: must be a connected client/)
    const client = { callTool: async () => ({}), listTools: async () => ({ tools: [], nextCursor: 'again' }) }
    const kind = { ...client, toolsFromDefinitions: () => ({}) }
    await assert.rejects(
      fromMcpClient(kind, { overlay: { a: { tag: 'x' } as never } }),
      /overlay\.a\.tag: unknown field; did you mean "tags"/,
    )
    await assert.rejects(fromMcpClient(kind), /in a circle/)
    await assert.rejects(fromMcpClient({ ...kind, listTools: async () => ({}) }), /without a list/)
  })

  it('treats only errors that the server sent as errors of the server', async () => {
    const fault = async (error: Error & { code?: unknown }) => {
      const client = {
        listTools: async () => ({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] }),
        toolsFromDefinitions: () => ({}),
        callTool: async () => {
          throw error
        },
      }
      const gate = createGate({ sources: [await fromMcpClient(client)] })
      const outcome = await (await gate.view(VIEWER)).call({ tool: 'a', input: {} })
      assert.equal(outcome.status, 'failed')
      const thrown = outcome.status === 'failed' ? outcome.error : undefined
      return thrown instanceof RpcError ? `${thrown.code} ${thrown.message}` : outcome.text
    }
    const said = (code: unknown, message: string) => Object.assign(new Error(message), { code })
    assert.equal(await fault(said(-32_050, 'MCP error -32050: no')), '-32050 no')
    assert.equal(await fault(said(-32_021, 'needs sampling')), '-32021 needs sampling')
    assert.equal(
      await fault(said(-32_022, 'wrong')),
      '-32603 The server does not speak the MCP revision of the request to it (-32022: wrong).',
    )
    for (const code of [-32_000, -32_001, 404, 'ECONNRESET', undefined])
      assert.equal(await fault(said(code, 'gone')), 'a failed: gone')
  })

  it('fails a call whose answer is not a result', async () => {
    const none = async () => null as unknown as object
    const listTools = async () => ({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] })
    const source = await fromMcpClient({ listTools, toolsFromDefinitions: none, callTool: none } as McpClient)
    const outcome = await (await createGate({ sources: [source] }).view(VIEWER)).call({ tool: 'a', input: {} })
    assert.equal(outcome.text, 'a failed: the server answered tools/call without a result')
  })
})
