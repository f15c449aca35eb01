import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Gate, type Hooks } from '@toolgate/core'
import { generateText, isStepCount, streamText, tool, ToolLoopAgent, type ToolSet } from 'ai'
import { z } from 'zod'
import { applyApprovals, fromAiSdk, guard, type GuardedCallEvent, RefusedCall } from '../ai-sdk.ts'
import { answer, createAiSdkWorld, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel } from '../testing/mock-model.ts'
import { ADMIN, createTestAudit, VIEWER } from '../testing/world.ts'

const inputSchema = z.object({})
const DELETES = [{ name: 'delete_all' }]

describe('runs that overlap', () => {
  it('do not see each other on one shared agent: each call has its own caller', async () => {
    const { gate, tools, witness, audit } = createAiSdkWorld()
    const model = mockModel(({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Done.' : DELETES))
    const agent = new ToolLoopAgent({
      model,
      tools,
      callOptionsSchema: z.object({ user: z.string(), roles: z.array(z.string()) }),
      prepareCall: async ({ options, ...settings }) => {
        await wait(options.user.length % 3)
        return { ...settings, ...(await guard(gate, options)) }
      },
    })
    const runs = Array.from({ length: 120 }, async (_, i) => {
      const caller = i % 2 === 0 ? ADMIN : VIEWER
      const options = { user: caller.user ?? '', roles: [...(caller.roles ?? [])] }
      const prompt = caller.user ?? ''
      if (i % 3 === 0) return (await agent.stream({ prompt, options })).consumeStream()
      return agent.generate({ prompt, options })
    })
    await Promise.all(runs)
    assert.equal(witness.ran.length, 60)
    for (const { prompt, tools: sent } of model.requests) {
      const isAdmin = JSON.stringify(prompt).includes('"text":"ada"')
      assert.deepEqual(
        sent?.map(({ name }) => name),
        isAdmin ? ['alpha', 'delete_all', 'search'] : ['alpha', 'search'],
      )
    }
    const by = (event: string, user: string) =>
      audit.records.filter((record) => record.event === event && record.user_id === user).length
    assert.deepEqual([by('tool_result', 'ada'), by('tool_blocked', 'vera'), by('tool_call', 'vera')], [60, 60, 0])
  })

  it('keep their own steps, even if they share one guard', async () => {
    const { gate, witness } = createAiSdkWorld()
    const guarded = await guard(gate, ADMIN, {
      async prepareStep({ stepNumber, messages }) {
        await wait(stepNumber)
        const [name] = JSON.stringify(messages[0]).match(/search|alpha/) ?? []
        return { activeTools: [name ?? ''] }
      },
    })
    const model = mockModel(async ({ prompt }, index) => {
      await wait(index % 4)
      return prompt.length > 4 ? 'Done.' : [{ name: 'search' }, { name: 'alpha' }]
    })
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        generateText({ model, prompt: i % 2 === 0 ? 'search' : 'alpha', stopWhen, ...guarded }),
      ),
    )
    for (const [i, { steps }] of results.entries())
      for (const { toolResults } of steps)
        assert.ok(toolResults.every(({ toolName }) => toolName === (i % 2 === 0 ? 'search' : 'alpha')))
    assert.equal(witness.ran.length, results.length * 2)
  })

  it('resume from an approval with their own rights, whatever step another run of the same guard is in', async () => {
    const { gate, witness } = createAiSdkWorld({ policy: { ask: ['delete_all'] } })
    let narrows = false
    const prepareStep = () => (narrows ? { activeTools: ['search'] } : undefined)
    const guarded = await guard(gate, VIEWER, { prepareStep })
    const asked = await generateText({ model: mockModel([DELETES]), prompt: 'p', ...guarded })
    const messages = answer([{ role: 'user', content: 'p' }, ...asked.responseMessages], true)
    await applyApprovals(gate, VIEWER, messages)
    narrows = true
    await generateText({ model: mockModel(['Done.']), prompt: 'p', ...guarded })
    await generateText({ model: mockModel(['Done.']), messages, ...guarded })
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('share the limit, which is exact under parallel calls', async () => {
    const { gate, witness, audit } = createAiSdkWorld({ limits: '*:20/60' })
    const calls = Array.from({ length: 6 }, (_, i) => ({ name: 'search', id: `call-${i}` }))
    await Promise.all(
      Array.from({ length: 10 }, async () =>
        generateText({ model: mockModel([calls, 'Done.']), prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) }),
      ),
    )
    assert.equal(witness.ran.length, 20)
    assert.equal(audit.attempts().filter((attempt) => attempt === 'search tool_rate_limited rate_limited').length, 40)
  })
})

describe('a call through guard', () => {
  const runWith = async (tools: ToolSet, name: string, options: Parameters<typeof guard>[2] = {}) => {
    const audit = createTestAudit()
    const gate = createGate({ tools: fromAiSdk(tools), audit }) as unknown as Gate
    const model = mockModel([[{ name }], 'Done.'])
    const result = await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER, options)) })
    return { audit, model, result, told: model.told()['call-0'] }
  }

  it('gives the model the tool’s error text, and the developer the error', async () => {
    const cause = new TypeError('no such index')
    const broken = tool({ inputSchema, execute: (): Promise<string> => Promise.reject(cause) })
    const { audit, result, told } = await runWith({ broken }, 'broken')
    assert.deepEqual(told, { type: 'error-text', value: 'broken failed: no such index' })
    assert.deepEqual(audit.attempts(), ['broken tool_call', 'broken tool_result tool_failed'])
    const [error] = result.steps[0]?.content.flatMap((part) => (part.type === 'tool-error' ? [part.error] : [])) ?? []
    assert.ok(error instanceof RefusedCall && error.outcome.status === 'failed')
    assert.equal(error.outcome.error, cause)
    assert.equal(error.cause, cause)
  })

  it('passes execute the SDK’s options, with the abort signal of the call', async () => {
    const seen: unknown[] = []
    const look = tool({
      inputSchema,
      contextSchema: z.object({ key: z.string() }),
      execute: (input, { toolCallId, messages, context, abortSignal }) => {
        seen.push([input, toolCallId, messages.length, context, abortSignal instanceof AbortSignal])
      },
    })
    const gate = createGate({ tools: fromAiSdk({ look }) })
    const model = mockModel([[{ name: 'look' }], 'Done.'])
    const toolsContext = { look: { key: 'k' } }
    await generateText({ model, prompt: 'p', stopWhen, toolsContext, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(seen, [[{}, 'call-0', 1, { key: 'k' }, true]])
  })

  it('adds the host’s own options to them, and reports each call', async () => {
    const events: GuardedCallEvent[] = []
    let got: unknown
    const look = tool({ inputSchema, execute: (_, options) => void (got = options) })
    await runWith({ look }, 'look', {
      extend: ({ toolCallId }) => ({ turn: `turn of ${toolCallId}` }),
      onCall: (event) => events.push(event),
    })
    assert.equal((got as { turn: string }).turn, 'turn of call-0')
    const [{ outcome, ...event } = {} as GuardedCallEvent] = events
    assert.deepEqual(event, {
      tool: 'look',
      name: 'look',
      callId: 'call-0',
      status: 'done',
      stepNumber: 0,
      approval: undefined,
    })
    assert.equal(outcome?.status, 'done')
  })

  it('holds, even if the host’s listener throws', async () => {
    const warnings: string[] = []
    const { told } = await runWith({ look: tool({ inputSchema, execute: () => 'seen' }) }, 'look', {
      onCall: () => {
        throw new Error('deaf')
      },
      onWarning: (text) => warnings.push(text),
    })
    assert.deepEqual(told, { type: 'text', value: 'seen' })
    assert.deepEqual(warnings, ['onCall failed: deaf'])
  })

  it('takes an input as experimental_refineToolInput has made it, and validates that', async () => {
    const { gate, witness, audit } = createAiSdkWorld()
    const calls = [
      { name: 'search', input: { q: 'a' } },
      { name: 'alpha', id: 'call-1' },
    ]
    const model = mockModel([calls, 'Done.'])
    const guarded = await guard(gate, VIEWER)
    const refine = { search: () => ({ q: 1 }) } as object
    await generateText({ model, prompt: 'p', stopWhen, ...guarded, experimental_refineToolInput: refine })
    assert.deepEqual(witness.ran, ['alpha'])
    assert.ok(audit.attempts().includes('search tool_blocked input_invalid'))
  })

  it('asks the hooks of the run before those of the gate', async () => {
    const asked: string[] = []
    const hook = (name: string): Hooks => ({ beforeToolCall: () => void asked.push(name) })
    const { gate } = createAiSdkWorld({ hooks: hook('gate') })
    const model = mockModel([[{ name: 'search' }], 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER, { hooks: hook('run') })) })
    assert.deepEqual(asked, ['run', 'gate'])
  })

  it('is aborted with the run, and leaves its record', async () => {
    const controller = new AbortController()
    const slow = tool({
      inputSchema,
      execute: async (_, { abortSignal }) => {
        controller.abort(new Error('the user left'))
        await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve))
      },
    })
    const audit = createTestAudit()
    const gate = createGate({ tools: fromAiSdk({ slow }), audit })
    const options = { model: mockModel([[{ name: 'slow' }], 'Done.']), prompt: 'p', stopWhen }
    await assert.rejects(
      generateText({ ...options, abortSignal: controller.signal, ...(await guard(gate, VIEWER)) }),
      /the user left/,
    )
    await wait(1)
    assert.deepEqual(audit.attempts(), ['slow tool_call', 'slow tool_abandoned tool_aborted'])
  })

  it('passes a stream on item by item, untouched', async () => {
    const items = [{ n: 1 }, { n: 2 }]
    const count = tool({
      inputSchema,
      async *execute() {
        yield* items
      },
    })
    const audit = createTestAudit()
    const gate = createGate({ tools: fromAiSdk({ count }), audit })
    const model = mockModel([[{ name: 'count' }], 'Done.'])
    const { fullStream } = streamText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    const seen: unknown[] = []
    for await (const part of fullStream)
      if (part.type === 'tool-result') seen.push([part.output, part.preliminary ?? false])
    assert.deepEqual(seen, [
      [items[0], true],
      [items[1], true],
      [items[1], false],
    ])
    assert.equal((seen[0] as unknown[])[0], items[0])
    assert.deepEqual(audit.attempts(), ['count tool_call', 'count tool_result'])
  })

  it('refuses a stream like any call, and reports one that throws on the way', async () => {
    const count = tool({
      inputSchema,
      async *execute() {
        yield 1
        throw new Error('half way')
      },
    })
    const { told, audit } = await runWith({ count }, 'count')
    assert.deepEqual(told, { type: 'error-text', value: 'Error: half way' })
    assert.deepEqual(audit.attempts(), ['count tool_call', 'count tool_result tool_failed'])
    const gate = createGate({
      tools: fromAiSdk({ count }),
      policy: { deny: [{ match: 'count', input: 'true', message: 'No.' }] },
    })
    const model = mockModel([[{ name: 'count' }], 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(model.told()['call-0'], { type: 'error-text', value: 'TOOL_CALL_BLOCKED: No.' })
  })

  it('returns the last item of an iterable from a function that is not a generator', async () => {
    async function* items() {
      yield 1
      yield 2
    }
    const { told } = await runWith({ count: tool({ inputSchema, execute: () => items() }) }, 'count')
    assert.deepEqual(told, { type: 'json', value: 2 })
  })

  it('keeps the tool’s own output for the model', async () => {
    const shout = tool({
      inputSchema,
      execute: () => ({ text: 'x' }),
      toModelOutput: ({ output }) => ({ type: 'text', value: output.text.toUpperCase() }),
    })
    assert.deepEqual((await runWith({ shout }, 'shout')).told, { type: 'text', value: 'X' })
  })
})

describe('enforcement', () => {
  it('holds, whatever comes after the spread', async () => {
    const { gate, tools, witness, audit } = createAiSdkWorld({ policy: { deny: ['delete_all'], ask: ['alpha'] } })
    const { activeTools: _, ...guarded } = { activeTools: undefined, ...(await guard(gate, VIEWER)) }
    gate.setPolicy({ deny: ['delete_all', 'search'], ask: ['alpha'] })
    const calls = [{ name: 'delete_all' }, { name: 'search', id: 'call-1' }, { name: 'alpha', id: 'call-2' }]
    const all = Object.keys(tools)
    const after: object[] = [
      { activeTools: all },
      { prepareStep: () => ({ activeTools: all }) },
      { prepareStep: undefined, repairToolCall: undefined, experimental_repairToolCall: undefined },
      { toolApproval: () => 'approved' },
      { prepareStep: undefined, toolApproval: () => 'approved', repairToolCall: undefined, activeTools: all },
      { providerOptions: { openai: { allowedTools: { toolNames: all } } } },
    ]
    for (const options of after) {
      const model = mockModel([calls, 'Done.'])
      await generateText({ model, prompt: 'p', stopWhen, ...guarded, ...options })
      assert.ok(!model.sent().flat().includes('delete_all'))
    }
    assert.deepEqual(witness.ran, [])
    assert.ok(audit.attempts().filter((attempt) => attempt.startsWith('search tool_blocked')).length === after.length)
  })

  it('is in the tools alone: without prepareStep and all else they run nothing that a step may not', async () => {
    const { gate, witness, audit } = createAiSdkWorld()
    const { tools } = await guard(gate, VIEWER)
    gate.setPolicy({ deny: ['delete_all', 'search'] })
    const model = mockModel([[{ name: 'search' }, { name: 'alpha', id: 'call-1' }], 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, tools })
    assert.deepEqual(witness.ran, ['alpha'])
    assert.deepEqual(model.told()['call-0'], {
      type: 'error-text',
      value: 'Tool "search" is not available. Available tools: alpha.',
    })
    assert.equal(audit.attempts()[0], 'search tool_blocked policy_denied')
  })

  it('leaves tools of the host beside it alone', async () => {
    const { gate } = createAiSdkWorld()
    const model = mockModel([[{ name: 'mine' }], 'Done.'])
    const guarded = await guard(gate, VIEWER)
    const tools = { ...guarded.tools, mine: tool({ inputSchema, execute: () => 'mine' }) }
    await generateText({ model, prompt: 'p', stopWhen: isStepCount(2), ...guarded, tools })
    assert.deepEqual(model.told()['call-0'], { type: 'text', value: 'mine' })
  })
})

describe('names', () => {
  it('that a provider refuses are mapped, and mapped back in events, refusals and the audit', async () => {
    const events: string[] = []
    const { witness, audit } = createAiSdkWorld()
    const long = `files:${'read_'.repeat(20)}file`
    const tools = {
      [long]: tool({ inputSchema, execute: witness.body('long') }),
      'web.search': tool({ inputSchema, execute: witness.body('web') }),
    }
    const gate = createGate({
      tools: [defineTool({ name: 'own', namespace: 'gate', execute: witness.body('own') })],
      audit,
    })
    const mapped = createGate({ tools: fromAiSdk(tools), audit }) as unknown as Gate
    for (const one of [gate, mapped]) {
      const guarded = await guard(one, VIEWER, { onCall: (event) => events.push(`${event.tool} ${event.status}`) })
      const names = Object.keys(guarded.tools)
      for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
      const model = mockModel([names.map((name, i) => ({ name, id: `call-${i}` })), 'Done.'])
      await generateText({ model, prompt: 'p', stopWhen, ...guarded, prepareStep: guarded.prepareStep })
      assert.deepEqual(model.sent()[0], names)
    }
    assert.deepEqual(witness.ran.toSorted(), ['long', 'own', 'web'])
    assert.deepEqual(events.toSorted(), [`${long} done`, 'gate:own done', 'web.search done'])
  })

  it('of hidden tools are refused in any spelling, and the audit names the tool', async () => {
    const { witness, audit } = createAiSdkWorld()
    const tools = {
      'files:read': tool({ inputSchema, execute: witness.body('read') }),
      'files:remove': tool({ inputSchema, execute: witness.body('remove') }),
    }
    const gate = createGate({ tools: fromAiSdk(tools), policy: { deny: ['files:remove'] }, audit })
    const names = ['files__remove', 'files:remove', 'FILES__REMOVE', 'files_remove', ' files__remove']
    const model = mockModel([names.map((name, i) => ({ name, id: `call-${i}` })), 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(model.sent()[0], ['files__read'])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(
      audit.attempts().map((attempt) => attempt.replace(/ tool_blocked .*/, '')),
      ['files:remove', 'files:remove', 'FILES__REMOVE', 'files_remove', ' files__remove'],
    )
    const told = Object.values(model.told()) as { value: string }[]
    assert.ok(
      told.every(({ value }, i) => value === `Tool "${names[i]}" is not available. Available tools: files__read.`),
    )
  })
})
