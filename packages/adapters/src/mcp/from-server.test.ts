import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js'
import { McpServer as McpServerV2 } from '@modelcontextprotocol/server'
import { createGate } from '@toolgate/core'
import type { McpResult } from '@toolgate/mcp'
import { z } from 'zod'
import { textOf, WAYS } from '../testing/mcp-ways.ts'
import { until } from '../testing/until.ts'
import { ADMIN, createTestAudit, createWitness, VIEWER, type Witness } from '../testing/world.ts'
import { fromMcpServer } from './from-server.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** The parts that both have in common. */
interface AnyMcpServer {
  registerTool(
    name: string,
    config: object,
    run: (args: never, extra: Extra) => McpResult | Promise<McpResult>,
  ): { disable(): void; enable(): void; remove(): void }
  connect(transport: never): Promise<void>
  close(): Promise<void>
}
interface Extra {
  readonly authInfo?: { readonly extra?: unknown }
  readonly signal?: AbortSignal
  readonly sendNotification?: (notification: object) => Promise<void>
  readonly requestInfo?: { readonly headers: Readonly<Record<string, string>> }
  readonly mcpReq?: { readonly signal: AbortSignal; readonly notify: (notification: object) => Promise<void> }
  readonly http?: { readonly authInfo?: { readonly extra?: unknown }; readonly req?: Request }
  readonly _meta?: { readonly progressToken?: number }
}

const INFO = { name: 'own', version: '1' }
const SERVERS = [
  { sdk: 'v1', create: () => new McpServerV1(INFO) as unknown as AnyMcpServer },
  { sdk: 'v2', create: () => new McpServerV2(INFO) as unknown as AnyMcpServer },
] as const

function createOwn(create: () => AnyMcpServer, witness: Witness) {
  const server = create()
  closing.push(() => server.close())
  const add = server.registerTool(
    'add',
    {
      title: 'Add',
      description: 'Adds.',
      inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    ({ a, b }: { a: number; b: number }) => {
      witness.body('add')()
      return { content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } }
    },
  )
  const remove = server.registerTool('delete_all', { inputSchema: z.object({}) }, () => ({
    content: [{ type: 'text', text: witness.body('delete_all')() }],
  }))
  return { server, add, remove }
}

for (const { sdk, create } of SERVERS) {
  describe(`fromMcpServer: an McpServer of SDK ${sdk}`, () => {
    it('has the tools with their definitions', async () => {
      const source = await fromMcpServer(createOwn(create, createWitness()).server, { namespace: 'own' })
      const view = await createGate({ sources: [source] }).view(VIEWER)
      assert.deepEqual(view.ids, ['own:add', 'own:delete_all'])
      const { title, description, inputSchema, annotations, hintsTrusted } = view.get('own:add') ?? {}
      assert.deepEqual([title, description, annotations?.readOnlyHint, hintsTrusted], ['Add', 'Adds.', true, true])
      assert.deepEqual(Object.keys((inputSchema?.['properties'] ?? {}) as object), ['a', 'b'])
    })

    it('runs them with their own validation, and runs no hidden tool', async () => {
      const witness = createWitness()
      const source = await fromMcpServer(createOwn(create, witness).server, {
        overlay: { 'delete_*': { tags: ['danger'] } },
      })
      const audit = createTestAudit()
      const view = await createGate({ sources: [source], policy: { deny: ['tag:danger'] }, audit }).view(VIEWER)
      const done = await view.call({ tool: 'add', input: { a: 2 } })
      assert.deepEqual(done.status === 'done' && (done.output as McpResult).structuredContent, { sum: 3 })
      assert.equal((await view.call({ tool: 'delete_all', input: {} })).status, 'refused')
      assert.deepEqual(witness.ran, ['add'])
    })

    it('follows tools that are added and removed', async () => {
      const { server, remove, add } = createOwn(create, createWitness())
      const source = await fromMcpServer(server)
      const gate = createGate({ sources: [source] })
      const ids = async () => (await gate.view(VIEWER)).ids.join()
      remove.disable()
      await until(async () => (await ids()) === 'add')
      server.registerTool('late', {}, () => ({ content: [] }))
      await until(async () => (await ids()) === 'add,late')
      add.remove()
      remove.enable()
      await until(async () => (await ids()) === 'delete_all,late')
    })

    it('passes progress, cancellation and faults', async () => {
      const server = create()
      closing.push(() => server.close())
      let stopped = false
      server.registerTool('slow', { inputSchema: z.object({}) }, async (_: never, { mcpReq, ...extra }) => {
        const { signal } = mcpReq ?? extra
        const notify = mcpReq?.notify ?? extra.sendNotification
        const token =
          (mcpReq as { _meta?: { progressToken?: number } })?._meta?.progressToken ?? extra._meta?.progressToken
        await notify?.({ method: 'notifications/progress', params: { progressToken: token, progress: 1, total: 2 } })
        return new Promise((_resolve, reject) => {
          const stop = () => {
            stopped = true
            reject(new Error('stopped'))
          }
          if (signal?.aborted) stop()
          else signal?.addEventListener('abort', stop)
        })
      })
      server.registerTool('breaks', {}, () => {
        throw new Error('out of paper')
      })
      const view = await createGate({ sources: [await fromMcpServer(server)] }).view(VIEWER)
      const gone = new AbortController()
      const heard: unknown[] = []
      const outcome = await view.call({
        tool: 'slow',
        input: {},
        signal: gone.signal,
        onProgress(progress) {
          heard.push(progress)
          gone.abort(new Error('enough'))
        },
      })
      assert.equal(outcome.status === 'failed' && outcome.code, 'tool_aborted')
      assert.deepEqual(heard, [{ progress: 1, total: 2 }])
      await until(() => stopped)
      const broken = await view.call({ tool: 'breaks', input: {} })
      assert.deepEqual(broken.status === 'done' && broken.output, {
        content: [{ type: 'text', text: 'out of paper' }],
        isError: true,
      })
    })

    it('reports when it is closed, and keeps the tools', async () => {
      const { server } = createOwn(create, createWitness())
      const source = await fromMcpServer(server)
      const gate = createGate({ sources: [source] })
      await server.close()
      assert.match(String(source.failure), /closed/)
      const outcome = await (await gate.view(VIEWER)).call({ tool: 'add', input: { a: 1 } })
      assert.equal(outcome.status, 'failed')
      assert.equal((await gate.view(VIEWER)).size, 2)
    })

    it('is closed even if a close listener throws', async () => {
      const { server } = createOwn(create, createWitness())
      const source = await fromMcpServer(server)
      const low = (server as unknown as { server: { onclose?: () => void } }).server
      let told = 0
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
      low.onclose = () => {
        told++
        throw new Error('unheard')
      }
      source.close()
      // An unhandled rejection would end the process.
      await new Promise((resolve) => setImmediate(resolve))
      assert.deepEqual([told, source.failure?.message], [1, undefined])
    })

    it('has no tools if none are registered', async () => {
      const server = create()
      closing.push(() => server.close())
      assert.deepEqual([...(await fromMcpServer(server)).tools()], [])
    })

    for (const way of WAYS) {
      it(`is served by guard: ${way.name}`, async () => {
        const witness = createWitness()
        const { server } = createOwn(create, witness)
        const seen: unknown[] = []
        server.registerTool('whoami', {}, ((extra: Extra) => {
          const { authInfo = extra.authInfo, req } = extra.http ?? {}
          seen.push(authInfo?.extra, req?.headers.get('x-test') ?? extra.requestInfo?.headers['x-test'])
          return { content: [] }
        }) as never)
        const source = await fromMcpServer(server, { overlay: { delete_all: { tags: ['danger'] } } })
        const gate = createGate({
          sources: [source],
          policy: { deny: [{ match: 'tag:danger', unless: "'admin' in caller.roles" }] },
        })
        const open = await way.open(gate)
        closing.push(open.close)
        const viewer = await open.connect(VIEWER)
        closing.push(viewer.close)
        assert.deepEqual(
          (await viewer.list()).map(({ name }) => name),
          ['add', 'whoami'],
        )
        assert.deepEqual((await viewer.call('add', { a: 1, b: 4 })).structuredContent, { sum: 5 })
        assert.equal((await viewer.call('delete_all')).isError, true)
        await viewer.call('whoami')
        if (open.url !== undefined) assert.deepEqual(seen[0], VIEWER)
        const admin = await open.connect(ADMIN)
        closing.push(admin.close)
        assert.equal(textOf(await admin.call('delete_all')), 'delete_all done')
        assert.deepEqual(witness.ran, ['add', 'delete_all'])
      })
    }
  })
}

describe('fromMcpServer', () => {
  it('rejects a server that is already connected', async () => {
    const { server } = createOwn(SERVERS[1].create, createWitness())
    await fromMcpServer(server)
    await assert.rejects(fromMcpServer(server))
  })
})
