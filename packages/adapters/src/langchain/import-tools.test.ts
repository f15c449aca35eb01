import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RunnableLambda } from '@langchain/core/runnables'
import { DynamicTool, StructuredTool, tool as coreTool } from '@langchain/core/tools'
import { Command } from '@langchain/langgraph'
import { loadMcpTools } from '@langchain/mcp-adapters'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { createGate, type GateOptions } from '@toolgate/core'
import { createAgent, tool, ToolMessage, type ToolRuntime } from 'langchain'
import { z } from 'zod'
import { z as z3 } from 'zod/v3'
import { createTestAudit, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'
import { HELLO, scripted, type ScriptedCall, toldOf } from './testing/agents.ts'
import { fromLangChain, type LangChainTool } from './import-tools.ts'

/** Runs one turn of calls through an agent whose tools come from the gate alone. */
async function runOf(
  tools: readonly LangChainTool[],
  calls: readonly ScriptedCall[],
  options: Partial<GateOptions> = {},
) {
  const audit = createTestAudit()
  const record = fromLangChain(tools)
  const gate = createGate({ tools: record, audit, ...(options as object) })
  const model = scripted(calls)
  const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER, onWarning: () => {} })] })
  const result = await agent.invoke(HELLO, { context: { color: 'red' } as never })
  return { result, told: toldOf(result), model, audit, gate }
}

const call = (name: string, args: Record<string, unknown> = {}): ScriptedCall => ({ name, args, id: 'c1' })

describe('fromLangChain', () => {
  it('imports tools by their names, combined with the overlay', () => {
    const search = tool(() => 'found', {
      name: 'search',
      description: 'Searches.',
      schema: z.object({ q: z.string() }),
    })
    const gate = createGate({ tools: fromLangChain([search], { search: { tags: ['read'], requiredScopes: ['s'] } }) })
    const found = gate.catalog.get('search')
    assert.equal(found?.description, 'Searches.')
    assert.deepEqual(found.tags, ['read'])
    assert.deepEqual(found.requiredScopes, ['s'])
    assert.deepEqual(found.inputSchema['required'], ['q'])
  })

  it('refuses two tools of one name, an invalid tool, and an overlay of an unknown tool', () => {
    const search = tool(() => '', { name: 'search', schema: z.object({}) })
    assert.throws(() => fromLangChain([search, search]), /tools.search: two tools have this name/)
    assert.throws(() => fromLangChain([{}]), /must have a name/)
    assert.throws(() => fromLangChain([search], { serach: {} } as object), /unknown tool; did you mean "search"/)
  })

  it('validates at the gate, with zod of either version, and tells the model where', async () => {
    const four = tool(() => 'ran', { name: 'four', schema: z.object({ n: z.number() }) })
    const three = tool(() => 'ran', { name: 'three', schema: z3.object({ n: z3.number() }) as never })
    const json = tool(() => 'ran', {
      name: 'json',
      schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    })
    for (const [name, one] of Object.entries({ four, three, json })) {
      const { told, audit } = await runOf([one as LangChainTool], [call(name, { n: 'x' })])
      assert.match(told[0] ?? '', new RegExp(`^${name} error: TOOL_CALL_BLOCKED: invalid input at "/n"`))
      assert.deepEqual(audit.attempts(), [`${name} tool_blocked input_invalid`])
      assert.deepEqual((await runOf([one as LangChainTool], [call(name, { n: 1 })])).told, [`${name} success: ran`])
    }
  })

  it('passes the tool the exact input that was decided: schemas run once', async () => {
    let parsed = 0
    const seen: unknown[] = []
    const read = tool(
      (input) => {
        seen.push(input)
        return 'read'
      },
      {
        name: 'read',
        schema: z.object({
          path: z.string().transform((path) => {
            parsed++
            return `/etc/${path}`
          }),
          mode: z.string().default('text'),
        }),
      },
    )
    const deny = [{ match: 'read' as const, input: "input.path == '/etc/passwd'", message: 'Not that one.' }]
    const refused = await runOf([read], [call('read', { path: 'passwd' })], { policy: { deny } })
    assert.deepEqual(refused.told, ['read error: TOOL_CALL_BLOCKED: Not that one.'])
    parsed = 0
    await runOf([read], [call('read', { path: 'hosts' })], { policy: { deny } })
    assert.deepEqual(seen, [{ path: '/etc/hosts', mode: 'text' }])
    assert.equal(parsed, 1)
  })

  it('runs the validated input of a hook', async () => {
    const seen: unknown[] = []
    const read = tool((input) => void seen.push(input), { name: 'read', schema: z.object({ n: z.coerce.number() }) })
    const hooks = { beforeToolCall: () => ({ input: { n: '7' } }) }
    await runOf([read], [call('read', { n: '1' })], { hooks })
    assert.deepEqual(seen, [{ n: 7 }])
  })

  it('passes tools their own copy, which they may write to', async () => {
    const push = tool((input: { list: number[] }) => String(input.list.push(3)), {
      name: 'push',
      schema: z.object({ list: z.array(z.number()) }),
    })
    assert.deepEqual((await runOf([push], [call('push', { list: [1, 2] })])).told, ['push success: 3'])
  })

  it('passes tools LangChain’s own runtime', async () => {
    const who = tool(
      (_: object, { context, toolCallId, state }: ToolRuntime<{ messages: unknown[] }, { color: string }>) =>
        `${context.color} ${toolCallId} ${state.messages.length}`,
      { name: 'who', schema: z.object({}) },
    )
    assert.deepEqual((await runOf([who], [call('who')])).told, ['who success: red c1 2'])
  })

  it('passes artifacts, content blocks, messages and commands on untouched', async () => {
    const art = tool(() => ['shown', { rows: 3 }] as [string, object], {
      name: 'art',
      schema: z.object({}),
      responseFormat: 'content_and_artifact',
    })
    const blocks = tool(() => [{ type: 'text', text: 'a' }], { name: 'blocks', schema: z.object({}) })
    const message = new ToolMessage({ content: 'mine', tool_call_id: 'c1', name: 'own', additional_kwargs: { x: 1 } })
    const own = tool(() => message, { name: 'own', schema: z.object({}) })
    const jump = tool(
      () => new Command({ update: { messages: [new ToolMessage({ content: 'by command', tool_call_id: 'c1' })] } }),
      { name: 'jump', schema: z.object({}) },
    )
    const of = async (one: LangChainTool, name: string) => {
      const { result } = await runOf([one], [call(name)])
      return result.messages.find((each) => ToolMessage.isInstance(each)) as ToolMessage
    }
    const withArtifact = await of(art, 'art')
    assert.deepEqual([withArtifact.content, withArtifact.artifact], ['shown', { rows: 3 }])
    assert.deepEqual((await of(blocks, 'blocks')).content, [{ type: 'text', text: 'a' }])
    assert.deepEqual((await of(own, 'own')).additional_kwargs, { x: 1 })
    assert.equal((await of(jump, 'jump')).content, 'by command')
  })

  it('leaves async generators to LangChain: each event goes out as it comes', async () => {
    const count = coreTool(
      async function* () {
        yield 1
        yield 2
        return 'counted'
      },
      { name: 'count', description: 'Counts.', schema: z.object({}) },
    )
    const gate = createGate({ tools: fromLangChain([count]) })
    const agent = createAgent({
      model: scripted([call('count')]),
      middleware: [guard(gate, { caller: VIEWER })],
    })
    const events: unknown[] = []
    for await (const chunk of await agent.stream(HELLO, { streamMode: 'tools' }))
      if ((chunk as { event?: string }).event === 'on_tool_event') events.push((chunk as { data?: unknown }).data)
    assert.deepEqual(events, [1, 2])
  })

  it('runs tools of one text, runnables, and classes of one’s own with private fields', async () => {
    const echo = new DynamicTool({ name: 'echo', description: 'Echoes.', func: async (text) => `<${text}>` })
    const double = RunnableLambda.from(({ n }: { n: number }) => n * 2).asTool({
      name: 'double',
      description: 'Doubles.',
      schema: z.object({ n: z.number() }),
    })
    class Counter extends StructuredTool {
      override name = 'counter'
      override description = 'Counts.'
      override schema = z.object({ by: z.number().default(1) })
      #count = 41
      protected override _call({ by }: { by: number }): Promise<string> {
        return Promise.resolve(String((this.#count += by)))
      }
    }
    assert.deepEqual((await runOf([echo], [call('echo', { input: 'hi' })])).told, ['echo success: <hi>'])
    assert.deepEqual((await runOf([double as LangChainTool], [call('double', { n: 4 })])).told, ['double success: 8'])
    assert.deepEqual((await runOf([new Counter()], [call('counter')])).told, ['counter success: 42'])
  })

  it('goes through an invoke that a tool has of its own, which parses what the model wrote', async () => {
    class Own extends StructuredTool {
      override name = 'own'
      override description = 'Owns.'
      override schema
      constructor(schema: z.ZodObject) {
        super()
        this.schema = schema
      }
      override async invoke(...given: Parameters<StructuredTool['invoke']>): Promise<never> {
        return `own: ${((await super.invoke(...given)) as ToolMessage).text}` as never
      }
      protected override _call(input: unknown): Promise<string> {
        return Promise.resolve(JSON.stringify(input))
      }
    }
    const stable = new Own(z.object({ n: z.coerce.number() }))
    const growing = new Own(z.object({ n: z.number().transform((n) => n * 2) }))
    const dated = new Own(z.object({ at: z.string().transform((text) => new Date(text)) }))
    assert.deepEqual((await runOf([stable], [call('own', { n: '2' })])).told, ['own success: own: {"n":2}'])
    assert.deepEqual((await runOf([growing], [call('own', { n: 2 })])).told, ['own success: own: {"n":4}'])
    assert.deepEqual((await runOf([dated], [call('own', { at: '2026-01-01' })])).told, [
      'own success: own: {"at":"2026-01-01T00:00:00.000Z"}',
    ])
    const policy = { deny: [{ match: 'own' as const, input: 'input.n == 4', message: 'Not four.' }] }
    assert.deepEqual((await runOf([growing], [call('own', { n: 2 })], { policy })).told, [
      'own error: TOOL_CALL_BLOCKED: Not four.',
    ])
  })

  it('passes the tool what JSON cannot express, and decides what the model wrote', async () => {
    const seen: unknown[] = []
    const book = tool((input) => void seen.push(input), {
      name: 'book',
      schema: z.object({
        at: z.string().transform((text) => new Date(text)),
        at_url: z.url().transform((text) => new URL(text)),
      }),
    })
    const policy = { deny: [{ match: 'book' as const, input: "input.at == '2026-01-02'", message: 'Not then.' }] }
    const of = async (at: string) =>
      (await runOf([book], [call('book', { at, at_url: 'https://x.org/' })], { policy })).told
    await of('2026-01-01')
    assert.deepEqual(await of('2026-01-02'), ['book error: TOOL_CALL_BLOCKED: Not then.'])
    assert.deepEqual(seen, [{ at: new Date('2026-01-01'), at_url: new URL('https://x.org/') }])
  })

  it('leaves a validation that takes its time to the tool', async () => {
    const seen: unknown[] = []
    const book = tool((input) => void seen.push(input), {
      name: 'book',
      schema: z.object({
        n: z
          .string()
          .refine(async (text) => text !== 'x')
          .transform(Number),
      }),
    })
    await runOf([book], [call('book', { n: '1' })])
    const wrong = await runOf([book], [call('book', { n: 'x' })])
    assert.deepEqual(seen, [{ n: 1 }])
    assert.match(wrong.told[0] ?? '', /^book error: .*Received tool input did not match expected schema/)
  })

  it('sends a name that providers refuse as one that they take, and maps it back', async () => {
    const ran: string[] = []
    const odd = tool(() => ran.push('odd') && 'ok', { name: 'my:tool.really', schema: z.object({}) })
    const audit = createTestAudit()
    const gate = createGate({ tools: fromLangChain([odd]), audit })
    const model = scripted()
    const agent = createAgent({ model, tools: [odd], middleware: [guard(gate, { caller: VIEWER })] })
    await agent.invoke(HELLO)
    const [sent = ''] = model.sent[0] ?? []
    assert.match(sent, /^[A-Za-z0-9_-]{1,64}$/)
    const calls = scripted([{ name: sent, id: 'c1' }])
    const again = createAgent({ model: calls, tools: [odd], middleware: [guard(gate, { caller: VIEWER })] })
    assert.deepEqual(toldOf(await again.invoke(HELLO)), [`${sent} success: ok`])
    assert.deepEqual(ran, ['odd'])
    assert.deepEqual(audit.attempts(), ['my:tool.really tool_call', 'my:tool.really tool_result'])
  })

  it('takes the hints of MCP servers for claims: they tighten, and only the overlay loosens', async () => {
    const server = new McpServer({ name: 's', version: '1.0.0' })
    const claims = { readOnlyHint: true, destructiveHint: false }
    server.registerTool(
      'wipe',
      { description: 'Wipes.', inputSchema: { all: z.boolean() }, annotations: claims },
      ({ all }) => ({
        content: [{ type: 'text', text: `wiped ${all}` }],
      }),
    )
    const client = new Client({ name: 'c', version: '1.0.0' })
    const [here, there] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(there), client.connect(here)])
    const tools = await loadMcpTools('s', client as never)
    const policy = { deny: ['hint:destructive' as const] }
    const bare = await runOf(tools, [call('wipe', { all: true })], { policy })
    assert.match(bare.told[0] ?? '', /"wipe" is not available/)
    const record = fromLangChain(tools, { wipe: { annotations: claims } })
    const gate = createGate({ tools: record, policy })
    const agent = createAgent({
      model: scripted([call('wipe', { all: true })]),
      middleware: [guard(gate, { caller: VIEWER })],
    })
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), ['wipe success: wiped true'])
    await client.close()
    await server.close()
  })
})
