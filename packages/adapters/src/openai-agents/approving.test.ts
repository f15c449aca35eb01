import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Agent, MemorySession, RunContext, RunState, tool } from '@openai/agents'
import { ScriptedModel } from '@openai/agents/testing'
import { createGate, defineCaller, type Gate, ToolgateError } from '@toolgate/core'
import { z } from 'zod'
import { fromOpenAIAgents, guard } from '../openai-agents.ts'
import {
  callOf,
  calls,
  callerOf,
  createScene,
  DONE,
  NO_INPUT,
  runnerOf,
  type Scene,
  type Session,
  toldTexts,
} from '../testing/openai-agents-scene.ts'
import { ADMIN, createTestAudit, VIEWER } from '../testing/world.ts'

const ASKED = { policy: { ask: ['delete_all'] } } as const
const WAITING = 'Waiting for approval of delete_all.'

describe('guard: a call that a person has to approve', () => {
  it('pauses the run, runs nothing, and waits at the gate', async () => {
    const { gate, witness, audit, result } = await pause()
    assert.deepEqual(
      result.interruptions.map(({ name }) => name),
      ['delete_all'],
    )
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['delete_all tool_approval_required approval_required'])
    const [approval] = await gate.approvals.list()
    assert.deepEqual([approval?.tool, approval?.user, approval?.status], ['delete_all', 'ada', 'pending'])
  })

  it('runs exactly once when a person has said yes', async () => {
    const { agent, runner, guarded, model, witness, audit, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    const resumed = await runner.run(agent, result.state)
    assert.equal(resumed.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(toldTexts(model), ['delete_all done'])
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_approval_required approval_required',
      'delete_all tool_call',
      'delete_all tool_result',
    ])
  })

  it('does not run when a person has said no, and the model is told why', async () => {
    const { agent, runner, guarded, model, witness, audit, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'reject', reason: 'not on a Friday' })
    await runner.run(agent, result.state)
    assert.deepEqual(witness.ran, [])
    assert.match(toldTexts(model)[0] ?? '', /not on a Friday/)
    assert.equal(audit.attempts().length, 2)
    assert.match(audit.attempts()[1] ?? '', /^delete_all tool_blocked approval_rejected$/)
  })

  it('is left out of the history, if the user writes instead, and still waits at the gate', async () => {
    const session = new MemorySession()
    const scene = createScene({ ...ASKED, script: [calls('search', 'delete_all'), DONE] })
    const options = { context: { caller: ADMIN }, session }
    await scene.runner.run(scene.agent, 'Delete.', options)
    const { finalOutput } = await scene.runner.run(scene.agent, 'Wait.', options)
    assert.equal(finalOutput, 'done')
    const { input } = scene.model.lastCall?.request ?? { input: [] }
    assert.deepEqual(
      Array.isArray(input) && input.map((item) => ('name' in item ? `${item.type} ${item.name}` : item.type)),
      ['message', 'function_call search', 'function_call_result search', 'message'],
    )
    assert.deepEqual(scene.witness.ran, ['search'])
    assert.equal((await scene.gate.approvals.list())[0]?.status, 'pending')
  })

  it('follows what people decide at the gate itself', async () => {
    const { agent, runner, gate, guarded, witness, audit, result } = await pause()
    assert.equal((await guarded.settle(result.state)).length, 1)
    const [approval] = await gate.approvals.list()
    await gate.approvals.decide({ user: 'boss', roles: ['approver'] }, approval?.id ?? '', { decision: 'approve' })
    assert.equal((await guarded.settle(result.state)).length, 0)
    assert.equal(audit.attempts().length, 1)
    await runner.run(agent, result.state)
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('follows them, too, for a tool whose schema fills in a default', async () => {
    const ran: unknown[] = []
    const inputSchema = z.object({ path: z.string(), deep: z.boolean().default(true) })
    const wipe = { inputSchema, execute: (input: unknown) => void ran.push(input) }
    const gate = createGate({ tools: { wipe }, policy: { ask: ['wipe'] } })
    const guarded = guard(gate, { caller: callerOf })
    const model = new ScriptedModel([[callOf('wipe', { path: 'a' })], DONE])
    const agent = new Agent<Session>({ name: 'A', model, tools: guarded.tools })
    const { state } = await runnerOf(guarded).run(agent, 'hi', { context: { caller: ADMIN } })
    assert.equal((await guarded.settle(state)).length, 1)
    const [approval] = await gate.approvals.list()
    await gate.approvals.decide(ADMIN, approval?.id ?? '', { decision: 'approve' })
    assert.equal((await guarded.settle(state)).length, 0)
    await runnerOf(guarded).run(agent, state)
    assert.deepEqual(ran, [{ path: 'a', deep: true }])
  })

  it('follows a no that was said at the gate', async () => {
    const { agent, runner, gate, guarded, witness, model, audit, result } = await pause()
    const [approval] = await gate.approvals.list()
    await gate.approvals.decide(ADMIN, approval?.id ?? '', { decision: 'reject', reason: 'never' })
    assert.equal((await guarded.settle(result.state)).length, 0)
    await runner.run(agent, result.state)
    assert.deepEqual(witness.ran, [])
    assert.match(toldTexts(model)[0] ?? '', /never/)
    assert.deepEqual(audit.attempts().slice(1), ['delete_all tool_blocked approval_rejected'])
  })

  it('cannot be approved by one who may not', async () => {
    const { agent, runner, guarded, witness, result, item } = await pause()
    await assert.rejects(
      guarded.answer(result.state, item, { user: 'mallory' }, { decision: 'approve' }),
      (error) => error instanceof ToolgateError && error.code === 'approval_forbidden',
    )
    const again = await runner.run(agent, result.state)
    assert.equal(again.interruptions.length, 1)
    assert.deepEqual(witness.ran, [])
  })

  it('does not run by the SDK’s own approve: the gate has heard of no person', async () => {
    for (const options of [undefined, { alwaysApprove: true }]) {
      const { agent, runner, model, witness, audit, result, item } = await pause()
      result.state.approve(item, options)
      await runner.run(agent, result.state)
      assert.deepEqual(witness.ran, [])
      assert.deepEqual(toldTexts(model), [WAITING])
      assert.deepEqual(audit.attempts(), Array(2).fill('delete_all tool_approval_required approval_required'))
    }
  })

  it('does not run by an approval that stands in a saved state', async () => {
    const { agent, runner, guarded, model, witness, result, item } = await pause()
    result.state.approve(item)
    const forged = await guarded.restore(agent, result.state.toString(), { caller: ADMIN })
    await runner.run(agent, forged)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(toldTexts(model), [WAITING])
  })

  it('does not run again when its approved state is run again', async () => {
    const { agent, runner, guarded, model, witness, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    const saved = result.state.toString()
    for (const _ of [1, 2, 3]) {
      model.enqueue(DONE)
      await runner.run(agent, await guarded.restore(agent, saved, { caller: ADMIN }))
    }
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(toldTexts(model), [WAITING])
  })

  it('pauses a streamed run, which goes on streamed', async () => {
    const { agent, runner, guarded, witness } = createScene({ ...ASKED, script: [calls('delete_all'), DONE] })
    const stream = await runner.run(agent, 'hi', { context: { caller: ADMIN }, stream: true })
    await stream.completed
    const [item] = stream.interruptions
    assert.ok(item)
    await guarded.answer(stream.state, item, ADMIN, { decision: 'approve' })
    const resumed = await runner.run(agent, stream.state, { stream: true })
    await resumed.completed
    assert.equal(resumed.finalOutput, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('is refused at once, with one record, where it could not run even then', async () => {
    const { agent, runner, model, witness, audit } = createScene({
      ...ASKED,
      limits: 'delete_all:1/60',
      counters: { peek: refuse, take: refuse, giveBack: () => undefined, settle: () => undefined },
      script: [calls('delete_all'), DONE],
    })
    const result = await runner.run(agent, 'hi', { context: { caller: ADMIN } })
    assert.equal(result.interruptions.length, 0)
    assert.deepEqual(witness.ran, [])
    assert.match(toldTexts(model)[0] ?? '', /rate limited/)
    assert.deepEqual(audit.attempts(), ['delete_all tool_rate_limited rate_limited'])
  })

  it('is not approved for another input', async () => {
    const ran: unknown[] = []
    const gate = createGate({ tools: fromOpenAIAgents([removeTool(ran)]), policy: { ask: ['remove'] } })
    const guarded = guard(gate, { caller: ADMIN })
    const model = new ScriptedModel([[callOf('remove', { path: 'a' }, 'c1')], [callOf('remove', { path: 'b' }, 'c2')]])
    const agent = new Agent({ name: 'A', model, tools: guarded.tools })
    const first = await runnerOf(guarded).run(agent, 'hi')
    const [item] = first.interruptions
    assert.ok(item)
    await guarded.answer(first.state, item, ADMIN, { decision: 'approve' })
    const second = await runnerOf(guarded).run(agent, first.state)
    assert.deepEqual(ran, ['a'])
    assert.equal(second.interruptions.length, 1)
  })
})

describe('guard: several calls that wait', () => {
  it('are each answered for itself', async () => {
    const ran: unknown[] = []
    const gate = createGate({ tools: fromOpenAIAgents([removeTool(ran)]), policy: { ask: ['remove'] } })
    const guarded = guard(gate, { caller: ADMIN })
    const both = ['a', 'b'].map((path) => callOf('remove', { path }, path))
    const model = new ScriptedModel([both, DONE])
    const agent = new Agent({ name: 'A', model, tools: guarded.tools })
    const { state, interruptions } = await runnerOf(guarded).run(agent, 'hi')
    const [first, second] = interruptions
    assert.ok(first && second)
    await guarded.answer(state, first, ADMIN, { decision: 'approve' })
    await guarded.answer(state, second, ADMIN, { decision: 'reject', reason: 'keep it' })
    await runnerOf(guarded).run(agent, state)
    assert.deepEqual(ran, ['a'])
    assert.equal(toldTexts(model)[0], 'removed')
    assert.match(toldTexts(model)[1] ?? '', /keep it/)
  })
})

describe('guard: a run that is resumed', () => {
  it('runs nothing of what was hidden after its approval, and the refusal is recorded', async () => {
    const { agent, runner, gate, guarded, model, witness, audit, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    gate.setPolicy({ deny: ['delete_all'] })
    const resumed = await runner.run(agent, result.state)
    assert.equal(resumed.finalOutput, 'done')
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(toldTexts(model), ['Tool "delete_all" is not available. Available tools: alpha, search.'])
    assert.equal(audit.attempts()[1], 'delete_all tool_blocked policy_denied')
    assert.doesNotMatch(JSON.stringify(model.lastCall?.request.tools), /delete_all/)
  })

  it('neither in another process, where the state is read back', async () => {
    const { gate, guarded, model, agent, runner, witness, audit, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    gate.setPolicy({ deny: ['delete_all'] })
    const state = await guarded.restore(agent, result.state.toString(), { caller: ADMIN })
    await runner.run(agent, state)
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.attempts()[1], 'delete_all tool_blocked policy_denied')
    assert.doesNotMatch(JSON.stringify(model.lastCall?.request.tools), /delete_all/)
  })

  it('nor by the SDK’s own reading back, which cannot find the tool', async () => {
    const { gate, guarded, agent, witness, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    gate.setPolicy({ deny: ['delete_all'] })
    const context = new RunContext<Session>({ caller: ADMIN })
    const reading = RunState.fromStringWithContext(agent, result.state.toString(), context)
    await assert.rejects(reading, /Tool delete_all not found/)
    assert.deepEqual(witness.ran, [])
  })

  it('nor for the caller that the saved state names, whoever wrote it', async () => {
    const { agent, guarded, witness, result, item } = await pause()
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    await assert.rejects(RunState.fromString(agent, result.state.toString()), { code: 'caller_untrusted' })
    assert.deepEqual(witness.ran, [])
  })

  it('nor for one who has lost the role meanwhile', async () => {
    const { agent, runner, guarded, witness, audit, result, item, session } = await pause({
      policy: { ask: ['delete_all'], deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] },
    })
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    session.caller = defineCaller({ user: 'ada', roles: ['viewer'] })
    await runner.run(agent, result.state)
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.attempts()[1], 'delete_all tool_blocked policy_denied')
  })

  it('goes on in another process, of another guard over the same stores', async () => {
    const here = await pause()
    await here.guarded.answer(here.result.state, here.item, ADMIN, { decision: 'approve' })
    const there = elsewhere(here)
    const state = await there.guarded.restore(there.agent, here.result.state.toString(), { caller: ADMIN })
    const resumed = await runnerOf(there.guarded).run(there.agent, state)
    assert.equal(resumed.finalOutput, 'done')
    assert.deepEqual(here.witness.ran, ['delete_all'])
  })

  it('can be answered there too: the approval is found where it waits', async () => {
    const here = await pause()
    const there = elsewhere(here)
    const state = await there.guarded.restore(there.agent, here.result.state.toString(), { caller: ADMIN })
    const [item] = state.getInterruptions()
    assert.ok(item)
    await there.guarded.answer(state, item, ADMIN, { decision: 'approve' })
    assert.equal(here.audit.attempts().length, 1)
    await runnerOf(there.guarded).run(there.agent, state)
    assert.deepEqual(here.witness.ran, ['delete_all'])
  })

  it('is run as whom the host says, not as whom the saved state says', async () => {
    const { agent, runner, guarded, witness, result, item } = await pause({
      policy: { ask: ['delete_all'], deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] },
    })
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    const saved = result.state.toString()
    assert.match(saved, /"admin"/)
    await runner.run(agent, await guarded.restore(agent, saved, { caller: VIEWER }))
    assert.deepEqual(witness.ran, [])
  })

  it('has its approvals bound to it where the host names it', async () => {
    const runId = ({ context }: { context: Session & { run?: string } }) => context.run ?? 'r1'
    const options = { ...ASKED, guard: { runId } }
    const { agent, runner, guarded, witness, result, item } = await pause(options)
    await guarded.answer(result.state, item, ADMIN, { decision: 'approve' })
    const saved = result.state.toString()
    const other: Named = { caller: ADMIN, run: 'r2' }
    await runner.run(agent, await guarded.restore(agent, saved, other))
    assert.deepEqual(witness.ran, [])
    const { model } = { model: agent.model as ScriptedModel }
    model.enqueue(DONE)
    await runner.run(agent, await guarded.restore(agent, saved, { caller: ADMIN }))
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('is answered for itself, where another run waits for the same', async () => {
    const scene = createScene({ ...ASKED, guard: { runId: ({ context }) => (context as Named).run } })
    const [first, second] = await Promise.all(
      ['r1', 'r2'].map((run) => {
        scene.model.enqueue(calls('delete_all'))
        const context: Named = { caller: ADMIN, run }
        return start(scene, context)
      }),
    )
    assert.ok(first && second)
    const [item] = first.interruptions
    assert.ok(item)
    await scene.guarded.answer(first.state, item, ADMIN, { decision: 'approve' })
    assert.equal((await scene.guarded.settle(second.state)).length, 1)
    scene.model.enqueue(DONE)
    await scene.runner.run(scene.agent, first.state)
    assert.deepEqual(scene.witness.ran, ['delete_all'])
  })

  it('that waits for a call whose input is no JSON, without runConfig, can be answered with the record of it', async () => {
    const { agent, guarded, model, witness, audit } = createScene({ script: [[callOf('search', '{')], DONE] })
    const result = await runnerOf().run(agent, 'hi', { context: { caller: VIEWER } })
    const [item] = result.interruptions
    assert.ok(item)
    await guarded.answer(result.state, item, VIEWER, { decision: 'approve' })
    await runnerOf().run(agent, result.state)
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['search tool_blocked input_invalid'])
    assert.equal(model.calls.length, 2)
  })
})

describe('guard: the user’s own needsApproval', () => {
  const own = (needsApproval: boolean, policy = {}) => {
    const ran: unknown[] = []
    const audit = createTestAudit()
    const gate = createGate({ tools: fromOpenAIAgents([removeTool(ran, needsApproval)]), policy, audit })
    const guarded = guard(gate, { caller: ADMIN })
    const model = new ScriptedModel([[callOf('remove', { path: 'a' })], DONE])
    return { agent: new Agent({ name: 'A', model, tools: guarded.tools }), guarded, ran, audit }
  }

  it('still asks where the gate does not, and the SDK’s own approve is enough then', async () => {
    const { agent, guarded, ran } = own(true)
    const { state, interruptions } = await runnerOf(guarded).run(agent, 'hi')
    const [item] = interruptions
    assert.ok(item)
    assert.equal((await guarded.settle(state)).length, 1)
    state.approve(item)
    await runnerOf(guarded).run(agent, state)
    assert.deepEqual(ran, ['a'])
  })

  it('is answered with the gate’s in one', async () => {
    const { agent, guarded, ran } = own(true, { ask: ['remove'] })
    const { state, interruptions } = await runnerOf(guarded).run(agent, 'hi')
    const [item] = interruptions
    assert.ok(item)
    await guarded.answer(state, item, ADMIN, { decision: 'approve' })
    await runnerOf(guarded).run(agent, state)
    assert.deepEqual(ran, ['a'])
  })

  it('cannot take away the gate’s', async () => {
    const { agent, guarded, ran } = own(false, { ask: ['remove'] })
    const { interruptions } = await runnerOf(guarded).run(agent, 'hi')
    assert.equal(interruptions.length, 1)
    assert.deepEqual(ran, [])
  })

  it('is not asked about what the gate refuses', async () => {
    const { agent, guarded, ran, audit } = own(true, {
      ask: ['remove'],
      deny: [{ match: 'remove', input: "input.path == 'a'", message: 'Not that.' }],
    })
    const { interruptions } = await runnerOf(guarded).run(agent, 'hi')
    assert.equal(interruptions.length, 0)
    assert.deepEqual(ran, [])
    assert.deepEqual(audit.attempts(), ['remove tool_blocked input_denied'])
  })

  it('that a person answers with no in the SDK leaves a record too', async () => {
    const { agent, guarded, ran, audit } = own(true)
    const { state, interruptions } = await runnerOf(guarded).run(agent, 'hi')
    const [item] = interruptions
    assert.ok(item)
    state.reject(item)
    await runnerOf(guarded).run(agent, state)
    assert.deepEqual(ran, [])
    assert.deepEqual(audit.attempts(), ['remove tool_blocked input_invalid'])
  })
})

type Named = Session & { readonly run: string }

type Paused = Scene & {
  readonly session: Session
  readonly result: Awaited<ReturnType<typeof start>>
  readonly item: Awaited<ReturnType<typeof start>>['interruptions'][number]
}

async function pause(options: Parameters<typeof createScene>[0] = ASKED): Promise<Paused> {
  const scene = createScene({ ...options, script: [calls('delete_all'), DONE] })
  const session: Session = { caller: ADMIN }
  const result = await start(scene, session)
  const [item] = result.interruptions
  assert.ok(item)
  return { ...scene, session, result, item }
}

function start({ runner, agent }: Scene, context: Session) {
  return runner.run(agent, 'hi', { context })
}

/** The same agent, as another process would make it: nothing in common but the gate with its stores. */
function elsewhere({ gate }: { gate: Gate }) {
  const guarded = guard(gate, { caller: callerOf })
  const model = new ScriptedModel([DONE])
  return {
    guarded,
    agent: new Agent<Session>({ name: 'Assistant', instructions: 'Help.', model, tools: guarded.tools }),
  }
}

function removeTool(ran: unknown[], needsApproval = false) {
  return tool({
    name: 'remove',
    description: 'x',
    parameters: { ...NO_INPUT, properties: { path: { type: 'string' } }, required: ['path'] },
    needsApproval,
    execute: (input) => {
      ran.push((input as { path: string }).path)
      return 'removed'
    },
  })
}

function refuse() {
  return { allowed: false, refused: 0, remaining: 0, resetMs: 1000 }
}
