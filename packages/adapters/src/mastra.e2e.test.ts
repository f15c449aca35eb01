import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from '@mastra/core/agent'
import { RequestContext } from '@mastra/core/request-context'
import { createTool } from '@mastra/core/tools'
import { type Caller, createGate, UnknownToolError } from '@toolgate/core'
import { z } from 'zod'
import { fromMastra, guard } from './mastra.ts'
import { callOf, contextOf, createAgent, createScene, createTools } from './testing/mastra-scene.ts'
import { mockModel, type Turn } from './testing/mock-model.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from './testing/world.ts'

const AS_VIEWER = () => ({ requestContext: contextOf(VIEWER) })
const AS_ADMIN = () => ({ requestContext: contextOf(ADMIN) })
const DELETES: readonly Turn[] = [[callOf('delete_all')], 'done']
const NOT_THERE = 'Tool "delete_all" is not available. Available tools: alpha, search.'

/** Both of Mastra's loops: they run tools at different moments. */
const LOOPS = {
  async generate(agent: Agent, options: { requestContext: RequestContext }) {
    return (await agent.generate('go', options)).text
  },
  async stream(agent: Agent, options: { requestContext: RequestContext }) {
    return (await agent.stream('go', options)).text
  },
}

describe('guard of Mastra', () => {
  for (const [loop, run] of Object.entries(LOOPS)) {
    it(`sends what the caller sees, and ${loop} runs it`, async () => {
      const { gate, witness, audit } = createScene()
      const { agent, model } = createAgent(gate, DELETES)
      assert.equal(await run(agent, AS_ADMIN()), 'done')
      assert.deepEqual(model.sent(), [
        ['alpha', 'delete_all', 'search'],
        ['alpha', 'delete_all', 'search'],
      ])
      assert.deepEqual(witness.ran, ['delete_all'])
      assert.deepEqual(audit.attempts(), ['delete_all tool_call', 'delete_all tool_result'])
    })

    it(`neither sends a hidden tool nor lets ${loop} run it, and tells so in the gate's words`, async () => {
      const { gate, witness, audit } = createScene()
      const { agent, model } = createAgent(gate, DELETES)
      assert.equal(await run(agent, AS_VIEWER()), 'done')
      assert.deepEqual(model.sent(), [
        ['alpha', 'search'],
        ['alpha', 'search'],
      ])
      assert.deepEqual(model.told(), { 'call-delete_all': { type: 'error-text', value: NOT_THERE } })
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
    })
  }

  it('records the hidden call of a run that ends with it', async () => {
    const { gate, audit } = createScene()
    const { agent } = createAgent(gate, DELETES)
    await agent.generate('go', { ...AS_VIEWER(), maxSteps: 1 })
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  for (const name of ['constructor', '__proto__', 'toString', 'Delete_all', 'delete_all ', 'functions.delete_all'])
    it(`knows no tool by the name ${JSON.stringify(name)}`, async () => {
      const { gate, witness, audit } = createScene()
      const { agent, model } = createAgent(gate, [[callOf(name, {}, 'call-1')], 'done'])
      await agent.generate('go', AS_VIEWER())
      assert.match(JSON.stringify(model.told()['call-1']), /is not available\. Available tools: /)
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(
        audit.records.map(({ event, reason }) => [event, reason]),
        [['tool_blocked', 'tool_not_found']],
      )
    })

  it('says where a record belongs: the run, its step and the model', async () => {
    const { gate, audit } = createScene()
    const { agent } = createAgent(gate, [[callOf('search')], [callOf('delete_all')], 'done'])
    await agent.generate('go', AS_VIEWER())
    const [first, , last] = audit.records
    assert.deepEqual([first?.step, first?.model], [0, 'mock-model-id'])
    assert.deepEqual([last?.step, last?.model], [1, 'mock-model-id'])
    assert.equal(first?.run_id, last?.run_id)
    assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
  })

  it('passes the tool what JSON cannot express, and decides what the model wrote', async () => {
    const seen: unknown[] = []
    const book = createTool({
      id: 'book',
      description: 'Books.',
      inputSchema: z.object({
        at: z.string().transform((text) => new Date(text)),
        note: z.string().transform((text) => text.length),
        rooms: z.number().default(1),
      }),
      execute: async (input) => void seen.push(input),
    })
    const deny = [{ match: 'book', input: "input.at == '2026-01-02' || input.note == 'rather long'" }]
    const gate = createGate({ tools: fromMastra({ book }), policy: { deny } as object })
    const of = (at: string, note: string) => callOf('book', { at, note }, `${at} ${note}`)
    const calls = [of('2026-01-01', 'short'), of('2026-01-02', 'short'), of('2026-01-01', 'rather long')]
    const { agent } = createAgent(gate as never, [calls, 'done'])
    await agent.generate('go', { requestContext: contextOf(VIEWER) })
    assert.deepEqual(seen, [{ at: new Date('2026-01-01'), note: 5, rooms: 1 }])
  })

  it('checks an input with the tool’s schema, and points to the problem', async () => {
    const { gate, witness, audit } = createScene()
    const { agent, model } = createAgent(gate, [[callOf('search', { q: 7 })], 'done'])
    await agent.generate('go', AS_VIEWER())
    const value = 'TOOL_CALL_BLOCKED: invalid input at "/q": Invalid input: expected string, received number'
    assert.deepEqual(model.told(), { 'call-search': { type: 'error-text', value } })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['search tool_blocked input_invalid'])
  })

  it('is as tolerant of inputs as Mastra: null stands for an absent field', async () => {
    const { gate, witness } = createScene()
    const { agent } = createAgent(gate, [[callOf('search', { q: null })], 'done'])
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(witness.ran, ['search'])
  })

  for (const text of ['no JSON', '"a text"', '[1]', 'null'])
    it(`refuses and records an input that is ${text}`, async (t) => {
      t.mock.method(console, 'error', () => {})
      const audit = createTestAudit()
      const witness = createWitness()
      const pay = createTool({
        id: 'pay',
        description: 'Pays.',
        inputSchema: z.object({ cents: z.number() }),
        execute: () => Promise.resolve(witness.body('pay')()),
      })
      const { agent, model } = createAgent(createGate({ tools: fromMastra({ pay }), audit }), [
        [{ name: 'pay', id: 'call-1', text }],
        'done',
      ])
      await agent.generate('go', AS_VIEWER())
      assert.match(JSON.stringify(model.told()['call-1']), /TOOL_CALL_BLOCKED: invalid input/)
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(audit.attempts(), ['pay tool_blocked input_invalid'])
    })

  it('lets one agent serve many callers at once', async () => {
    const { gate, witness } = createScene()
    const turns: Parameters<typeof mockModel>[0] = (options) =>
      options.prompt.some(({ role }) => role === 'tool') ? 'done' : [callOf('delete_all'), callOf('search')]
    const { agent, model } = createAgent(gate, turns)
    const asking = Array.from({ length: 60 }, async (_, i) => {
      await sleep(i % 7)
      return agent.generate(i % 2 === 0 ? 'viewer' : 'admin', i % 2 === 0 ? AS_VIEWER() : AS_ADMIN())
    })
    await Promise.all(asking)
    for (const { prompt, tools } of model.requests) {
      const isAdmin = JSON.stringify(prompt).includes('"admin"')
      const names = (tools ?? []).map(({ name }) => name)
      assert.deepEqual(names, isAdmin ? ['alpha', 'delete_all', 'search'] : ['alpha', 'search'])
    }
    assert.equal(witness.ran.filter((name) => name === 'delete_all').length, 30)
    assert.equal(witness.ran.filter((name) => name === 'search').length, 60)
  })

  it('keeps runs apart that share one context', async () => {
    const { gate, witness, audit } = createScene()
    const turns: Parameters<typeof mockModel>[0] = (options) =>
      options.prompt.some(({ role }) => role === 'tool') ? 'done' : [callOf('delete_all', {}, `${Math.random()}`)]
    const { agent } = createAgent(gate, turns)
    const requestContext = contextOf(VIEWER)
    await Promise.all(Array.from({ length: 10 }, () => agent.generate('go', { requestContext })))
    assert.deepEqual(witness.ran, [])
    assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 10)
  })

  it('runs nothing where nobody asks', async () => {
    const { gate, witness } = createScene()
    const { agent, model } = createAgent(gate, DELETES)
    await assert.rejects(agent.generate('go'), /caller/i)
    assert.deepEqual([model.requests.length, witness.ran], [0, []])
  })

  it('runs no more than the limit, however many calls are made at once', async () => {
    const { gate, witness, audit } = createScene({ limits: 'search:2/60' })
    const calls = Array.from({ length: 5 }, (_, i) => callOf('search', {}, `call-${i}`))
    const { agent, model } = createAgent(gate, [calls, 'done'])
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(witness.ran, ['search', 'search'])
    const refused = Object.values(model.told()).filter((told) => JSON.stringify(told).includes('rate limited (2/60)'))
    assert.equal(refused.length, 3)
    assert.equal(audit.attempts().filter((attempt) => attempt.includes('tool_rate_limited')).length, 3)
  })

  it('passes on the tool’s error, and records it', async () => {
    const audit = createTestAudit()
    const broken = createTool({
      id: 'broken',
      description: 'Breaks.',
      execute: () => Promise.reject(new Error('no paper left')),
    })
    const { agent, model } = createAgent(createGate({ tools: fromMastra({ broken }), audit }), [
      [callOf('broken')],
      'done',
    ])
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(model.told(), { 'call-broken': { type: 'error-text', value: 'no paper left' } })
    assert.deepEqual(audit.attempts(), ['broken tool_call', 'broken tool_result tool_failed'])
  })

  it('passes a tool Mastra’s context, and aborts it with the run', async () => {
    const audit = createTestAudit()
    const aborting = new AbortController()
    const seen: unknown[] = []
    const slow = createTool({
      id: 'slow',
      description: 'Waits.',
      execute: async (_, { requestContext, agent, abortSignal }) => {
        seen.push(requestContext.get('caller'), agent?.toolCallId)
        queueMicrotask(() => aborting.abort())
        await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve, { once: true }))
        throw new Error('aborted')
      },
    })
    const { agent } = createAgent(createGate({ tools: fromMastra({ slow }), audit }), [[callOf('slow')], 'done'])
    await agent.generate('go', { ...AS_VIEWER(), abortSignal: aborting.signal })
    assert.deepEqual(seen, [VIEWER, 'call-slow'])
    assert.deepEqual(audit.attempts(), ['slow tool_call', 'slow tool_abandoned tool_aborted'])
  })

  it('lets a tool write into the stream of the run', async () => {
    const chatty = createTool({
      id: 'chatty',
      description: 'Tells how far it is.',
      execute: async (_, { writer }) => {
        await writer?.write({ step: 1 })
        await writer?.write({ step: 2 })
        return 'both'
      },
    })
    const { agent, model } = createAgent(createGate({ tools: fromMastra({ chatty }) }), [[callOf('chatty')], 'done'])
    const { fullStream } = await agent.stream('go', AS_VIEWER())
    const steps: unknown[] = []
    for await (const chunk of fullStream) if (chunk.type === 'tool-output') steps.push(chunk.payload.output)
    assert.deepEqual(steps, [{ step: 1 }, { step: 2 }])
    assert.deepEqual(model.told(), { 'call-chatty': { type: 'text', value: 'both' } })
  })

  it('passes an async generator on unchanged, and its call ends with it', async () => {
    const audit = createTestAudit()
    const parts = createTool({
      id: 'parts',
      description: 'Comes in parts.',
      execute: () => Promise.resolve(Readable.from(['one', 'two'])[Symbol.asyncIterator]()),
    })
    const { agent } = createAgent(createGate({ tools: fromMastra({ parts }), audit }), [[callOf('parts')], 'done'])
    const read: unknown[] = []
    const hooks = {
      async afterToolCall({ output }: { output?: unknown }) {
        read.push(...audit.attempts())
        for await (const part of output as AsyncIterable<string>) read.push(part)
        read.push(...audit.attempts())
      },
    }
    await agent.generate('go', { ...AS_VIEWER(), hooks })
    assert.deepEqual(read, ['parts tool_call', 'one', 'two', 'parts tool_call', 'parts tool_result'])
  })

  it('maps names that a provider refuses, or that Mastra would cut, and back', async () => {
    const audit = createTestAudit()
    const witness = createWitness()
    const ids = ['files:read', '7up', 'größe', `${'long_'.repeat(14)}a`, `${'long_'.repeat(14)}b`]
    const tools = Object.fromEntries(
      ids.map((id) => [
        id,
        createTool({ id: 'x', description: id, execute: () => Promise.resolve(witness.body(id)()) }),
      ]),
    )
    const turns: Parameters<typeof mockModel>[0] = ({ tools: sent = [] }, index) =>
      index === 0 ? sent.map(({ name }, i) => callOf(name, {}, `call-${i}`)) : 'done'
    const { agent, model } = createAgent(createGate({ tools: fromMastra(tools), audit }), turns)
    await agent.generate('go', AS_VIEWER())
    for (const name of model.sent()[0] ?? []) assert.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/)
    assert.deepEqual(witness.ran.toSorted(), ids.toSorted())
    assert.ok(audit.records.every(({ tool = '' }) => ids.includes(tool)))
  })

  it('offers the other tools of the gate too', async () => {
    const gate = createGate({
      tools: {
        greet: {
          description: 'Greets.',
          inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          execute: ({ name }) => `Hello ${name}`,
        },
      },
    })
    const { agent, model } = createAgent(gate, [[callOf('greet', { name: 'Vera' })], 'done'])
    await agent.generate('go', AS_VIEWER())
    const [sent] = model.requests[0]?.tools ?? []
    assert.deepEqual(sent?.type === 'function' && [sent.description, sent.inputSchema.required], ['Greets.', ['name']])
    assert.deepEqual(model.told(), { 'call-greet': { type: 'text', value: 'Hello Vera' } })
  })
})

describe('guard of Mastra, step by step', () => {
  it('follows the policy: a tool denied during a run is gone from its next step', async () => {
    const { gate, witness } = createScene({ policy: {}, hooks: { afterToolCall: () => tighten() } })
    const tighten = () => gate.setPolicy(ADMINS_DELETE)
    const { agent, model } = createAgent(gate, [
      [callOf('delete_all', {}, '1')],
      [callOf('delete_all', {}, '2')],
      'done',
    ])
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(model.sent(), [
      ['alpha', 'delete_all', 'search'],
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('shows a group from the step after it was opened', async () => {
    const caller: Caller = { ...ADMIN, session: 's1' }
    const { gate, witness } = createScene({
      groups: { danger: { tools: ['delete_all'], unlock: 'request' } },
      hooks: { afterToolCall: () => void gate.locks.request(caller, 'danger') },
    })
    const { agent, model } = createAgent(gate, [
      [callOf('delete_all', {}, '1')],
      [callOf('search')],
      [callOf('delete_all', {}, '2')],
      'done',
    ])
    await agent.generate('go', { requestContext: contextOf(caller) })
    assert.deepEqual(
      model.sent().map((names) => names.includes('delete_all')),
      [false, false, true, true],
    )
    assert.deepEqual(witness.ran, ['search', 'delete_all'])
  })

  it('offers request_tools if a group is locked, and the opened tools from the next step on', async () => {
    const { gate, witness } = createScene({ groups: { danger: { tools: ['delete_all'], unlock: 'request' } } })
    const { agent, model } = createAgent(gate, [
      [callOf('request_tools', { group: 'danger' }, '1')],
      [callOf('delete_all', {}, '2')],
      'done',
    ])
    await agent.generate('go', { requestContext: contextOf({ ...ADMIN, session: 's1' }) })
    assert.deepEqual(model.sent(), [
      ['alpha', 'request_tools', 'search'],
      ['alpha', 'delete_all', 'search'],
      ['alpha', 'delete_all', 'search'],
    ])
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('reads the caller at each call: a role revoked within a step is gone', async () => {
    const requestContext = contextOf(ADMIN)
    const { gate, witness } = createScene({ hooks: { afterToolCall: () => requestContext.set('caller', VIEWER) } })
    const { agent } = createAgent(gate, [[callOf('search'), callOf('delete_all')], 'done'])
    await agent.generate('go', { requestContext, toolCallConcurrency: 1 })
    assert.deepEqual(witness.ran, ['search'])
  })

  it('narrows to what `activeTools` names', async () => {
    const { gate, witness, audit } = createScene()
    const { agent, model } = createAgent(gate, [[callOf('alpha')], 'done'])
    await agent.generate('go', { ...AS_VIEWER(), activeTools: ['search'] })
    assert.deepEqual(model.sent(), [['search'], ['search']])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['alpha tool_blocked step_inactive'])
  })

  it('sends no tools where `activeTools` is empty', async () => {
    const { gate } = createScene()
    const { agent, model } = createAgent(gate, ['done'])
    await agent.generate('go', { ...AS_VIEWER(), activeTools: [] })
    assert.deepEqual(model.sent(), [[]])
  })

  it('names the nearest where `activeTools` names no tool', async () => {
    const { gate } = createScene()
    const { agent, model } = createAgent(gate, DELETES)
    await assert.rejects(agent.generate('go', { ...AS_VIEWER(), activeTools: ['serach'] }), (error: Error) => {
      const cause = error instanceof UnknownToolError ? error : error.cause
      assert.match(String((cause ?? error) as Error), /serach.*search/)
      return true
    })
    assert.equal(model.requests.length, 0)
  })

  it('names the nearest where the view of the request names no tool', async () => {
    const { gate } = createScene()
    const { agent, model } = createAgent(gate, DELETES, { activeTools: ['serach'] })
    await assert.rejects(agent.generate('go', AS_VIEWER()), /serach.*search/)
    assert.equal(model.requests.length, 0)
  })

  const widening = {
    activeTools: { activeTools: ['search', 'delete_all'] },
    prepareStep: { prepareStep: () => ({ activeTools: ['search', 'delete_all'] }) },
    'an agent-wide prepareStep': {},
  }
  for (const [option, options] of Object.entries(widening))
    it(`cannot be widened by ${option}`, async () => {
      const { gate, witness } = createScene()
      const after = option === 'an agent-wide prepareStep' ? { defaultOptions: widening.prepareStep as object } : {}
      const { agent, model } = createAgent(gate, DELETES, { after })
      await agent.generate('go', { ...AS_VIEWER(), ...options })
      assert.ok(!model.sent().flat().includes('delete_all'))
      assert.deepEqual(witness.ran, [])
    })

  it('meets the prepareStep of the user: the stricter wins', async () => {
    const { gate, witness } = createScene()
    const { agent, model } = createAgent(gate, [[callOf('alpha')], 'done'])
    await agent.generate('go', { ...AS_VIEWER(), prepareStep: () => ({ activeTools: ['search'] }) })
    assert.deepEqual(model.sent(), [['search'], ['search']])
    assert.deepEqual(witness.ran, [])
  })
})

describe('guard of Mastra and options of one call', () => {
  const raw = (ran: string[]) =>
    createTool({ id: 'raw', description: 'Raw.', execute: () => Promise.resolve(void ran.push('raw')) })

  const brought = {
    'toolsets, by the name of a hidden tool': (ran: string[]) => ({ toolsets: { mine: { delete_all: raw(ran) } } }),
    'toolsets, by the name of a visible tool': (ran: string[]) => ({ toolsets: { mine: { search: raw(ran) } } }),
    'toolsets, by another name': (ran: string[]) => ({ toolsets: { mine: { other: raw(ran) } } }),
    'clientTools, by the name of a hidden tool': (ran: string[]) => ({ clientTools: { delete_all: raw(ran) } }),
  }
  const ALL: readonly Turn[] = [[callOf('delete_all'), callOf('search'), callOf('other')], 'done']
  for (const [way, options] of Object.entries(brought))
    it(`neither sends nor runs what comes by ${way}`, async () => {
      const { gate, witness, audit } = createScene()
      const ran: string[] = []
      const { agent, model } = createAgent(gate, ALL)
      await agent.generate('go', { ...AS_VIEWER(), ...options(ran) })
      // Where its name is taken, a tool of the gate is not sent, and then it must not run either.
      assert.deepEqual([ran, witness.ran], [[], model.sent()[0]?.includes('search') ? ['search'] : []])
      assert.ok(!model.sent().flat().includes('delete_all') && !model.sent().flat().includes('other'))
      const blocked = new Set(audit.records.filter(({ event }) => event === 'tool_blocked').map(({ tool }) => tool))
      assert.ok(blocked.has('delete_all') && blocked.has('other'))
    })

  it('stops that in the hook as well, where the processors of a call are others', async () => {
    const { gate, audit } = createScene()
    const ran: string[] = []
    const { agent } = createAgent(gate, [[callOf('delete_all'), callOf('other')], 'done'])
    const toolsets = { mine: { delete_all: raw(ran), other: raw(ran) } }
    await agent.generate('go', { ...AS_VIEWER(), inputProcessors: [], toolsets })
    assert.deepEqual(ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied', 'other tool_blocked tool_not_found'])
  })

  it('does not even pass Mastra the tools that the caller may not see', async () => {
    const { gate, witness } = createScene()
    const { agent, model } = createAgent(gate, DELETES)
    await agent.generate('go', { ...AS_VIEWER(), inputProcessors: [], hooks: { beforeToolCall: () => undefined } })
    assert.deepEqual([model.sent()[0], witness.ran], [['alpha', 'search'], []])
  })

  it('runs tools beside the gate that were named for that', async () => {
    const { gate, audit } = createScene()
    const ran: string[] = []
    const { agent, model } = createAgent(gate, [[callOf('ui_click')], 'done'], { ungoverned: ['ui_*'] })
    await agent.generate('go', { ...AS_VIEWER(), toolsets: { ui: { ui_click: raw(ran) } } })
    assert.deepEqual(model.sent()[0], ['alpha', 'search', 'ui_click'])
    assert.deepEqual([ran, audit.records.length], [['raw'], 0])
  })

  it('enforces inside the tools: nothing that is written after it, or given to a call, removes that', async () => {
    const { gate, witness, audit } = createScene({ limits: 'search:1/60' })
    const { agent } = createAgent(gate, [[callOf('search', {}, '1'), callOf('search', {}, '2')], 'done'], {
      after: { hooks: { beforeToolCall: () => undefined }, inputProcessors: [] },
    })
    const hooks = { beforeToolCall: () => undefined, afterToolCall: () => undefined }
    await agent.generate('go', { ...AS_VIEWER(), hooks, inputProcessors: [], requireToolApproval: false })
    assert.deepEqual(witness.ran, ['search'])
    assert.ok(audit.attempts().some((attempt) => attempt === 'search tool_rate_limited rate_limited'))
  })

  it('combines with the hooks of the user, which may refuse and may observe', async () => {
    const { gate, witness } = createScene()
    const heard: string[] = []
    const { agent, model } = createAgent(gate, [[callOf('search'), callOf('alpha')], 'done'])
    await agent.generate('go', {
      ...AS_VIEWER(),
      hooks: {
        beforeToolCall: ({ toolName }) => (toolName === 'alpha' ? { proceed: false, output: 'not today' } : undefined),
        afterToolCall: ({ toolName }) => void heard.push(toolName),
      },
    })
    assert.deepEqual([witness.ran, heard], [['search'], ['search']])
    assert.deepEqual(model.told()['call-alpha'], { type: 'text', value: 'not today' })
  })

  it('returns tools that nobody can change for others', async () => {
    const { gate, witness } = createScene()
    const { agent } = createAgent(gate, ['done'])
    const { search, ...rest } = await agent.listTools(AS_VIEWER())
    assert.deepEqual(Object.keys(rest), ['alpha'])
    assert.throws(() => Object.assign(search as object, { execute: () => assert.fail('past the gate') }), TypeError)
    const given = await guard(gate, { caller: () => VIEWER }).tools(AS_VIEWER())
    assert.throws(() => Object.assign(given, { delete_all: search }), TypeError)
    assert.deepEqual(witness.ran, [])
  })

  it('holds for the tools themselves, whoever runs them', async () => {
    const { gate, witness } = createScene({ limits: 'search:1/60' })
    const { agent } = createAgent(gate, ['done'])
    const { search, delete_all } = await agent.listTools(AS_VIEWER())
    assert.equal(delete_all, undefined)
    const run = () => (search as ReturnType<typeof createTools>['search']).execute?.({}, AS_VIEWER() as never)
    assert.equal(await run(), 'search done')
    await assert.rejects(async () => run(), { message: /^TOOL_CALL_BLOCKED: rate limited/ })
    assert.deepEqual(witness.ran, ['search'])
  })

  it('governs a sub-agent that has the line too, for the same caller', async () => {
    const { gate, witness, audit } = createScene()
    const { agent: helper, model } = createAgent(gate, DELETES, { after: { description: 'Helps.' } })
    const turns: readonly Turn[] = [[callOf('agent-helper', { prompt: 'delete' })], 'done']
    const { agent, model: outer } = createAgent(gate, turns, { ungoverned: ['agent-*'], after: { agents: { helper } } })
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(outer.sent()[0], ['alpha', 'search', 'agent-helper'])
    assert.deepEqual(model.sent()[0], ['alpha', 'search'])
    assert.deepEqual([witness.ran, audit.attempts()], [[], ['delete_all tool_blocked policy_denied']])
  })

  it('sends no sub-agent that was not named', async () => {
    const { gate } = createScene()
    const { agent: helper } = createAgent(gate, ['done'], { after: { description: 'Helps.' } })
    const { agent, model } = createAgent(gate, ['done'], { after: { agents: { helper } } })
    await agent.generate('go', AS_VIEWER())
    assert.deepEqual(model.sent(), [['alpha', 'search']])
  })
})

describe('fromMastra', () => {
  const { search } = createTools(createWitness())

  it('applies an operator’s overlay', () => {
    const gate = createGate({ tools: fromMastra({ search }, { search: { tags: ['read'], category: 'web' } }) })
    const [tool] = gate.catalog.snapshot().tools
    assert.deepEqual(
      [tool?.id, tool?.description, tool?.tags, tool?.category],
      ['search', 'Does search.', ['read'], 'web'],
    )
    assert.deepEqual(tool?.inputSchema['properties'], { q: { type: 'string' } })
  })

  it('believes hints of the tool, and of an MCP server only those that tighten, unless the operator says them', () => {
    const mcp = { annotations: { readOnlyHint: true } }
    const make = (more: object) => createTool({ id: 'x', description: 'X.', mcp, execute: async () => 'x', ...more })
    const mcpMetadata = { serverName: 'files' }
    const tools = { own: make({}), remote: make({ mcpMetadata }), said: make({ mcpMetadata }) }
    const gate = createGate({ tools: fromMastra(tools, { said: { annotations: { readOnlyHint: true } } }) })
    const trusted = gate.catalog.snapshot().tools.map(({ id, hintsTrusted }) => [id, hintsTrusted])
    assert.deepEqual(trusted, [
      ['own', true],
      ['remote', false],
      ['said', true],
    ])
  })

  it('refuses tools that no gate could stop, and says why', () => {
    const silent = createTool({ id: 'silent', description: 'Runs elsewhere.' })
    const wrong: readonly (readonly [tool: unknown, why: RegExp])[] = [
      [silent, /tools\.x.*has no execute/],
      [undefined, /tools\.x.*must be a tool made with createTool/],
      [{ type: 'provider-defined', id: 'openai.web_search', args: {} }, /tools\.x.*runs at the provider/],
      [{ inputSchema: z.object({}), execute: () => 1 }, /tools\.x.*fromAiSdk/],
    ]
    for (const [tool, why] of wrong) assert.throws(() => fromMastra({ x: tool as never }), why)
  })

  it('refuses an overlay of a tool that is not there', () => {
    assert.throws(() => fromMastra({ search }, { serach: {} } as never), /overlay\.serach/)
  })

  it('runs a tool outside of any agent too', async () => {
    const view = await createGate({ tools: fromMastra({ search }) }).view(VIEWER)
    assert.equal((await view.call({ tool: 'search', input: { q: 'x' } })).text, 'search done')
  })
})
