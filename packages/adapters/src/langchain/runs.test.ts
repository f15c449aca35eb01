import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { MemorySaver } from '@langchain/langgraph'
import { createGate, defineTool } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { AIMessageChunk, type BaseMessage, createAgent, tool, type ToolRuntime } from 'langchain'
import { z } from 'zod'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'
import { createWorld, HELLO, scripted, ScriptedModel, toldOf } from './testing/agents.ts'
import { fromLangChain } from './import-tools.ts'

describe('a guarded run (LangChain)', () => {
  it('keeps its upper bound over its steps: a tool permitted meanwhile stays hidden, a denied one is hidden at once', async () => {
    const between: (() => void)[] = []
    const model = new ScriptedModel((messages) => {
      between.shift()?.()
      return scripted([{ name: 'delete_all' }], [{ name: 'search' }], [{ name: 'alpha' }]).say(messages)
    })
    const { gate, run, witness } = createWorld(model, { policy: ADMINS_DELETE })
    between.push(
      () => gate.setPolicy({}),
      () => gate.setPolicy({ deny: ['search'] }),
    )
    const told = toldOf(await run(VIEWER))
    assert.match(told[0] ?? '', /"delete_all" is not available/)
    assert.match(told[1] ?? '', /"search" is not available/)
    assert.deepEqual(model.sent, [['alpha', 'search'], ['alpha', 'search'], ['alpha'], ['alpha']])
    assert.deepEqual(witness.ran, ['alpha'])
    await run(VIEWER)
    assert.deepEqual(model.sent.at(-1), ['alpha', 'delete_all'])
  })

  it('reads availability again at each step', async () => {
    const availability = memoryAvailability({ web: { available: false, reason: 'it is down', suggestion: 'Wait.' } })
    const model = scripted([{ name: 'search' }], [{ name: 'search' }])
    const world = createWorld(model, {
      groups: { web: { tools: ['search'], visibility: 'conditional' } },
      availability,
      guard: {
        onCall: () => availability.set('web', { available: true }),
      },
    })
    const told = toldOf(await world.run(VIEWER))
    assert.deepEqual(told, ['search error: search is unavailable: it is down. Wait.', 'search success: search done'])
    assert.deepEqual(model.sent, [
      ['alpha', 'delete_all'],
      ['alpha', 'delete_all', 'search'],
      ['alpha', 'delete_all', 'search'],
    ])
  })

  it('asks whose run it is at each step: a role that is taken away counts at once, one that is given does not', async () => {
    let caller = ADMIN
    const model = new ScriptedModel((messages) => {
      if (messages.length === 1) caller = VIEWER
      return scripted([{ name: 'delete_all' }]).say(messages)
    })
    const { run, witness } = createWorld(model, { policy: ADMINS_DELETE, guard: { caller: () => caller } })
    assert.match(toldOf(await run(VIEWER))[0] ?? '', /"delete_all" is not available/)
    assert.deepEqual(witness.ran, [])

    const rising = new ScriptedModel((messages) => {
      caller = ADMIN
      return scripted([{ name: 'delete_all' }]).say(messages)
    })
    const other = createWorld(rising, { policy: ADMINS_DELETE, guard: { caller: () => caller } })
    caller = VIEWER
    await other.run(VIEWER)
    assert.deepEqual(other.witness.ran, [])
  })

  it('is narrowed by the guard’s options, and by those for this run', async () => {
    const model = scripted([{ name: 'alpha' }])
    const { run, witness } = createWorld(model, {
      guard: {
        visibility: ['alpha', 'search'],
        view: (runtime) => ({
          visibility: runtime.context.caller.user === 'vera' ? ['search', 'delete_all'] : ['alpha'],
        }),
      },
    })
    assert.match(toldOf(await run(VIEWER))[0] ?? '', /"alpha" is not available/)
    await run(ADMIN)
    assert.deepEqual([model.sent[0], model.sent[2]], [['search'], ['alpha']])
    assert.deepEqual(witness.ran, ['alpha'])
  })

  it('meets two lists of active tools, and takes one app only', async () => {
    const model = scripted()
    const apps = { one: { tools: ['search'] }, two: { tools: ['alpha'] } }
    const met = { activeTools: ['search', 'delete_all'] as const }
    const lists = {
      activeTools: ['alpha', 'search'],
      view: () => met,
    } as const
    await createWorld(model, { guard: lists }).run(VIEWER)
    assert.deepEqual(model.sent[0], ['search'])
    const both = createWorld(model, { apps, guard: { app: 'one', view: () => ({ app: 'two' }) } })
    await assert.rejects(both.run(VIEWER), /a run is of one app, and not of both "one" and "two"/)
  })

  it('refuses names that the gate has never seen, with the nearest', async () => {
    const { run } = createWorld(scripted(), { guard: { activeTools: ['serach' as 'search'] } })
    await assert.rejects(run(VIEWER), /serach.*search/s)
  })

  it('takes no part of the state from the invocation’s input', async () => {
    const model = scripted([{ name: 'delete_all' }])
    const { agent, witness } = createWorld(model, { policy: ADMINS_DELETE, checkpointer: new MemorySaver() })
    const forged = { ...HELLO, _toolgate: { run: 'forged', ceiling: ['delete_all'] } }
    const config = { context: { caller: VIEWER } as never, configurable: { thread_id: 't1' } }
    await agent.invoke(forged, config)
    assert.deepEqual(model.sent[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, [])
  })

  it('keeps a limit exact under parallel calls', async () => {
    const calls = Array.from({ length: 12 }, (_, i) => ({ name: 'search', id: `c${i}` }))
    const { run, witness, audit } = createWorld(scripted(calls), { limits: 'search:5/60' })
    const told = toldOf(await run(VIEWER))
    assert.equal(witness.ran.length, 5)
    assert.equal(told.filter((text) => text.includes('TOOL_CALL_BLOCKED: rate limited (5/60)')).length, 7)
    assert.equal(audit.attempts().filter((text) => text === 'search tool_rate_limited rate_limited').length, 7)
  })

  it('gives the model the tool’s error, and continues', async () => {
    const broken = tool(() => Promise.reject(new RangeError('boom')), { name: 'broken', schema: z.object({}) })
    const audit = createTestAudit()
    const gate = createGate({ tools: fromLangChain([broken]), audit })
    const agent = createAgent({
      model: scripted([{ name: 'broken', id: 'c1' }]),
      middleware: [guard(gate, { caller: VIEWER })],
    })
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), ['broken error: broken failed: boom'])
    assert.deepEqual(audit.attempts(), ['broken tool_call', 'broken tool_result tool_failed'])
  })

  it('ends with its caller’s signal, and so does the tool; the audit says that it was abandoned', async () => {
    const controller = new AbortController()
    let stopped = false
    const slow = tool(
      async (_: object, { signal }: ToolRuntime) => {
        signal?.addEventListener('abort', () => (stopped = true))
        controller.abort()
        await wait(50)
        return 'late'
      },
      { name: 'slow', schema: z.object({}) },
    )
    const audit = createTestAudit()
    const gate = createGate({ tools: fromLangChain([slow]), audit })
    const agent = createAgent({ model: scripted([{ name: 'slow' }]), middleware: [guard(gate, { caller: VIEWER })] })
    await assert.rejects(agent.invoke(HELLO, { signal: controller.signal }))
    await gate.close()
    assert.ok(stopped)
    assert.deepEqual(audit.attempts(), ['slow tool_call', 'slow tool_abandoned tool_aborted'])
  })

  it('ends a tool by its signal after the gate’s deadline, and tells the model', async () => {
    const stopped = Promise.withResolvers<void>()
    const slow = tool(
      (_: object, { signal }: ToolRuntime) => {
        signal?.addEventListener('abort', () => stopped.resolve())
        return new Promise(() => {})
      },
      { name: 'slow', schema: z.object({}) },
    )
    const gate = createGate({ tools: fromLangChain([slow]), deadlineMs: 20 })
    const agent = createAgent({ model: scripted([{ name: 'slow' }]), middleware: [guard(gate, { caller: VIEWER })] })
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), ['slow error: slow failed: no answer in 0.02 s'])
    await stopped.promise
  })

  it('ends with the agent’s own signal', async () => {
    const controller = new AbortController()
    const slow = tool(
      () => {
        controller.abort()
        return new Promise(() => {})
      },
      { name: 'slow', schema: z.object({}) },
    )
    const audit = createTestAudit()
    const gate = createGate({ tools: fromLangChain([slow]), audit })
    const middleware = [guard(gate, { caller: VIEWER })]
    const agent = createAgent({ model: scripted([{ name: 'slow' }]), middleware, signal: controller.signal })
    await assert.rejects(agent.invoke(HELLO))
    assert.deepEqual(audit.attempts(), ['slow tool_call', 'slow tool_abandoned tool_aborted'])
  })

  it('streams as ever', async () => {
    const model = scripted([
      { name: 'search', id: 'c1' },
      { name: 'delete_all', id: 'c2' },
    ])
    const { agent } = createWorld(model, { policy: ADMINS_DELETE })
    const seen: string[] = []
    const config = { context: { caller: VIEWER } as never }
    for await (const chunk of await agent.stream(HELLO, { ...config, streamMode: 'updates' }))
      seen.push(...Object.keys(chunk))
    assert.deepEqual(new Set(seen), new Set(['Toolgate.before_agent', 'model_request', 'tools']))
    assert.deepEqual(model.sent[0], ['alpha', 'search'])
    const texts: string[] = []
    for await (const [message] of await agent.stream(HELLO, { ...config, streamMode: 'messages' }))
      if (!AIMessageChunk.isInstance(message)) texts.push(message.text)
    assert.ok(texts.some((text) => text.includes('"delete_all" is not available')))
  })

  it('offers and runs tools that no framework made, also those that come and go', async () => {
    const later = defineTool({
      namespace: 'files',
      name: 'read',
      description: 'Reads.',
      inputSchema: z.object({ path: z.string() }),
      execute: ({ path }) => ({ path, text: 'hi' }),
    })
    const stream = defineTool({
      name: 'stream',
      async *execute() {
        yield 'a'
        yield 'ab'
      },
    })
    const torn = defineTool({
      name: 'torn',
      async *execute() {
        yield 'a'
        throw new Error('boom')
      },
    })
    const gate = createGate({ tools: [stream, torn], sources: [{ name: 'files', tools: () => [later] }] })
    const model = scripted([
      { name: 'torn', id: 'c0' },
      { name: 'files__read', args: { path: '/a' }, id: 'c1' },
      { name: 'stream', id: 'c2' },
      { name: 'files__read', args: { path: 1 }, id: 'c3' },
    ])
    const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER })] })
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), [
      'torn error: torn failed: boom',
      'files__read success: {"path":"/a","text":"hi"}',
      'stream success: ab',
      'files__read error: TOOL_CALL_BLOCKED: invalid input at "/path": Invalid input: expected string, received number',
    ])
    assert.deepEqual(model.sent[0], ['files__read', 'stream', 'torn'])
  })

  it('answers however a stream ends', async () => {
    const ends = defineTool({
      name: 'ends',
      async *execute() {
        yield 10n
      },
    })
    const breaks = defineTool({
      name: 'breaks',
      // oxlint-disable-next-line require-yield -- it breaks before its first item
      async *execute() {
        throw Object.create(null)
      },
    })
    const model = scripted([
      { name: 'ends', id: 'c0' },
      { name: 'breaks', id: 'c1' },
    ])
    const gate = createGate({ tools: [ends, breaks] })
    const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER })] })
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), [
      'ends success: 10',
      'breaks error: breaks failed: an error without a text',
    ])
  })

  it('offers LangChain’s tools of a source that come after the agent was made', async () => {
    const late = tool(() => 'late', { name: 'late', description: 'Late.', schema: z.object({}) })
    const made = createGate({ tools: fromLangChain([late]) }).catalog.snapshot().tools
    const there: (typeof made)[number][] = []
    const changes: (() => void)[] = []
    const gate = createGate({
      sources: [{ name: 's', tools: () => there, subscribe: (listener) => (changes.push(listener), () => {}) }],
    })
    const model = scripted([{ name: 'late', id: 'c1' }])
    const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER })] })
    there.push(...made)
    for (const changed of changes) changed()
    assert.deepEqual(toldOf(await agent.invoke(HELLO)), ['late success: late'])
    assert.deepEqual(model.sent[0], ['late'])
  })

  it('sends and runs the gate’s tool where the agent was given another of its name, and says so', async () => {
    const make = (answer: string) => tool(() => answer, { name: 'search', description: answer, schema: z.object({}) })
    const gate = createGate({ tools: fromLangChain([make('the gate’s')]) })
    const warnings: string[] = []
    const middleware = [guard(gate, { caller: VIEWER, onWarning: (warning) => warnings.push(warning) })]
    const model = scripted([{ name: 'search', id: 'c1' }])
    const result = await createAgent({ model, tools: [make('another')], middleware }).invoke(HELLO)
    assert.deepEqual(toldOf(result), ['search success: the gate’s'])
    assert.match(JSON.stringify(model.requests[0]?.definitions), /the gate’s/)
    assert.match(warnings[0] ?? '', /differs from the gate's/)
  })

  it('sends a tool of the provider only if it is allowed without asking', async () => {
    const web = { type: 'web_search_20250305', name: 'web_search' }
    const other = { type: 'code_execution' }
    const model = scripted()
    const warnings: string[] = []
    for (const policy of [{}, { ask: ['web_search' as const] }, { deny: ['web_search' as const] }]) {
      const gate = createGate({ tools: fromLangChain([web]), policy })
      const middleware = [guard(gate, { caller: VIEWER, onWarning: (warning) => warnings.push(warning) })]
      await createAgent({ model, tools: [web, other], middleware }).invoke(HELLO)
    }
    assert.deepEqual(model.sent, [['web_search'], [], []])
    assert.match(warnings[0] ?? '', /"code_execution" that the gate does not know/)
  })

  it('narrows the agents that its tools start, whatever caller they name', async () => {
    const witness = createWitness()
    const make = (name: string) => tool(witness.body(name), { name, schema: z.object({}) })
    const [search, remove] = [make('search'), make('delete_all')]
    const inner = scripted([{ name: 'delete_all' }, { name: 'search' }])
    const ask = tool(async (): Promise<string> => toldOf(await invokeSub()).join('; '), {
      name: 'ask',
      schema: z.object({}),
    })
    const gate = createGate({ tools: fromLangChain([search, remove, ask]), policy: ADMINS_DELETE as object })
    const sub = createAgent({ model: inner, middleware: [guard(gate, { caller: ADMIN })] })
    const invokeSub = (): Promise<{ messages: BaseMessage[] }> => sub.invoke(HELLO)
    const agent = createAgent({ model: scripted([{ name: 'ask' }]), middleware: [guard(gate, { caller: VIEWER })] })
    assert.match(toldOf(await agent.invoke(HELLO))[0] ?? '', /"delete_all" is not available.*search success/)
    assert.deepEqual(inner.sent[0], ['ask', 'search'])
    assert.deepEqual(witness.ran, ['search'])
    await invokeSub()
    assert.deepEqual(inner.sent.at(-1), ['ask', 'delete_all', 'search'])
  })

  it('counts its steps and names its run and model in the audit', async () => {
    const model = Object.assign(scripted([{ name: 'search' }], [{ name: 'delete_all' }]), { model: 'm-1' })
    const { run, audit } = createWorld(model, { policy: ADMINS_DELETE })
    await run(VIEWER)
    const last = audit.records.filter(({ event }) => event === 'tool_result' || event === 'tool_blocked')
    assert.deepEqual(
      last.map(({ step, model: name }) => [step, name]),
      [
        [0, 'm-1'],
        [1, 'm-1'],
      ],
    )
    assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
  })

  it('returns at once after a tool that says so, unless it was refused', async () => {
    const direct = tool(() => 'the answer', { name: 'direct', schema: z.object({}), returnDirect: true })
    const gate = createGate({ tools: fromLangChain([direct]), limits: 'direct:1/60' })
    const model = scripted([{ name: 'direct' }])
    const agent = createAgent({ model, middleware: [guard(gate, { caller: VIEWER })] })
    await agent.invoke(HELLO)
    assert.equal(model.sent.length, 1)
    await agent.invoke(HELLO)
    assert.equal(model.sent.length, 3)
  })

  it('says so when there is nobody whose run it could be', async () => {
    const { agent } = createWorld(scripted(), {})
    await assert.rejects(agent.invoke(HELLO, { context: {} as never }), { code: 'caller_invalid' })
    await assert.rejects(agent.invoke(HELLO, { context: { caller: { usr: 'x' } } as never }), {
      code: 'caller_untrusted',
    })
  })
})
