import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Agent, defineToolInputGuardrail, type FunctionTool, shellTool, tool, toolNamespace } from '@openai/agents'
import { modelResponder, ScriptedModel } from '@openai/agents/testing'
import { createGate, defineTool, type GateOptions } from '@toolgate/core'
import { z } from 'zod'
import { fromOpenAIAgents, type Governable, guard, RefusedCall } from '../openai-agents.ts'
import {
  callOf,
  calls,
  createScene,
  DONE,
  NO_INPUT,
  runnerOf,
  type Session,
  toldTexts,
} from '../testing/openai-agents-scene.ts'
import { ADMIN, createTestAudit, VIEWER } from '../testing/world.ts'

const NOBODY_KNOWS = (name: string) => `Tool "${name}" is not available. Available tools: alpha, search.`
const IS_NONE = /^Tool ".+" is not available\. Available tools: (alpha, search|search, alpha)\.$/

describe('guard: what the model calls', () => {
  it('runs, and its result is the tool’s own', async () => {
    const { agent, runner, model, witness, audit } = createScene({ script: [calls('search'), DONE] })
    const result = await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(result.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(toldTexts(model), ['search done'])
    assert.deepEqual(audit.attempts(), ['search tool_call', 'search tool_result'])
  })

  it('is refused where it is hidden: the model is told what it may call, and the run goes on', async () => {
    const { agent, runner, model, witness, audit } = createScene({ script: [calls('delete_all'), DONE] })
    const result = await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(result.finalOutput, 'done')
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(toldTexts(model), [NOBODY_KNOWS('delete_all')])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  for (const name of ['nope', 'constructor', '__proto__', 'toString', 'search ', 'Search', 'functions.search']) {
    it(`is told the same of a name that is none: ${JSON.stringify(name)}`, async () => {
      const { agent, runner, model, witness, audit } = createScene({ script: [calls(name), DONE] })
      await runner.run(agent, 'hi', { context: { caller: VIEWER } })
      assert.deepEqual(witness.ran, [])
      assert.match(toldTexts(model)[0] ?? '', IS_NONE)
      assert.ok(toldTexts(model)[0]?.startsWith(`Tool "${name}" `))
      assert.deepEqual(audit.attempts(), [`${name} tool_blocked tool_not_found`])
    })
  }

  it('leaves a record also where the SDK ends the run for it, as it does without runConfig', async () => {
    const { agent, witness, audit } = createScene({ script: [calls('search', 'delete_all')] })
    const ended = runnerOf().run(agent, 'hi', { context: { caller: VIEWER } })
    await assert.rejects(ended, /Tool delete_all not found in agent Assistant/)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  it('is refused with the words of a denial that has some', async () => {
    const { agent, runner, model } = createScene({
      policy: { deny: [{ match: 'delete_all', message: 'Deleting is for admins.' }] },
      script: [calls('delete_all'), DONE],
    })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(toldTexts(model), ['TOOL_CALL_BLOCKED: Deleting is for admins.'])
  })

  it('never runs more often than its limit, however many calls come at once', async () => {
    const names = Array.from({ length: 20 }, () => 'search')
    const { agent, runner, model, witness, audit } = createScene({
      limits: 'search:5/60',
      script: [calls(...names), DONE],
    })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.equal(witness.ran.length, 5)
    assert.equal(audit.attempts().filter((one) => one === 'search tool_rate_limited rate_limited').length, 15)
    assert.match(toldTexts(model)[19] ?? '', /^TOOL_CALL_BLOCKED: rate limited \(5\/60\)\. Try again in \d+ s\.$/)
  })

  it('is refused for its input, with the place of it', async () => {
    const { model, audit, ran } = await runOne(readTool(), callOf('read', { path: '/etc/shadow' }), {
      policy: { deny: [{ match: 'read', input: "!within(input.path, '/workspace')", message: 'Outside.' }] },
    })
    assert.deepEqual(ran, [])
    assert.deepEqual(toldTexts(model), ['TOOL_CALL_BLOCKED: Outside.'])
    assert.deepEqual(audit.attempts(), ['read tool_blocked input_denied'])
  })

  it('gets the input that was decided on, also where a hook has replaced it', async () => {
    const { ran } = await runOne(readTool(), callOf('read', { path: '/a' }), {
      hooks: { beforeToolCall: () => ({ input: { path: '/b' } }) },
    })
    assert.deepEqual(ran, ['/b'])
  })

  it('is refused where a hook says so', async () => {
    const { model, ran, audit } = await runOne(readTool(), callOf('read', { path: '/a' }), {
      hooks: { beforeToolCall: () => ({ allow: false, reason: 'not today' }) },
    })
    assert.deepEqual(ran, [])
    assert.deepEqual(toldTexts(model), ['TOOL_CALL_BLOCKED: not today'])
    assert.deepEqual(audit.attempts(), ['read tool_blocked hook_denied'])
  })

  for (const [what, text, told] of [
    // The SDK says nothing of what could not be parsed, also what its guardrails say of it.
    ['no JSON', '{"path":', 'Tool execution failed. Error details are redacted.'],
    ['nothing at all', '', 'Tool execution failed. Error details are redacted.'],
    ['a list', '[]', 'TOOL_CALL_BLOCKED: invalid input at "": must be a JSON object'],
    ['null', 'null', 'TOOL_CALL_BLOCKED: invalid input at "": must be a JSON object'],
  ] as const) {
    it(`is refused and recorded once where its input is ${what}, and waits for nobody`, async () => {
      const { model, ran, audit, result } = await runOne(readTool(), callOf('read', text))
      assert.equal(result.interruptions.length, 0)
      assert.deepEqual(ran, [])
      assert.deepEqual(toldTexts(model), [told])
      assert.deepEqual(audit.attempts(), ['read tool_blocked input_invalid'])
    })
  }

  it('is refused by the schema, with a pointer to what is wrong', async () => {
    const { model, ran, audit } = await runOne(readTool(), callOf('read', { path: 7 }))
    assert.deepEqual(ran, [])
    assert.match(toldTexts(model)[0] ?? '', /^TOOL_CALL_BLOCKED: invalid input at "\/path": /)
    assert.deepEqual(audit.attempts(), ['read tool_blocked input_invalid'])
  })

  it('gets what the tool’s own schema makes of its input', async () => {
    const ran: unknown[] = []
    const strict = tool({
      name: 'read',
      description: 'x',
      parameters: z.object({ path: z.string(), depth: z.number().nullable() }),
      execute: (input) => {
        ran.push(input)
        return 'ok'
      },
    })
    await runOne({ tool: strict, ran: [] }, callOf('read', { path: 'a', depth: null }))
    assert.deepEqual(ran, [{ path: 'a', depth: null }])
  })

  it('tells the SDK’s own words of a tool that throws, and is recorded as failed', async () => {
    const { model, audit } = await runOne(throwingTool(), callOf('fail', {}))
    assert.deepEqual(toldTexts(model), ['An error occurred while running the tool. Please try again.'])
    assert.deepEqual(
      audit.records.map(({ event, error }) => [event, error !== undefined]),
      [
        ['tool_call', false],
        ['tool_result', true],
      ],
    )
  })

  it('tells what the tool’s own errorFunction says', async () => {
    const { model } = await runOne(throwingTool({ errorFunction: () => 'my words' }), callOf('fail', {}))
    assert.deepEqual(toldTexts(model), ['my words'])
  })

  it('ends the run with the tool’s own error, where the tool wants that', async () => {
    const ended = runOne(throwingTool({ errorFunction: null }), callOf('fail', {}))
    await assert.rejects(ended, /disk is full/)
  })

  it('tells the gate’s words of a tool of the gate’s own that throws', async () => {
    const own = defineTool({ name: 'fail', execute: () => Promise.reject(new Error('disk is full')) })
    const model = new ScriptedModel([calls('fail'), DONE])
    const guarded = guard(createGate({ tools: [own] }), { caller: VIEWER })
    await runnerOf(guarded).run(new Agent({ name: 'A', model, tools: guarded.tools }), 'hi')
    assert.match(toldTexts(model)[0] ?? '', /fail/)
  })

  for (const [what, output] of [
    ['a structured output', { type: 'text', text: 'structured' }],
    ['a list', [1, 2]],
  ] as const) {
    it(`gets ${what} through untouched`, async () => assert.equal(await outputOf(() => output), output))
  }

  it('gets an async generator through as one, which nobody has begun to read', async () => {
    let begun = false
    const stream = await outputOf(async function* () {
      begun = true
      yield 'part'
    })
    assert.equal(begun, false)
    const parts = await Array.fromAsync(stream as AsyncIterable<unknown>)
    assert.deepEqual(parts, ['part'])
  })

  it('is ended by the tool’s own timeout, as the SDK tells it', async () => {
    let aborted: unknown
    const slow = tool({
      name: 'slow',
      description: 'x',
      parameters: NO_INPUT,
      timeoutMs: 20,
      execute: (_, __, details) =>
        new Promise((resolve) => {
          details?.signal?.addEventListener('abort', () => {
            aborted = details.signal?.reason
            resolve('late')
          })
        }),
    })
    const { model, audit } = await runOne({ tool: slow, ran: [] }, callOf('slow', {}))
    assert.deepEqual(toldTexts(model), ["Tool 'slow' timed out after 20ms."])
    assert.match(String(aborted), /timed out/)
    assert.deepEqual(audit.attempts(), ['slow tool_call', 'slow tool_abandoned tool_aborted'])
  })

  it('is ended by the gate’s deadline, in the gate’s words', async () => {
    const slow = tool({ name: 'slow', description: 'x', parameters: NO_INPUT, execute: () => new Promise(() => {}) })
    const { model } = await runOne({ tool: slow, ran: [] }, callOf('slow', {}), { deadlineMs: 20 })
    assert.match(toldTexts(model)[0] ?? '', /slow/)
    assert.doesNotMatch(toldTexts(model)[0] ?? '', /An error occurred/)
  })

  it('is aborted with the run', async () => {
    const abort = new AbortController()
    let aborted = false
    const slow = tool({
      name: 'slow',
      description: 'x',
      parameters: NO_INPUT,
      execute: (_, __, details) =>
        new Promise((resolve) => {
          details?.signal?.addEventListener('abort', () => {
            aborted = true
            resolve('late')
          })
          abort.abort(new Error('enough'))
        }),
    })
    const audit = createTestAudit()
    const guarded = guard(createGate({ tools: fromOpenAIAgents([slow]), audit }), { caller: VIEWER })
    const agent = new Agent({ name: 'A', model: new ScriptedModel([calls('slow'), DONE]), tools: guarded.tools })
    await assert.rejects(runnerOf(guarded).run(agent, 'hi', { signal: abort.signal }))
    assert.ok(aborted)
    assert.equal(audit.attempts().length, 2)
  })

  it('is stopped by a halt, in the gate’s words', async () => {
    const { agent, runner, model, gate, witness, audit } = createScene()
    const halt = modelResponder(async () => {
      await gate.halt({ user: 'vera', reason: 'lost her laptop' })
      return calls('search')
    })
    model.enqueue(halt, DONE)
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['search tool_blocked halted'])
    await gate.close()
  })
})

describe('guard: the tool’s own guardrails', () => {
  it('stay, and what they refuse leaves a record', async () => {
    const { tool: read, ran } = readTool({
      inputGuardrails: [guardrail('no-etc', { type: 'rejectContent', message: 'Not that one.' })],
    })
    const { model, audit } = await runOne({ tool: read, ran }, callOf('read', { path: '/etc' }))
    assert.deepEqual(ran, [])
    assert.deepEqual(toldTexts(model), ['Not that one.'])
    assert.deepEqual(audit.attempts(), ['read tool_blocked hook_denied'])
  })

  it('that end the run do so, and leave a record', async () => {
    const audit = createTestAudit()
    const { tool: read, ran } = readTool({ inputGuardrails: [guardrail('tripwire', { type: 'throwException' })] })
    await assert.rejects(runOne({ tool: read, ran }, callOf('read', { path: '/etc' }), { audit }))
    assert.deepEqual(ran, [])
    assert.deepEqual(audit.attempts(), ['read tool_blocked hook_denied'])
  })

  it('cannot let through what the gate refuses', async () => {
    const { tool: read, ran } = readTool({ inputGuardrails: [guardrail('yes', { type: 'allow' })] })
    await runOne({ tool: read, ran }, callOf('read', { path: '/a' }), { policy: { deny: ['read'] } })
    assert.deepEqual(ran, [])
  })
})

describe('guard: what is changed afterwards', () => {
  it('removes nothing: a copy with other flags still asks the gate', async () => {
    const { guarded, audit, witness, runner } = createScene()
    const loosened = guarded.tools.map((one) =>
      one.type === 'function'
        ? { ...one, isEnabled: async () => true, needsApproval: async () => false, inputGuardrails: [] }
        : one,
    )
    const model = new ScriptedModel([calls('delete_all'), DONE])
    const agent = new Agent<Session>({ name: 'A', model, tools: loosened })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
    assert.deepEqual(toldTexts(model), [NOBODY_KNOWS('delete_all')])
  })

  it('nor does a runner of one’s own, whatever it says of tools that are not found', async () => {
    const { guarded, agent, witness, audit } = createScene({ script: [calls('delete_all'), DONE] })
    const runner = runnerOf({ runConfig: { ...guarded.runConfig, toolErrorFormatter: () => 'mine' } })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), [])
  })

  it('one’s own words come where the gate has none', async () => {
    const { agent, runner, model } = createScene({
      script: [calls('delete_all', 'alpha'), DONE],
      guard: { toolErrorFormatter: ({ toolName }) => `no ${toolName} here` },
    })
    agent.tools = agent.tools.filter(({ name }) => name !== 'alpha')
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(toldTexts(model), [NOBODY_KNOWS('delete_all'), 'no alpha here'])
  })
})

describe('guard: tools that it does not govern', () => {
  it('are none of its business: a person’s no to one of them is told as you say, and leaves no record', async () => {
    const shell = shellTool({ shell: { run: () => Promise.reject(new Error('none')) }, needsApproval: true })
    const { guarded, runner, audit } = createScene({
      guard: { ungoverned: [shell], toolErrorFormatter: ({ toolType }) => `no ${toolType}` },
    })
    const action = { commands: ['ls'] }
    const model = new ScriptedModel([[{ type: 'shell_call', callId: 's', status: 'in_progress', action }], DONE])
    const agent = new Agent<Session>({ name: 'A', model, tools: guarded.tools })
    const { state, interruptions } = await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    const [item] = interruptions
    assert.ok(item)
    await assert.rejects(guarded.answer(state, item, VIEWER, { decision: 'reject' }), /no tool of the gate/)
    state.reject(item)
    await runner.run(agent, state)
    assert.match(JSON.stringify(model.lastCall?.request.input), /no shell/)
    assert.deepEqual(audit.attempts(), [])
  })
})

describe('guard: tools with a schema of their output', () => {
  const withOutput = (errorFunction?: () => { ok: boolean }) =>
    tool({
      name: 'report',
      description: 'x',
      parameters: NO_INPUT,
      outputSchema: z.object({ ok: z.boolean() }),
      execute: () => ({ ok: true }),
      ...(errorFunction ? { errorFunction } : {}),
    })

  it('give it as they are', async () => {
    const { model } = await runOne({ tool: withOutput(), ran: [] }, callOf('report', {}))
    assert.deepEqual(toldTexts(model), ['{"ok":true}'])
  })

  it('put a refusal into it with their own errorFunction', async () => {
    const limits = { limits: 'report:1/60' }
    const { model } = await runOne(
      { tool: withOutput(() => ({ ok: false })), ran: [] },
      [callOf('report', {}, 'a'), callOf('report', {}, 'b')],
      limits,
    )
    assert.deepEqual(toldTexts(model), ['{"ok":true}', '{"ok":false}'])
  })

  it('and say the gate’s words where they have none', async () => {
    const { model } = await runOne({ tool: withOutput(), ran: [] }, callOf('report', {}), {
      policy: { deny: [{ match: 'report', input: 'true', message: 'No.' }] },
    })
    assert.deepEqual(toldTexts(model), ['"TOOL_CALL_BLOCKED: No."'])
  })
})

describe('guard: tools in a namespace', () => {
  it('are namespace:name for the gate, and keep their namespace on the wire', async () => {
    const ran: string[] = []
    const remove = tool({
      name: 'remove',
      description: 'x',
      parameters: NO_INPUT,
      execute: () => {
        ran.push('remove')
        return 'ok'
      },
    })
    const audit = createTestAudit()
    const tools = fromOpenAIAgents(toolNamespace({ name: 'crm', description: 'CRM', tools: [remove] }))
    const policy = { deny: [{ match: 'crm:*', unless: "'admin' in caller.roles" }] } as const
    const guarded = guard(createGate({ tools, policy, audit }), {
      caller: ({ context }: { context: Session }) => context.caller,
    })
    const call = { type: 'function_call', callId: 'c', name: 'remove', namespace: 'crm', arguments: '{}' } as const
    for (const caller of [VIEWER, ADMIN]) {
      const model = new ScriptedModel([[call], DONE])
      const agent = new Agent<Session>({ name: 'A', model, tools: guarded.tools })
      await runnerOf(guarded).run(agent, 'hi', { context: { caller } })
    }
    assert.deepEqual(ran, ['remove'])
    assert.deepEqual(audit.attempts(), [
      'crm:remove tool_blocked policy_denied',
      'crm:remove tool_call',
      'crm:remove tool_result',
    ])
  })
})

describe('RefusedCall', () => {
  it('says exactly what the model is told', async () => {
    const seen: string[] = []
    const { tool: read, ran } = readTool()
    const own = Object.assign(read, {
      outputSchema: { type: 'object', properties: {}, required: [], additionalProperties: false },
      errorFunction: (_: unknown, error: unknown) => {
        assert.ok(error instanceof RefusedCall)
        seen.push(String(error))
        return '{}'
      },
    })
    await runOne({ tool: own, ran }, callOf('read', { path: '/a' }), {
      hooks: { beforeToolCall: () => ({ allow: false, reason: 'no' }) },
    })
    assert.deepEqual(seen, ['TOOL_CALL_BLOCKED: no'])
  })
})

interface One {
  readonly tool: Governable
  readonly ran: readonly unknown[]
}

const PATH = {
  type: 'object',
  properties: { path: { type: 'string' } },
  required: ['path'],
  additionalProperties: false,
} as const

function readTool(more: Partial<Pick<FunctionTool, 'inputGuardrails'>> = {}): One {
  const ran: unknown[] = []
  const read = tool({
    name: 'read',
    description: 'x',
    parameters: { ...PATH, required: ['path'] },
    execute: (input) => {
      ran.push((input as { path: string }).path)
      return 'text'
    },
    ...more,
  })
  return { tool: read, ran }
}

function throwingTool(more: { errorFunction?: (() => string) | null } = {}): One {
  const fail = tool({
    name: 'fail',
    description: 'x',
    parameters: NO_INPUT,
    execute: () => Promise.reject(new Error('disk is full')),
    ...more,
  })
  return { tool: fail, ran: [] }
}

function guardrail(
  name: string,
  behavior: { type: 'allow' } | { type: 'throwException' } | { type: 'rejectContent'; message: string },
) {
  return defineToolInputGuardrail({ name, run: () => Promise.resolve({ behavior }) })
}

/** What the SDK has as the result of a tool, before it makes a text of it. */
async function outputOf(execute: () => unknown): Promise<unknown> {
  let output: unknown
  const any = tool({ name: 'any', description: 'x', parameters: NO_INPUT, execute })
  const guarded = guard(createGate({ tools: fromOpenAIAgents([any]) }), { caller: VIEWER })
  const agent = new Agent({
    name: 'A',
    model: new ScriptedModel([calls('any')]),
    tools: guarded.tools,
    toolUseBehavior: (_, [result]) => {
      output = result?.type === 'function_output' ? result.output : undefined
      return { isFinalOutput: true, isInterrupted: undefined, finalOutput: 'end' }
    },
  })
  await runnerOf(guarded).run(agent, 'hi')
  return output
}

async function runOne(
  { tool: one, ran }: One,
  call: ReturnType<typeof callOf> | ReturnType<typeof callOf>[],
  gateOptions: Omit<GateOptions, 'tools' | 'sources'> = {},
) {
  const audit = createTestAudit()
  const guarded = guard(createGate({ audit, ...gateOptions, tools: fromOpenAIAgents([one]) }), { caller: VIEWER })
  const model = new ScriptedModel([[call].flat(), DONE])
  const agent = new Agent({ name: 'A', model, tools: guarded.tools })
  const result = await runnerOf(guarded).run(agent, 'hi')
  return { model, audit, ran, result }
}
