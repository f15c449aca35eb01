import assert from 'node:assert/strict'
import { Agent, defineToolInputGuardrail, type RunContext, RunState, tool } from '@openai/agents'
import { ScriptedModel } from '@openai/agents/testing'
import {
  calls,
  createScene,
  DONE,
  NO_INPUT,
  runnerOf,
  type Scene,
  sentTools,
  type Session,
} from '../testing/openai-agents-scene.ts'
import {
  describeMatrixRow,
  installedVersion,
  type MatrixRow,
  type Observation,
  rejectionCode,
} from '../testing/matrix.ts'
import { ADMIN, ADMINS_DELETE, createWitness, VIEWER, type Witness } from '../testing/world.ts'

type Script = readonly ReturnType<typeof calls>[]

const DELETES = () => [calls('delete_all'), DONE]

function ranNot({ ran }: Witness): Observation {
  const did = ran.includes('delete_all')
  return { holds: !did, saw: did ? 'delete_all ran' : 'delete_all did not run' }
}

function sentNot(model: ScriptedModel): Observation {
  const [sent = []] = sentTools(model)
  const hidden = sent.includes('delete_all')
  return { holds: !hidden, saw: hidden ? 'delete_all was sent' : `sent: ${sent.join(', ')}` }
}

/** The SDK's own means at their best: each tool is hidden by isEnabled, and a guardrail asks the same when it is called. */
function bare({ asks = [], script = DELETES() }: { readonly asks?: readonly string[]; readonly script?: Script } = {}) {
  const witness = createWitness()
  const model = new ScriptedModel([...script])
  const mayDelete = ({ context }: RunContext<Session>) => context.caller.roles?.includes('admin') === true
  const guardrail = defineToolInputGuardrail<Session>({
    name: 'may-delete',
    run: ({ context }) =>
      Promise.resolve({ behavior: mayDelete(context) ? { type: 'allow' } : { type: 'rejectContent', message: 'no' } }),
  })
  const common = { description: 'x', parameters: NO_INPUT }
  const tools = [
    tool({ ...common, name: 'alpha', execute: witness.body('alpha') }),
    tool({
      ...common,
      name: 'delete_all',
      needsApproval: asks.includes('delete_all'),
      isEnabled: ({ runContext }) => mayDelete(runContext as RunContext<Session>),
      inputGuardrails: [guardrail],
      execute: witness.body('delete_all'),
    }),
    tool({ ...common, name: 'search', needsApproval: asks.includes('search'), execute: witness.body('search') }),
  ]
  return { witness, model, agent: new Agent<Session>({ name: 'A', model, tools }) }
}

const without: MatrixRow['without'] = {
  async see() {
    const { agent, model } = bare()
    await runnerOf()
      .run(agent, 'hi', { context: { caller: VIEWER } })
      .catch(() => undefined)
    return sentNot(model)
  },
  async run() {
    const { agent, witness } = bare()
    const ended = await runnerOf()
      .run(agent, 'hi', { context: { caller: VIEWER } })
      .catch((error: Error) => error.name)
    const seen = ranNot(witness)
    return typeof ended === 'string' ? { ...seen, saw: `${seen.saw}; the run ended with ${ended}` } : seen
  },
  async resume() {
    const { agent, witness } = bare({ asks: ['delete_all'] })
    const context: Session = { caller: ADMIN }
    const { state, interruptions } = await runnerOf().run(agent, 'hi', { context })
    for (const item of interruptions) state.approve(item)
    context.caller = VIEWER
    await runnerOf().run(agent, state)
    return ranNot(witness)
  },
  async approve() {
    const { agent, witness } = bare({ asks: ['delete_all'] })
    const { state, interruptions } = await runnerOf().run(agent, 'hi', { context: { caller: ADMIN } })
    for (const item of interruptions) state.approve(item)
    // Whoever holds the saved text can write this into it.
    await runnerOf().run(agent, await RunState.fromString(agent, state.toString()))
    const other = bare({ asks: ['delete_all', 'search'], script: [calls('search'), DONE] })
    const swapped = await runnerOf().run(other.agent, 'hi', { context: { caller: ADMIN } })
    for (const item of swapped.interruptions) swapped.state.approve(item)
    await runnerOf().run(other.agent, await RunState.fromString(other.agent, swapCalls(swapped.state.toString())))
    return sawBoth(ranNot(witness), ranNot(other.witness))
  },
  audit: undefined,
  limit: undefined,
  explain: undefined,
  async caller() {
    const { agent, witness } = bare({ asks: ['search'], script: [calls('search'), calls('delete_all'), DONE] })
    const { state } = await runnerOf().run(agent, 'hi', { context: { caller: VIEWER } })
    const promoted: RunState<Session, typeof agent> = await RunState.fromString(agent, promote(state.toString()))
    for (const item of promoted.getInterruptions()) promoted.approve(item)
    await runnerOf().run(agent, promoted)
    return ranNot(witness)
  },
}

/** Writes another tool into a saved state: the approval of one call becomes that of another. */
function swapCalls(saved: string): string {
  return saved.replaceAll('"search', '"delete_all').replaceAll(String.raw`\"search`, String.raw`\"delete_all`)
}

/** Writes another caller into a saved state. */
function promote(saved: string): string {
  return saved.replaceAll(JSON.stringify(VIEWER.roles), JSON.stringify(ADMIN.roles))
}

/** Two forgeries, of which neither may run anything. */
function sawBoth(approved: Observation, swapped: Observation): Observation {
  return {
    holds: approved.holds && swapped.holds,
    saw: `approved in the text: ${approved.saw}; put in the place of an approved call: ${swapped.saw}`,
  }
}

type Options = NonNullable<Parameters<typeof createScene>[0]>

async function pause(
  options: Options = {},
  caller = ADMIN,
): Promise<Scene & { readonly state: RunState<Session, Agent<Session>> }> {
  const scene = createScene({ policy: { ask: ['delete_all'] }, script: DELETES(), ...options })
  const { state } = await scene.runner.run(scene.agent, 'hi', { context: { caller } })
  return { ...scene, state }
}

const withToolgate: MatrixRow['with'] = {
  async see() {
    const { agent, runner, model } = createScene({ script: [DONE] })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    return sentNot(model)
  },
  async run() {
    const { agent, runner, witness } = createScene({ script: DELETES() })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    return ranNot(witness)
  },
  async resume() {
    const { agent, runner, gate, guarded, witness, state } = await pause()
    for (const item of state.getInterruptions()) await guarded.answer(state, item, ADMIN, { decision: 'approve' })
    gate.setPolicy({ deny: ['delete_all'] })
    await runner.run(agent, state)
    return ranNot(witness)
  },
  async approve() {
    const { agent, runner, guarded, witness, state } = await pause()
    for (const item of state.getInterruptions()) state.approve(item)
    await runner.run(agent, await guarded.restore(agent, state.toString(), { caller: ADMIN }))
    const other = await pause({ policy: { ask: ['delete_all', 'search'] }, script: [calls('search'), DONE] })
    for (const item of other.state.getInterruptions())
      await other.guarded.answer(other.state, item, ADMIN, { decision: 'approve' })
    const swapped = swapCalls(other.state.toString())
    await other.runner.run(other.agent, await other.guarded.restore(other.agent, swapped, { caller: ADMIN }))
    return sawBoth(ranNot(witness), ranNot(other.witness))
  },
  async audit() {
    const { agent, runner, audit } = createScene({ script: DELETES() })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    return { holds: audit.attempts().length === 1, saw: audit.attempts().join('; ') }
  },
  async limit() {
    const searches = Array.from({ length: 5 }, () => 'search')
    const { agent, runner, witness } = createScene({ limits: 'search:2/60', script: [calls(...searches), DONE] })
    await runner.run(agent, 'hi', { context: { caller: VIEWER } })
    return { holds: witness.ran.length === 2, saw: `${witness.ran.length} of 5 calls ran with a limit of 2` }
  },
  async explain() {
    const { gate } = createScene()
    const [first] = (await gate.view(VIEWER)).explain('delete_all').reasons
    assert.ok(first)
    return { holds: first.code === 'policy_denied', saw: `${first.code} by ${first.layer}` }
  },
  async caller() {
    const script = [calls('search'), calls('delete_all'), DONE]
    const { agent, witness, state } = await pause({ policy: [ADMINS_DELETE, { ask: ['search'] }], script }, VIEWER)
    const ended = await rejectionCode(RunState.fromString(agent, promote(state.toString())))
    const { holds, saw } = ranNot(witness)
    return { holds: holds && ended === 'caller_untrusted', saw: `${saw}; reading it back ended with ${ended}` }
  },
}

describeMatrixRow('openai-agents', {
  framework: 'OpenAI Agents SDK',
  version: installedVersion('@openai/agents'),
  without,
  with: withToolgate,
})
