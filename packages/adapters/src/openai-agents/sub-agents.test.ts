import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, handoff, type ModelRequest, type ModelResponse, RunContext, tool } from '@openai/agents'
import { modelResponder, ScriptedModel } from '@openai/agents/testing'
import { type Caller, createGate, defineCaller, type GateOptions } from '@toolgate/core'
import {
  fromOpenAIAgents,
  type Governable,
  type Guard,
  guard,
  type GuardOptions,
  RefusedCall,
} from '../openai-agents.ts'
import {
  callOf,
  callerOf,
  calls,
  createTools,
  DONE,
  NO_INPUT,
  runnerOf,
  sentTools,
  type Session,
  toldTexts,
} from '../testing/openai-agents-scene.ts'
import { ADMIN, ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'

const ASK_HELPER = callOf('helper', { input: 'please' })

describe('guard: an agent as a tool', () => {
  it('sees what the run sees, and refuses the same', async () => {
    for (const caller of [VIEWER, ADMIN]) {
      const { start, inner, witness, audit, outer } = createFamily({ inner: [calls('delete_all', 'search'), DONE] })
      const result = await start(caller)
      assert.equal(result.finalOutput, 'done')
      assert.deepEqual(
        sentTools(inner)[0],
        sentTools(outer)[0]?.filter((name) => name !== 'helper'),
      )
      assert.equal(witness.ran.includes('delete_all'), caller === ADMIN)
      assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
      const refused = audit.attempts().filter((one) => one === 'delete_all tool_blocked policy_denied')
      assert.equal(refused.length, caller === ADMIN ? 0 : 1)
    }
  })

  it('ends its own run at a hidden tool where it was not given the runConfig, and that is recorded too', async () => {
    const { start, inner, outer, witness, audit } = createFamily({
      inner: [calls('delete_all')],
      asTool: (helper) => helper.asTool({ ...ABOUT_HELPER, runConfig: { tracingDisabled: true } }),
    })
    const result = await start(VIEWER)
    assert.equal(result.finalOutput, 'done')
    assert.deepEqual(witness.ran, [])
    assert.equal(inner.calls.length, 1)
    assert.match(toldTexts(outer)[0] ?? '', /^An error occurred while running the tool/)
    assert.deepEqual(audit.attempts(), [
      'helper tool_call',
      'delete_all tool_blocked policy_denied',
      'helper tool_result tool_failed',
    ])
  })

  it('sees no more where it is started with a context of its own, or with input of its own shape', async () => {
    const ways: readonly NonNullable<FamilyOptions['asTool']>[] = [
      (helper, about) => helper.asTool({ ...about, runOptions: { context: { caller: ADMIN } } }),
      (helper, about) => helper.asTool({ ...about, runOptions: { context: new RunContext({ caller: ADMIN }) } }),
      withParameters,
    ]
    for (const asTool of ways) {
      const { start, inner, witness, audit } = createFamily({ inner: [calls('delete_all'), DONE], asTool })
      await start(VIEWER)
      assert.deepEqual(sentTools(inner)[0], ['alpha', 'search'])
      assert.deepEqual(witness.ran, [])
      const users = audit.records.map(({ user_id }) => user_id)
      assert.deepEqual(new Set(users), new Set(['vera']))
      assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
    }
  })

  it('is each caller’s own also where all share one context for it, whoever came first', async () => {
    const context = new RunContext<Session>({ caller: ADMIN })
    const shared = createFamily({
      inner: Array.from({ length: 16 }, () => answerOnce(calls('delete_all'))),
      asTool: (helper, about) => helper.asTool({ ...about, runOptions: { context } }),
    })
    shared.outer.enqueue(...Array.from({ length: 14 }, () => answerOnce([ASK_HELPER])))
    const callers = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? ADMIN : VIEWER))
    await Promise.all(callers.map((caller) => shared.start(caller)))
    const seen = sentTools(shared.inner).map(String).toSorted()
    assert.deepEqual(new Set(seen), new Set(['alpha,delete_all,search', 'alpha,search']))
    assert.equal(seen.filter((one) => one === 'alpha,search').length, 8)
    const users = shared.audit.records.filter(({ tool: id }) => id === 'delete_all')
    assert.deepEqual(
      users.filter(({ event }) => event === 'tool_blocked').map(({ user_id }) => user_id),
      Array(4).fill('vera'),
    )
    assert.equal(shared.witness.ran.length, 4)
  })

  it('loses with its caller what that one loses meanwhile', async () => {
    const session: Session = { caller: ADMIN }
    for (const asTool of [asToolOf, withParameters]) {
      session.caller = ADMIN
      const { run, inner, witness } = createFamily({ asTool })
      const downgrade = modelResponder(() => {
        session.caller = defineCaller({ user: 'ada', roles: [] })
        return calls('delete_all')
      })
      inner.enqueue(downgrade, [callOf('delete_all', {}, 'again')], DONE)
      await run(session)
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(sentTools(inner).slice(1), [
        ['alpha', 'search'],
        ['alpha', 'search'],
      ])
    }
  })

  it('sees less where its own guard says so', async () => {
    const { start, inner } = createFamily({ inner: [DONE], innerGuard: { activeTools: ['search', 'delete_all'] } })
    await start(VIEWER)
    assert.deepEqual(sentTools(inner)[0], ['search'])
  })

  it('is narrowed by what its parent’s guard says', async () => {
    const { start, inner } = createFamily({
      inner: [DONE],
      outerGuard: { activeTools: ['helper', 'alpha'] },
      innerGuard: { activeTools: ['alpha', 'search'] },
    })
    await start(ADMIN)
    assert.deepEqual(sentTools(inner)[0], ['alpha'])
  })

  it('is itself a tool that may be hidden', async () => {
    const { start, inner, outer, audit } = createFamily({ policy: { deny: ['helper'] } })
    await start(VIEWER)
    assert.doesNotMatch(JSON.stringify(sentTools(outer)), /helper/)
    assert.equal(inner.calls.length, 0)
    assert.deepEqual(audit.attempts(), ['helper tool_blocked policy_denied'])
  })

  it('may take longer than a call may', async () => {
    const slow = modelResponder(async () => {
      await wait(60)
      return DONE
    })
    const { start, outer } = createFamily({ inner: [slow], deadlineMs: 20 })
    await start(VIEWER)
    assert.deepEqual(toldTexts(outer), ['done'])
  })

  it('pauses the whole run for an approval, and goes on when a person has said yes', async () => {
    const { start, resume, guarded, witness, outer } = createFamily({
      policy: { ask: ['delete_all'] },
      inner: [calls('delete_all'), DONE],
    })
    const { state, interruptions } = await start(ADMIN)
    const [item] = interruptions
    assert.ok(item)
    assert.deepEqual(witness.ran, [])
    await guarded.answer(state, item, ADMIN, { decision: 'approve' })
    const resumed = await resume(state)
    assert.equal(resumed.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(toldTexts(outer), ['done'])
  })

  it('goes on in another process too, where the agent is named among the handoffs', async () => {
    for (const asTool of [asToolOf, withParameters]) {
      const { start, resume, guarded, witness, agent } = createFamily({
        policy: { ask: ['delete_all'] },
        inner: [calls('delete_all'), DONE],
        asTool,
      })
      const { state } = await start(ADMIN)
      const restored = await guarded.restore(agent, state.toString(), { caller: ADMIN })
      const [item] = restored.getInterruptions()
      assert.ok(item)
      await guarded.answer(restored, item, ADMIN, { decision: 'approve' })
      await resume(restored)
      assert.deepEqual(witness.ran, ['delete_all'])
    }
  })

  it('runs nothing of what was hidden while it was paused', async () => {
    const { start, resume, gate, guarded, witness } = createFamily({
      policy: { ask: ['delete_all'] },
      inner: [calls('delete_all'), DONE],
    })
    const { state, interruptions } = await start(ADMIN)
    const [item] = interruptions
    assert.ok(item)
    await guarded.answer(state, item, ADMIN, { decision: 'approve' })
    gate.setPolicy({ deny: ['delete_all'] })
    await resume(state)
    assert.deepEqual(witness.ran, [])
  })
})

describe('guard: an agent that a tool runs by itself', () => {
  it('sees at most what the run sees', async () => {
    const witness = createWitness()
    const { search, delete_all } = createTools(witness)
    const inner = new ScriptedModel([calls('delete_all'), DONE])
    let helper: Agent<Session> | undefined
    const start = tool({
      name: 'start',
      description: 'x',
      parameters: NO_INPUT,
      execute: async (): Promise<unknown> =>
        (await runnerOf(guarded).run(helper!, 'hi', { context: { caller: ADMIN } })).finalOutput,
    })
    const gate = createGate({ tools: fromOpenAIAgents([search, delete_all, start]), policy: ADMINS_DELETE })
    const guarded: Guard<Session> = guard(gate, { caller: callerOf })
    helper = new Agent<Session>({ name: 'Helper', model: inner, tools: guarded.tools })
    const agent = new Agent<Session>({
      name: 'A',
      model: new ScriptedModel([calls('start'), DONE]),
      tools: guarded.tools,
    })
    await runnerOf(guarded).run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(inner)[0], ['search', 'start'])
    assert.deepEqual(witness.ran, [])
  })
})

describe('guard: handoffs', () => {
  it('are tools of the gate: sent to those who may see them, and the other agent is guarded as the first', async () => {
    for (const caller of [VIEWER, ADMIN]) {
      const { run, first, second, witness, audit } = createHandoff({ first: [calls('transfer_to_Admin'), DONE] })
      const result = await run(caller)
      const isAdmin = caller === ADMIN
      assert.equal(first.firstCall?.request.handoffs.length, isAdmin ? 1 : 0)
      assert.equal(result.lastAgent?.name, isAdmin ? 'Admin' : 'First')
      assert.deepEqual(witness.ran, isAdmin ? ['delete_all'] : [])
      assert.deepEqual(sentTools(second)[0], isAdmin ? ['alpha', 'delete_all', 'search'] : undefined)
      assert.equal(new Set(audit.records.map(({ run_id }) => run_id)).size, 1)
      assert.deepEqual(audit.attempts().slice(0, 1), [
        isAdmin ? 'transfer_to_Admin tool_call' : 'transfer_to_Admin tool_blocked policy_denied',
      ])
    }
  })

  it('that are refused after they were offered end the run, as the SDK knows no other way', async () => {
    const { run, first, second, gate, audit } = createHandoff({ first: [] })
    first.enqueue(
      modelResponder(() => {
        gate.setPolicy({ deny: ['transfer_to_Admin'] })
        return calls('transfer_to_Admin')
      }),
    )
    await assert.rejects(run(ADMIN), (error) => error instanceof RefusedCall && /not available/.test(String(error)))
    assert.equal(second.calls.length, 0)
    assert.deepEqual(audit.attempts(), ['transfer_to_Admin tool_blocked policy_denied'])
  })

  it('keep what is done when they are taken', async () => {
    const taken: string[] = []
    const { run } = createHandoff({ first: [calls('transfer_to_Admin')], onHandoff: () => void taken.push('taken') })
    await run(ADMIN)
    assert.deepEqual(taken, ['taken'])
  })
})

interface FamilyOptions extends Omit<GateOptions, 'tools' | 'sources' | 'audit'> {
  readonly inner?: ConstructorParameters<typeof ScriptedModel>[0]
  readonly asTool?: (helper: Agent<Session>, about: typeof ABOUT_HELPER) => Governable
  readonly outerGuard?: Partial<GuardOptions<string, Session>>
  readonly innerGuard?: Partial<GuardOptions<string, Session>>
}

/** Calls at first, and is done when it has an answer. */
function answerOnce(first: ModelResponse['output']) {
  const isAnswered = ({ input }: ModelRequest) =>
    typeof input !== 'string' && input.some(({ type }) => type === 'function_call_result')
  return modelResponder(({ request }) => (isAnswered(request) ? DONE : first))
}

const ABOUT_HELPER = { toolName: 'helper', toolDescription: 'x', runConfig: {} }

function asToolOf(helper: Agent<Session>, about: typeof ABOUT_HELPER): Governable {
  return helper.asTool(about)
}

/** The SDK gives such a run a context of its own, which shares what was approved. */
function withParameters(helper: Agent<Session>, about: typeof ABOUT_HELPER): Governable {
  const parameters = { ...NO_INPUT, properties: { input: { type: 'string' } }, required: ['input'] }
  return helper.asTool({ ...about, parameters, inputBuilder: () => 'built' })
}

/** An agent that calls a helper, which is an agent too; both are guarded by one gate. */
function createFamily({ inner: script, asTool = asToolOf, outerGuard, innerGuard, ...options }: FamilyOptions) {
  const witness = createWitness()
  const audit = createTestAudit()
  const inner = new ScriptedModel(script)
  const outer = new ScriptedModel([answerOnce([ASK_HELPER]), answerOnce([ASK_HELPER])])
  const helper = new Agent<Session>({ name: 'Helper', model: inner })
  const runConfig = { tracingDisabled: true }
  const helperTool = asTool(helper, { ...ABOUT_HELPER, runConfig })
  const native: Governable[] = [...Object.values(createTools(witness)), helperTool]
  const gate = createGate({ policy: ADMINS_DELETE, ...options, audit, tools: fromOpenAIAgents(native) })
  const guarded = guard(gate, { caller: callerOf, ...outerGuard })
  const own = innerGuard ? guard(gate, { caller: callerOf, ...innerGuard }) : guarded
  Object.assign(runConfig, own.runConfig)
  helper.tools = own.tools.filter(({ name }) => name !== 'helper')
  const agent = new Agent<Session>({
    name: 'Assistant',
    model: outer,
    tools: guarded.tools,
    handoffs: [handoff(helper, { isEnabled: false })],
  })
  const runner = runnerOf(guarded)
  return {
    witness,
    audit,
    gate,
    guarded,
    inner,
    outer,
    agent,
    start: (caller: Caller) => runner.run(agent, 'hi', { context: { caller } }),
    run: (context: Session) => runner.run(agent, 'hi', { context }),
    resume: (state: Parameters<typeof guarded.settle>[0]) => runner.run(agent, state),
  }
}

/** An agent that may hand over to one for admins. */
function createHandoff({
  first: script,
  onHandoff,
}: {
  first: ConstructorParameters<typeof ScriptedModel>[0]
  onHandoff?: () => void
}) {
  const witness = createWitness()
  const audit = createTestAudit()
  const first = new ScriptedModel(script)
  const second = new ScriptedModel([calls('delete_all'), DONE])
  const admin = new Agent<Session>({ name: 'Admin', model: second })
  const tools = [...Object.values(createTools(witness)), handoff(admin, onHandoff ? { onHandoff } : {})]
  const policy = { deny: [{ match: ['delete_all', 'transfer_to_Admin'], unless: "'admin' in caller.roles" }] }
  const gate = createGate({ tools: fromOpenAIAgents(tools), policy, audit })
  const guarded = guard(gate, { caller: callerOf })
  admin.tools = guarded.tools
  const agent = new Agent<Session>({ name: 'First', model: first, tools: guarded.tools, handoffs: guarded.handoffs })
  const run = (caller: Caller) => runnerOf(guarded).run(agent, 'hi', { context: { caller } })
  return { run, first, second, gate, witness, audit }
}
