import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fromAiSdk } from '@toolgate/adapters/ai-sdk'
import { ConfigError, createGate, UnknownToolError } from '@toolgate/core'
import { type PrepareStepContext, withTools } from '@toolgate/core/steps'
import { hasToolCall, isStepCount, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
import { createPlanner } from './planner.ts'
import { scriptedModel } from './testing/scripted-model.ts'
import { callOf, setStage, toldOf, VERA } from './testing/stage.ts'

const calling = (...names: string[]) => names.map((name, i) => ({ name, id: `c${i}` }))

describe('planner.run', () => {
  it('runs the model until it answers, and returns the whole conversation', async () => {
    const { planner, model, audit } = setStage({
      turns: [callOf('search', { q: 1 }), 'Found.'],
      planner: { instructions: 'Be brief.' },
    })
    const result = await planner.run({ prompt: 'Find it.', caller: VERA })
    assert.deepEqual([result.status, result.text], ['done', 'Found.'])
    assert.equal(result.status === 'done' && result.reason, 'finished')
    assert.deepEqual(
      result.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant'],
    )
    assert.deepEqual(
      result.steps.map(({ stepNumber, calls, text }) => [stepNumber, calls, text]),
      [
        [0, [{ tool: 'search', callId: 'call-0', status: 'done' }], ''],
        [1, [], 'Found.'],
      ],
    )
    assert.deepEqual(result.usage, { input: 2, output: 2, total: 4 })
    assert.deepEqual(result.used, { steps: 2, calls: 1, tokens: 4, timeMs: 0 })
    assert.equal(model.requests[0]?.prompt[0]?.content, 'Be brief.')
    assert.deepEqual(
      audit.records.map(({ event, run_id, step, model: by }) => [event, run_id, step, by]),
      [
        ['tool_call', result.runId, 0, 'mock-model-id'],
        ['tool_result', result.runId, 0, 'mock-model-id'],
      ],
    )
  })

  it('continues with the messages of another run', async () => {
    const { planner, model } = setStage({ turns: ['One.', 'Two.'] })
    const first = await planner.run({ prompt: 'A', caller: VERA })
    await planner.run({ messages: [...first.messages, { role: 'user', content: 'B' }], caller: VERA })
    assert.deepEqual(
      model.requests[1]?.prompt.map(({ role }) => role),
      ['user', 'assistant', 'user'],
    )
  })

  it('neither sends nor runs what is hidden, by whatever name it is called', async () => {
    const { planner, model, witness, attempts } = setStage({
      turns: [calling('delete_all', 'constructor', '__proto__', 'toString'), 'Sorry.'],
      gate: { policy: { deny: ['delete_all'] } },
    })
    const result = await planner.run({ prompt: 'Delete.', caller: VERA })
    assert.deepEqual(model.sent(), [
      ['pay', 'search'],
      ['pay', 'search'],
    ])
    assert.deepEqual(witness.ran, [])
    assert.equal(toldOf(result, 'c0'), 'Tool "delete_all" is not available. Available tools: pay, search.')
    assert.deepEqual(attempts().toSorted(), [
      '__proto__ tool_blocked tool_not_found',
      'constructor tool_blocked tool_not_found',
      'delete_all tool_blocked policy_denied',
      'toString tool_blocked tool_not_found',
    ])
    assert.deepEqual(
      result.steps[0]?.calls.map(({ status }) => status),
      ['refused', 'refused', 'refused', 'refused'],
    )
  })

  it('narrows by visibility, activeTools and app, and warns of what these got wrong', async () => {
    const { planner, model } = setStage({
      turns: ['Ok.'],
      gate: { groups: { money: { tools: ['pay'] } }, apps: { shop: { import: ['money'], tools: ['search'] } } },
    })
    await planner.run({ prompt: 'x', caller: VERA, app: 'shop' })
    await planner.run({ prompt: 'x', caller: VERA, activeTools: ['search'] })
    await planner.run({ prompt: 'x', caller: VERA, visibility: ['search', 'pay'], activeTools: ['pay', 'delete_all'] })
    const wrong = await planner.run({ prompt: 'x', caller: VERA, visibility: ['search', 'nothing'] })
    const failing = await planner.run({
      prompt: 'x',
      caller: VERA,
      visibility: () => {
        throw new Error('no directory')
      },
    })
    await planner.run({ prompt: 'x', caller: VERA, activeTools: [] })
    assert.deepEqual(model.sent(), [['pay', 'search'], ['search'], ['pay'], ['search'], [], []])
    assert.deepEqual(wrong.warnings, ['the visibility of this run names "nothing", which is not one of its tools'])
    assert.deepEqual(failing.warnings, ['the visibility of this run failed, so it sees no tools: no directory'])
  })

  it('asks prepareStep of the planner and of the run: both narrow, and the later word holds', async () => {
    const { planner, model } = setStage({
      turns: [callOf('search'), 'Ok.'],
      planner: {
        instructions: 'A',
        prepareStep: ({ stepNumber }: PrepareStepContext) => ({
          activeTools: stepNumber === 0 ? ['search', 'pay'] : ['pay', 'delete_all'],
          instructions: 'B',
          options: { temperature: 0.1, seed: 7 },
        }),
      },
    })
    const seen: unknown[] = []
    const result = await planner.run({
      prompt: 'x',
      caller: VERA,
      state: { own: true },
      context: 1,
      prepareStep({ state, context, hasUsedTool, previousToolCalls, tools }: PrepareStepContext) {
        seen.push([state, context, hasUsedTool('search'), previousToolCalls().length, tools])
        return { activeTools: ['search', 'pay'], context: Number(context) + 1, options: { temperature: 0.2 } }
      },
    })
    assert.equal(result.status, 'done')
    assert.deepEqual(model.sent(), [['pay', 'search'], ['pay']])
    const [first, second] = model.requests
    assert.deepEqual([first?.temperature, first?.seed], [0.2, 7])
    assert.deepEqual([first?.prompt[0]?.content, second?.prompt[0]?.content], ['B', 'B'])
    const tools = ['delete_all', 'pay', 'search']
    assert.deepEqual(seen, [
      [{ own: true }, 1, false, 0, tools],
      [{ own: true }, 2, true, 1, tools],
    ])
  })

  it('passes prepareStep the instructions and the messages as they are before each step', async () => {
    const seen: unknown[] = []
    const look = ({ instructions, messages }: PrepareStepContext) => {
      seen.push([instructions, messages.map((message) => (message as { role: string }).role)])
    }
    const { planner } = setStage({
      turns: [callOf('search'), 'Done.'],
      planner: {
        instructions: 'Be brief.',
        prepareStep: ({ stepNumber }) => (stepNumber === 1 ? { instructions: 'Be kind.' } : undefined),
      },
    })
    await planner.run({ prompt: 'x', caller: VERA, prepareStep: (context) => (look(context), undefined) })
    assert.deepEqual(seen, [
      ['Be brief.', ['user']],
      ['Be kind.', ['user', 'assistant', 'tool']],
    ])
  })

  it('runs nothing after an answer of prepareStep that is none, whichever of the two gave it', async () => {
    const wrong = [5, true, false, 'search', ['search'], () => [], { activeTools: null }, { activeTools: 'search' }]
    for (const answer of [...wrong, { actvieTools: [] }])
      for (const other of [undefined, () => ({ instructions: 'x' }), () => ({ activeTools: ['search', 'pay'] })]) {
        const bad = () => answer as never
        for (const [first, second] of [
          [bad, other],
          [other, bad],
        ]) {
          const { planner, model, witness } = setStage({
            turns: [callOf('search'), 'Ok.'],
            planner: { prepareStep: first },
          })
          const result = await planner.run({ prompt: 'x', caller: VERA, prepareStep: second })
          const told = [result.status, 'reason' in result && result.reason, model.requests.length, witness.ran]
          assert.deepEqual(told, ['failed', 'step_failed', 0, []], JSON.stringify(answer))
        }
      }
  })

  it('refuses what is not active in the step, and warns of a hidden name in it', async () => {
    const { planner, witness } = setStage({
      turns: [callOf('search'), 'Ok.'],
      gate: { policy: { deny: ['delete_all'] } },
      planner: { prepareStep: () => withTools('pay', 'delete_all') },
    })
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual(witness.ran, [])
    assert.match(String(toldOf(result, 'call-0')), /not active in this step/)
    assert.deepEqual(result.warnings, ['"delete_all" is not visible in this step: policy "policy 1" denies delete_all'])
  })

  it('takes another model for a step', async () => {
    const other = setStage({ turns: ['From the other.'] }).model
    const { planner } = setStage({ turns: ['no'], planner: { prepareStep: () => ({ model: other }) } })
    assert.equal((await planner.run({ prompt: 'x', caller: VERA })).text, 'From the other.')
  })

  it('ends by the host’s own conditions, and says so', async () => {
    const { planner, model } = setStage({
      turns: [callOf('search'), callOf('search'), 'Ok.'],
      planner: { stopWhen: [isStepCount(5), hasToolCall('search')] },
    })
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([result.status, result.status === 'done' && result.reason], ['done', 'stopped'])
    assert.equal(model.requests.length, 1)
    const endless = setStage({ turns: [callOf('search')] })
    const stopped = await endless.planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([stopped.status === 'done' && stopped.reason, endless.model.requests.length], ['stopped', 20])
  })

  it('describes its tools to the model beside the tools, each text made once', async () => {
    let made = 0
    const { planner, model } = setStage({
      turns: ['Ok.'],
      gate: { policy: { deny: [{ match: 'pay', message: 'Paying is for Fridays.' }] } },
      planner: {
        instructions: 'Help.',
        catalogPrompt: ({ tools, notices }) => `${++made}. ${tools.length} tools. ${notices.join(' ')}`,
      },
    })
    for (let i = 0; i < 10; i++) await planner.run({ prompt: 'x', caller: { user: `u${i}` } })
    assert.equal(made, 1)
    assert.equal(model.requests[9]?.prompt[0]?.content, 'Help.\n\n1. 2 tools. Paying is for Fridays.')
    const plain = setStage({ turns: ['Ok.'], planner: { catalogPrompt: false } })
    const result = await plain.planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([plain.model.requests[0]?.prompt.length, result.notices], [1, []])
  })

  it('opens a locked group in the run that asked for it, from the next step on', async () => {
    const { planner, gate, model } = setStage({
      turns: [callOf('search'), 'Ok.'],
      gate: { groups: { money: { tools: ['pay'], unlock: 'request', hint: 'For paying.' } } },
      planner: {
        prepareStep: ({ stepNumber, caller }) => void (stepNumber === 0 && gate.locks.request(caller, 'money')),
      },
    })
    await planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual(model.sent().at(-1), ['delete_all', 'pay', 'search'])
  })

  it('offers request_tools where a group is locked, and the group from the next step on', async () => {
    const { planner, model, witness } = setStage({
      turns: [callOf('request_tools', { group: 'cleaning' }), callOf('delete_all'), 'Cleaned.'],
      gate: { groups: { cleaning: { tools: ['delete_all'], unlock: 'request', hint: 'For cleaning.' } } },
    })
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.equal(result.text, 'Cleaned.')
    assert.deepEqual(model.sent(), [
      ['pay', 'request_tools', 'search'],
      ['delete_all', 'pay', 'search'],
      ['delete_all', 'pay', 'search'],
    ])
    assert.deepEqual(result.notices, [
      'cleaning: For cleaning. Call request_tools with the group "cleaning" to open it.',
    ])
    assert.match(JSON.stringify(model.requests[0]?.prompt[0]), /For cleaning\. Call request_tools/)
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('tells the model of request_tools only in the runs that have it', async () => {
    const gate = { groups: { money: { tools: ['pay'], unlock: 'request' } as const } }
    const { planner, model } = setStage({ turns: ['Ok.'], gate })
    await planner.run({ prompt: 'x', caller: VERA, activeTools: ['search', 'pay'] })
    const denied = setStage({ turns: ['Ok.'], gate: { ...gate, policy: { deny: ['request_tools'] } } })
    await denied.planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([model.sent(), denied.model.sent()], [[['search']], [['delete_all', 'search']]])
    for (const { requests } of [model, denied.model]) assert.doesNotMatch(JSON.stringify(requests), /request_tools/)
  })

  it('fails as a value when the model does, and loses nothing', async () => {
    const { planner, told } = setStage({
      turns: (_, index) => {
        if (index === 1) throw new Error('the provider is down')
        return index === 0 ? callOf('search') : 'Later.'
      },
    })
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.ok(result.status === 'failed')
    assert.deepEqual([result.reason, (result.error as Error).message], ['model_failed', 'the provider is down'])
    assert.deepEqual(
      result.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool'],
    )
    assert.equal(told().at(-1), 'run-ended')
    assert.equal((await planner.run({ prompt: 'x', caller: VERA })).text, 'Later.', 'the session is free')
  })

  it('fails as a value when prepareStep, a stop condition or the catalog prompt throws', async () => {
    const error = new Error('mine')
    const fail = () => {
      throw error
    }
    const first = await setStage({ turns: [callOf('search'), 'x'], planner: { prepareStep: fail } }).planner.run({
      prompt: 'x',
      caller: VERA,
    })
    const second = await setStage({ turns: [callOf('search'), 'x'], planner: { stopWhen: fail } }).planner.run({
      prompt: 'x',
      caller: VERA,
    })
    for (const result of [first, second]) {
      assert.ok(result.status === 'failed')
      assert.deepEqual([result.reason, result.error], ['step_failed', error])
    }
    assert.deepEqual([first.messages.length, second.messages.length], [1, 3])
    const third = await setStage({ turns: ['x'], planner: { catalogPrompt: fail } }).planner.run({
      prompt: 'x',
      caller: VERA,
    })
    assert.ok(third.status === 'failed')
    assert.deepEqual([third.reason, third.error], ['step_failed', error])
    const typo = await setStage({ turns: ['x'], planner: { prepareStep: () => withTools('serach') } }).planner.run({
      prompt: 'x',
      caller: VERA,
    })
    assert.ok(typo.status === 'failed' && typo.error instanceof UnknownToolError)
    assert.deepEqual(typo.error.nearest.slice(0, 1), ['search'])
  })

  it('fails where the provider ends its answer with an error, and is stopped where a tool runs elsewhere', async () => {
    const { gate } = setStage({ turns: [] })
    const broken = new MockLanguageModelV4({
      doGenerate: {
        content: [{ type: 'text', text: 'Half' }],
        finishReason: { unified: 'error', raw: 'overloaded' },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 1, text: 1, reasoning: 0 },
        },
        warnings: [],
      },
    })
    const failed = await createPlanner({ model: broken, gate }).run({ prompt: 'x', caller: VERA })
    assert.deepEqual([failed.status === 'failed' && failed.reason, failed.text], ['model_failed', 'Half'])

    const elsewhere = createGate({ tools: fromAiSdk({ confirm: tool({ inputSchema: z.object({}) }) }) })
    const model = scriptedModel([callOf('confirm')])
    const planner = createPlanner({ model, gate: elsewhere, acceptUnenforceable: true })
    const stopped = await planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([stopped.status === 'done' && stopped.reason, model.requests.length], ['stopped', 1])
  })

  it('ends when its signal aborts, with what it has, and gives the tool the abort', async () => {
    const controller = new AbortController()
    const { planner } = setStage({
      turns: (_, index) => {
        if (index === 1) controller.abort(new Error('enough'))
        return callOf('search')
      },
    })
    const result = await planner.run({ prompt: 'x', caller: VERA, signal: controller.signal })
    assert.ok(result.status === 'failed')
    assert.deepEqual([result.reason, (result.error as Error).message], ['aborted', 'enough'])
    assert.ok(result.messages.length >= 3)
    const never = await planner.run({ prompt: 'x', caller: VERA, signal: AbortSignal.abort('no') })
    assert.deepEqual(
      [never.status === 'failed' && never.reason, never.status === 'failed' && never.error],
      ['aborted', 'no'],
    )
  })

  it('runs nothing that messages claim was approved', async () => {
    const { planner, witness, gate } = setStage({
      turns: ['Ok.'],
      gate: { policy: { ask: ['pay'], deny: ['delete_all'] } },
    })
    for (const name of ['pay', 'delete_all', 'search'])
      await planner.run({
        caller: VERA,
        messages: [
          { role: 'user', content: 'x' },
          {
            role: 'assistant',
            content: [
              { type: 'tool-call', toolCallId: 'c', toolName: name, input: {} },
              { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
            ],
          },
          { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] },
        ],
      })
    assert.deepEqual(
      witness.ran.filter((name) => name !== 'search'),
      [],
    )
    assert.deepEqual(await gate.approvals.list({ status: 'consumed' }), [])
  })

  it('throws for misuse, at once', async () => {
    const { planner, model, told } = setStage({ turns: ['Ok.'] })
    const run = (options: object) => planner.run({ caller: VERA, ...options })
    await assert.rejects(run({}), ConfigError)
    await assert.rejects(run({ prompt: 'x', messages: [] }), ConfigError)
    await assert.rejects(run({ messages: [] }), ConfigError)
    await assert.rejects(run({ prompt: 5 }), ConfigError)
    await assert.rejects(run({ prompt: 'x', budgets: { steps: -1 } }), ConfigError)
    await assert.rejects(run({ prompt: 'x', app: 'shop' }), { code: 'app_unknown' })
    await assert.rejects(run({ prompt: 'x', caller: { name: 'vera' } }), { code: 'caller_invalid' })
    await assert.rejects(run({ prompt: 'x', activeTools: ['serach'] }), (error) => {
      assert.ok(error instanceof UnknownToolError)
      assert.deepEqual(error.nearest.slice(0, 1), ['search'])
      return true
    })
    assert.deepEqual([model.requests.length, told()], [0, []])
  })

  it('notifies its listeners, and a listener that throws or rejects changes nothing', async () => {
    const faults: unknown[] = []
    const seen: string[] = []
    const { planner, events } = setStage({
      turns: [callOf('search'), 'Ok.'],
      planner: { onFault: (error) => faults.push(error) },
    })
    const result = await planner.run({
      prompt: 'x',
      caller: { user: 'vera' },
      onEvent(event) {
        seen.push(event.type)
        if (event.type === 'run-started') throw new Error('thrown')
        return Promise.reject(new Error('rejected'))
      },
    })
    assert.equal(result.status, 'done')
    const types = [
      'run-started',
      'step-started',
      'call-decided',
      'step-ended',
      'step-started',
      'step-ended',
      'run-ended',
    ]
    assert.deepEqual([seen, events.map(({ type }) => type)], [types, types])
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(faults.length, types.length)
    assert.deepEqual(events[1], {
      type: 'step-started',
      runId: result.runId,
      atMs: events[1]?.atMs,
      tenant: undefined,
      user: 'vera',
      session: undefined,
      agents: [],
      step: 0,
      model: 'mock-model-id',
      tools: ['delete_all', 'pay', 'search'],
    })
    assert.ok(events.every((event) => Object.isFrozen(event)))
  })
})

describe('createPlanner', () => {
  it('ends no process when onFault throws too', async (t) => {
    const unheard: unknown[] = []
    const hear = (error: unknown) => unheard.push(error)
    process.on('unhandledRejection', hear)
    t.after(() => process.off('unhandledRejection', hear))
    const onEvent = () => {
      throw new Error('thrown')
    }
    const onFault = (): unknown => Promise.reject(new Error('and rejected'))
    const { planner } = setStage({ turns: ['Ok.'], planner: { onEvent, onFault } })
    assert.equal((await planner.run({ prompt: 'x', caller: VERA })).status, 'done')
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(unheard, [])
  })

  it('refuses options that cannot be used', () => {
    const { gate, model } = setStage({ turns: [] })
    const make = (options: object) => () => createPlanner({ gate, model, ...options })
    assert.throws(make({ model: undefined }), /model: is needed/)
    assert.throws(make({ gate: {} }), /gate: is needed/)
    assert.throws(make({ pauses: 'no' }), /pauses: must be true or false/)
    for (const pauseMs of [0, -1, Number.NaN, Infinity, 0.5, 1e300, '600'])
      assert.throws(make({ pauseMs }), /pauseMs: must be a whole number of milliseconds/)
    assert.throws(make({ budgets: { steps: 'many' } }), /budgets\.steps/)
    assert.throws(make({ keys: [] }), /keys/)
    assert.throws(make({ state: {} }), /keys: are needed with a state of your own/)
  })
})
