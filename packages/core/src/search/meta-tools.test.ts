import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { memoryAudit } from '../audit/memory.ts'
import { createCanceller } from '@toolgate/values'
import type { CallRequest } from '../call/attempt.ts'
import { InputRequired } from '../call/outcome.ts'
import { createWireNames } from '../../../expose/src/names.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { openWorld, viewOptionsOf, worldArbitrary } from '../../../testing/support/worlds.ts'
import { type CallContext, defineTool, type Progress, type Tool } from '../tools/tool.ts'
import type { View } from '../gate/view.ts'
import { isItemId } from '../tools/tool-id.ts'
import { callingOf } from './calling.ts'
import { META_TEXTS, type MetaAnswer, metaTools } from './meta-tools.ts'
import { runs } from '../../../testing/src/runs.ts'

const SEND = defineTool({
  namespace: 'mail',
  name: 'send',
  title: 'Send mail',
  description: 'Sends a letter.',
  inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  execute: ({ to }) => `sent to ${to}`,
})
const TOOLS = [
  SEND,
  defineTool({
    namespace: 'mail',
    name: 'burn',
    description: 'Burns a letter.',
    tags: ['danger'],
    execute: () => 'burnt',
  }),
  defineTool({ namespace: 'git', name: 'push', execute: () => ({ pushed: true }) }),
]

function make(options: GateOptions = {}, meta = metaTools()) {
  const audit = memoryAudit()
  const gate = createGate({ tools: [...TOOLS, ...meta], policy: { deny: ['tag:danger'] }, audit, ...options })
  return { gate, audit }
}

/** What a tool of the view gives as its output; fails where the call is not done. */
async function run(view: View, tool: string, input: unknown, more: Partial<CallRequest> = {}): Promise<unknown> {
  const outcome = await view.call({ tool, input, ...more })
  assert.equal(outcome.status, 'done', outcome.text)
  return outcome.status === 'done' ? outcome.output : undefined
}

const viewOf = (gate: Gate) => gate.view({ user: 'vera' })

describe('search_tools', () => {
  it('finds the tools that its caller sees, in the requested detail, and not itself', async () => {
    const view = await viewOf(make().gate)
    const { title, description, inputSchema } = SEND
    assert.deepEqual(await run(view, 'search_tools', { query: 'letter' }), {
      tools: [{ name: 'mail:send', title, description }],
    })
    assert.deepEqual(await run(view, 'search_tools', { query: 'letter', detail: 'names' }), {
      tools: [{ name: 'mail:send', title }],
    })
    assert.deepEqual(await run(view, 'search_tools', { query: 'letter', detail: 'schemas' }), {
      tools: [{ name: 'mail:send', title, description, inputSchema }],
    })
    assert.deepEqual(await run(view, 'search_tools', { query: 'search call tool details' }), {
      tools: [],
      hint: META_TEXTS.nothing_found,
    })
  })

  it('answers from the very view it was called through', async () => {
    const { gate } = make({ policy: [] })
    const view = await viewOf(gate)
    const names = async (through: View) =>
      (
        (await run(through, 'search_tools', { query: 'letter', detail: 'names' })) as { tools: { name: string }[] }
      ).tools.map(({ name }) => name)
    assert.deepEqual(await names(view), ['mail:burn', 'mail:send'])
    assert.deepEqual(await names(view.narrow({ activeTools: ['search_tools', 'mail:burn'] })), ['mail:burn'])
    assert.deepEqual(await names(await gate.view({ user: 'vera' }, { visibility: ['search_tools', 'mail:send'] })), [
      'mail:send',
    ])
    gate.setPolicy({ deny: ['tag:danger'] })
    assert.deepEqual(await names(view), ['mail:send'])
  })

  it('returns as many as requested, not counting meta-tools', async () => {
    const tools = Array.from({ length: 12 }, (_, i) => defineTool({ name: `tool_${i}`, description: 'A tool.' }))
    const view = await createGate({ tools: [...tools, ...metaTools()] }).view({})
    for (const [limit, count] of [
      [1, 1],
      [11, 11],
      [100, 12],
    ]) {
      const { tools: found } = (await run(view, 'search_tools', { query: 'tool', limit })) as { tools: unknown[] }
      assert.equal(found.length, count)
    }
  })

  it('refuses inputs that are none', async () => {
    const view = await viewOf(make().gate)
    for (const input of [
      {},
      { query: '' },
      { query: 'x'.repeat(513) },
      { query: 'x', limit: 0 },
      { query: 'x', detail: 'all' },
    ])
      assert.match((await view.call({ tool: 'search_tools', input })).text, /^TOOL_CALL_BLOCKED: invalid input/)
  })

  it('opens the locked groups that a search hit opens, for this session and from its next step on', async () => {
    const onFound: NonNullable<Parameters<typeof metaTools>[0]>['onFound'] = (caller, ids) =>
      gate.locks.found(caller, ids)
    const groups = {
      mail: { tools: ['mail:*'], unlock: 'search' as const },
      git: { tools: ['git:*'], unlock: 'request' as const },
    }
    const { gate } = make({ groups }, metaTools({ onFound }))
    const caller = { user: 'vera', session: 's1' }
    const view = await gate.view(caller)
    assert.equal(view.has('mail:send'), false)
    assert.deepEqual(view.search('letter push'), [], 'a view shows what is not locked')
    const found = await run(view, 'search_tools', { query: 'letter push', detail: 'names' })
    assert.deepEqual(found, {
      tools: [{ name: 'mail:send', title: 'Send mail' }],
      hint: `${META_TEXTS.opened} mail:send.`,
    })
    assert.equal(
      (await view.call({ tool: 'mail:send', input: { to: 'a' } })).status,
      'refused',
      'this step did not list it',
    )
    assert.equal(await run(view.narrow({}), 'mail:send', { to: 'a' }), 'sent to a')
    assert.deepEqual((await gate.view({ ...caller, session: 's2' })).has('mail:send'), false)
  })

  it('finds nothing locked where it cannot open it', async () => {
    const { gate } = make({ groups: { mail: { tools: ['mail:*'], unlock: 'search' } } })
    const view = await gate.view({ user: 'vera', session: 's1' })
    assert.deepEqual(await run(view, 'search_tools', { query: 'letter' }), {
      tools: [],
      hint: META_TEXTS.nothing_found,
    })
  })
})

describe('get_tool_details', () => {
  it('returns the whole definition of each requested tool, once', async () => {
    const view = await viewOf(make().gate)
    const { title, description, inputSchema, annotations } = SEND
    assert.deepEqual(await run(view, 'get_tool_details', { names: ['mail:send', 'git:push', 'mail:send'] }), {
      tools: [
        { name: 'mail:send', title, description, inputSchema, annotations },
        { name: 'git:push', description: '', inputSchema: { type: 'object' }, annotations: {} },
      ],
    })
  })

  it('answers for a hidden tool as for one that does not exist, even where its denial has a message', async () => {
    const { gate } = make({ policy: { deny: [{ match: 'tag:danger', message: 'No fires here.' }] } })
    const view = await viewOf(gate)
    const answerFor = async (name: string) =>
      JSON.stringify(await run(view, 'get_tool_details', { names: [name] })).replaceAll(name, 'NAME')
    assert.equal(await answerFor('mail:burn'), await answerFor('mail:nope'))
    assert.equal(
      await answerFor('mail:burn'),
      JSON.stringify({ tools: [{ name: 'NAME', error: `Tool "NAME" ${META_TEXTS.not_available}` }] }),
    )
  })
})

describe('call_tool', () => {
  const call = (view: View, name: string, input?: object, more?: Partial<CallRequest>) =>
    run(view, 'call_tool', { name, ...(input && { arguments: input }) }, more)

  it('returns the output of the tool unchanged', async () => {
    const view = await viewOf(make().gate)
    assert.equal(await call(view, 'mail:send', { to: 'adam' }), 'sent to adam')
    assert.deepEqual(await call(view, 'git:push'), { pushed: true })
  })

  it('returns the text of a direct call, for every kind of refusal', async () => {
    const { gate } = make({
      policy: { deny: ['tag:danger'], ask: [{ match: 'git:push' }] },
      groups: { mail: { tools: ['mail:*'] } },
      limits: 'mail:send:1/60',
    })
    const view = await viewOf(gate)
    for (const [tool, input] of [
      ['mail:burn', {}],
      ['mail:nope', {}],
      ['mail:send', { to: 7 }],
      ['git:push', { force: true }],
    ] as const)
      assert.equal(await call(view, tool, input), (await view.call({ tool, input })).text, tool)
    assert.equal(await call(view, 'mail:send', { to: 'a' }), 'sent to a')
    assert.match((await view.call({ tool: 'mail:send', input: { to: 'a' } })).text, /rate limited \(1\/60\)/)
  })

  it('takes the tool’s own limit, and its own by its own rule', async () => {
    const { gate } = make({ limits: 'mail:send:2/60,call_tool:3/60' })
    const view = await viewOf(gate)
    assert.equal(await call(view, 'mail:send', { to: 'a' }), 'sent to a')
    assert.equal((await view.call({ tool: 'mail:send', input: { to: 'a' } })).status, 'done')
    assert.match(String(await call(view, 'mail:send', { to: 'a' })), /rate limited \(2\/60\)/)
    assert.deepEqual(await call(view, 'git:push'), { pushed: true })
    assert.match((await view.call({ tool: 'call_tool', input: { name: 'git:push' } })).text, /rate limited \(3\/60\)/)
  })

  it('is let through by the approval that a call of the tool itself asks for', async () => {
    const { gate } = make({ policy: { ask: ['git:push'] } })
    const view = await viewOf(gate)
    assert.equal(await call(view, 'git:push'), 'Waiting for approval of git:push.')
    const [approval] = await gate.approvals.list({})
    assert.equal(approval?.tool, 'git:push')
    await gate.approvals.decide({ user: 'vera' }, approval?.id ?? '', { decision: 'approve' })
    assert.deepEqual(await call(view, 'git:push'), { pushed: true })
    assert.equal(await call(view, 'git:push'), 'Waiting for approval of git:push.', 'it counts once')
  })

  it('passes the hooks of one call, and is of its run, as a call of the tool itself', async () => {
    const { gate, audit } = make({ policy: { ask: ['git:push'] } })
    const view = await viewOf(gate)
    const hooks = {
      beforeToolCall: ({ tool }: { tool: Tool }) => ({ allow: tool.id !== 'mail:send', reason: 'no mail' }),
    }
    assert.equal(await call(view, 'mail:send', { to: 'a' }, { hooks }), 'TOOL_CALL_BLOCKED: no mail')
    const ofRun = { id: 'r1', step: 2, model: 'm' }
    assert.equal(await call(view, 'git:push', {}, { run: ofRun }), 'Waiting for approval of git:push.')
    const [approval] = await gate.approvals.list({})
    assert.equal(approval?.run, 'r1')
    const { run_id: id, step, model } = audit.records.find(({ tool }) => tool === 'git:push') ?? {}
    assert.deepEqual({ id, step, model }, ofRun)
    await gate.approvals.decide({ user: 'vera' }, approval?.id ?? '', { decision: 'approve' })
    const other = { run: { id: 'r2' } }
    assert.equal(await call(view, 'git:push', {}, other), 'Waiting for approval of git:push.', 'it is of another run')
    assert.deepEqual(await call(view, 'git:push', {}, { run: ofRun }), { pushed: true })
  })

  it('passes the context on, and its retry is the next round of both calls: limits and approvals are taken once', async () => {
    const contexts: unknown[] = []
    const pay = defineTool({
      name: 'pay',
      execute(_: object, { context }: CallContext) {
        contexts.push(context)
        return context === 'Vera' ? 'paid' : new InputRequired({ question: 'Who are you?' })
      },
    })
    const { gate, audit } = make({
      tools: [pay, ...metaTools()],
      policy: { ask: ['pay'] },
      limits: 'pay:1/60,call_tool:2/60',
    })
    const view = await viewOf(gate)
    const through = (more: Partial<CallRequest>, cents = 5) =>
      view.call({ tool: 'call_tool', input: { name: 'pay', arguments: { cents } }, ...more })
    assert.equal((await through({ callId: 'c0' })).text, 'Waiting for approval of pay.')
    const [approval] = await gate.approvals.list({})
    await gate.approvals.decide({ user: 'vera' }, approval?.id ?? '', { decision: 'approve' })
    const first = await through({ callId: 'c1', context: 'nobody' })
    assert.equal(first.status, 'input_required')
    assert.deepEqual(first.payload, { question: 'Who are you?' })
    const continues = JSON.parse(JSON.stringify(first.continues))
    const other = await through({ callId: 'c2', continues, context: 'Vera' }, 6)
    assert.match(other.text, /rate limited \(2\/60\)/, 'another input continues neither call')
    const last = await through({ callId: 'c3', continues, context: 'Vera' })
    assert.equal(last.status, 'done', last.text)
    assert.deepEqual([last.output, contexts], ['paid', ['nobody', 'Vera']])
    assert.deepEqual(
      audit.records
        .filter(({ tool_call_id: id }) => id?.startsWith('c1') || id?.startsWith('c3'))
        .map(({ tool, event, tool_call_id: id, continues: of }) => [id, tool, event, of].filter(Boolean).join(' ')),
      [
        'c1 call_tool tool_call',
        'c1.1 pay tool_call',
        'c1.1 pay tool_input_required',
        'c1 call_tool tool_input_required',
        'c3 call_tool tool_call c1',
        'c3.1 pay tool_call c1.1',
        'c3.1 pay tool_result c1.1',
        'c3 call_tool tool_result c1',
      ],
    )
  })

  it('leaves records of both calls, each attempt with one that ends it', async () => {
    const { gate, audit } = make()
    const view = await viewOf(gate)
    await call(view, 'git:push', {}, { callId: 'c1' })
    await call(view, 'mail:burn', {}, { callId: 'c2' })
    assert.deepEqual(
      audit.records.map(({ tool, event, tool_call_id, reason }) => [tool_call_id, tool, event, reason]),
      [
        ['c1', 'call_tool', 'tool_call', undefined],
        ['c1.1', 'git:push', 'tool_call', undefined],
        ['c1.1', 'git:push', 'tool_result', undefined],
        ['c1', 'call_tool', 'tool_result', undefined],
        ['c2', 'call_tool', 'tool_call', undefined],
        ['c2.1', 'mail:burn', 'tool_blocked', 'policy_denied'],
        ['c2', 'call_tool', 'tool_result', undefined],
      ],
    )
  })

  it('refuses to call itself, under any name, and calls nothing then', async () => {
    const { gate, audit } = make({}, [...metaTools(), ...metaTools({ namespace: 'other' })])
    const view = await viewOf(gate)
    for (const name of ['call_tool', 'other:call_tool'])
      assert.equal(await call(view, name, { name: 'git:push' }), META_TEXTS.calls_itself)
    assert.ok(audit.records.every(({ tool }) => tool === 'call_tool'))
    const hidden = await viewOf(
      make({ policy: { deny: ['other:*'] } }, [...metaTools(), ...metaTools({ namespace: 'other' })]).gate,
    )
    assert.match(String(await call(hidden, 'other:call_tool')), /^Tool "other:call_tool" is not available\./)
  })

  it('may call the other meta-tools', async () => {
    const view = await viewOf(make().gate)
    assert.deepEqual(await call(view, 'search_tools', { query: 'push', detail: 'names' }), {
      tools: [{ name: 'git:push' }],
    })
  })

  it('ends with its caller, and so does the tool', async () => {
    const stopped: unknown[] = []
    const view = await createGate({ tools: [waiting(stopped), ...metaTools()] }).view({})
    const canceller = createCanceller()
    const outcome = view.call({ tool: 'call_tool', input: { name: 'wait' }, signal: canceller })
    await Promise.resolve()
    canceller.abort(new Error('gone'))
    assert.equal((await outcome).status, 'failed')
    assert.deepEqual(stopped, ['wait'])
  })

  it('passes on the progress of the tool', async () => {
    const tool = defineTool({
      name: 'slow',
      execute: (_input, { onProgress }) => {
        onProgress?.({ progress: 1, total: 2 })
        return 'done'
      },
    })
    const heard: Progress[] = []
    const view = await createGate({ tools: [tool, ...metaTools()] }).view({})
    await call(view, 'slow', {}, { onProgress: (progress) => heard.push(progress) })
    assert.deepEqual(heard, [{ progress: 1, total: 2 }])
  })
})

/** A tool that ends when its call is cancelled, and says so. */
function waiting(stopped: unknown[]) {
  return defineTool({
    name: 'wait',
    execute: (_input, call) =>
      new Promise((resolve) => {
        call.onAbort(() => resolve(stopped.push('wait')))
      }),
  })
}

describe('metaTools', () => {
  it('returns the requested tools, with or without a namespace, tagged as meta', () => {
    assert.deepEqual(
      metaTools().map(({ id }) => id),
      ['search_tools', 'get_tool_details', 'call_tool'],
    )
    const [one, ...others] = metaTools({ names: ['search_tools'], namespace: 'find' })
    assert.deepEqual([one?.id, one?.tags, others], ['find:search_tools', ['meta'], []])
    assert.throws(() => metaTools({ namespace: 'tag' }), { code: 'tool_invalid' })
  })

  it('are under policy themselves', async () => {
    const view = await viewOf(make({ policy: { deny: ['tag:meta'] } }).gate)
    assert.deepEqual(view.ids, ['git:push', 'mail:burn', 'mail:send'])
    assert.equal((await view.call({ tool: 'search_tools', input: { query: 'letter' } })).status, 'refused')
    assert.equal((await view.call({ tool: 'call_tool', input: { name: 'git:push' } })).status, 'refused')
  })

  it('speak with the client’s own names where it has them, and take no others', async () => {
    const { gate } = make()
    const view = await viewOf(gate)
    const names = createWireNames(gate.catalog.snapshot())
    const wire = { nameOf: (id: string) => names.toName(id) ?? id, idOf: names.toId }
    assert.deepEqual(await run(view, 'search_tools', { query: 'letter', detail: 'names' }, wire), {
      tools: [{ name: 'mail__send', title: 'Send mail' }],
    })
    const details = await run(view, 'get_tool_details', { names: ['mail__send', 'mail:send'] }, wire)
    const { tools } = details as { tools: { name: string; error?: string }[] }
    assert.deepEqual(
      tools.map(({ name, error }) => [name, error === undefined]),
      [
        ['mail__send', true],
        ['mail:send', false],
      ],
    )
    assert.equal(await run(view, 'call_tool', { name: 'mail__send', arguments: { to: 'a' } }, wire), 'sent to a')
    assert.equal(
      await run(view, 'call_tool', { name: 'mail__burn' }, wire),
      (await view.call({ tool: 'mail:burn', calledAs: 'mail__burn', ...wire })).text,
    )
  })

  it('put their answers into the form that the host wants', async () => {
    const answers: MetaAnswer[] = []
    const toOutput = (answer: MetaAnswer) => answers.push(answer)
    const view = await viewOf(make({}, metaTools({ toOutput })).gate)
    await run(view, 'get_tool_details', { names: ['git:push'] })
    await run(view, 'call_tool', { name: 'mail:burn' })
    await run(view, 'call_tool', { name: 'call_tool' })
    assert.deepEqual(
      answers.map((answer) => (answer.kind === 'outcome' ? answer.outcome.status : answer.kind)),
      ['value', 'refused', 'refusal'],
    )
  })

  it('need a gate around them', async () => {
    const [tool] = metaTools()
    const elsewhere = { tool, callId: 'c', caller: {}, aborted: false } as never
    await assert.rejects(async () => tool?.execute?.({ query: 'x' } as never, elsewhere), { code: 'tool_invalid' })
    assert.throws(() => callingOf(elsewhere), /"search_tools" can only be called through a gate/)
  })

  it('show and run nothing that the view hides: all their answers are those of a world without it', async () => {
    const queries = ['read', 'write', 'delete all', 'danger', 'to']
    await fc.assert(
      fc.asyncProperty(worldArbitrary, fc.constantFrom(...queries), async (world, query) => {
        const meta = metaTools()
        const metaIds = meta.map(({ id }) => id)
        const full = openWorld(world, { tools: meta })
        const options = viewOptionsOf(world)
        const also = {
          ...options,
          ...(options.visibility && { visibility: [...options.visibility, ...metaIds] }),
          ...(options.activeTools && { activeTools: [...options.activeTools, ...metaIds] }),
        }
        const view = await full.gate.view(world.caller, also)
        const without = openWorld(world, { tools: meta })
        without.offer(view.ids)
        const { activeTools: _, ...rest } = also
        const smaller = await without.gate.view(world.caller, rest)
        const names = [...full.tools.map(({ id }) => id), 'no-such-tool']
        for (const request of [
          { tool: 'search_tools', input: { query, limit: 100, detail: 'schemas' } },
          { tool: 'get_tool_details', input: { names } },
        ])
          if (view.has(request.tool)) assert.deepEqual(await tellOf(view, request), await tellOf(smaller, request))
        for (const name of names.filter((one) => !view.has(one) && view.has('call_tool'))) {
          const { status, text } = await tellOf(view, { tool: 'call_tool', input: { name } })
          // It calls tools only: ids of resources and prompts are unknown names.
          const tool = isItemId(name) ? undefined : name
          if (status === 'done') assert.equal(text, (await tellOf(view, { tool, calledAs: name })).text)
        }
        for (const id of full.ran.keys()) assert.ok(view.has(id), `${id} ran`)
      }),
      runs(150),
    )
  })
})

async function tellOf(view: View, request: CallRequest): Promise<{ status: string; text: string }> {
  const { status, text } = await view.call({ ...request, callId: 'c1' })
  return { status, text }
}
