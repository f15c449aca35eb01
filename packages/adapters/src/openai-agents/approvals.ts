import { type Agent, RunContext, RunState, type RunToolApprovalItem } from '@openai/agents'
import { type Approval, type Caller, ConfigError, type Gate } from '@toolgate/core'
import type { ExposedNames } from '@toolgate/expose'
import { checkVerdict } from '../shared/guard-options.ts'
import { inputHashOf } from '../shared/input-hash.ts'
import type { OpenRun, AgentRuns } from './runs.ts'
import { type AnyRunContext, type Arguments, readArguments, whileRestoring } from './sdk.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own types of states and agents have it
type AnyAgent = Agent<any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- likewise
type AnyRunState = RunState<any, any>

export interface PersonsAnswer {
  readonly decision: 'approve' | 'reject'
  /** The reason, for the model. */
  readonly reason?: string | undefined
}

/** Approvals of a run that waits for people. The gate decides, and the SDK's state is updated. */
export interface RunApprovals<Context> {
  /**
   * Decides an interruption, at the gate and in the SDK's state. Run the state again when all interruptions are
   * answered.
   *
   * @throws {ToolgateError} `approval_forbidden` if this person may not decide it
   * @throws {ConfigError} for an interruption of a tool that is not the gate's
   */
  answer(state: AnyRunState, item: RunToolApprovalItem, person: Caller, answer: PersonsAnswer): Promise<void>
  /** Updates the state with decisions that people made at the gate elsewhere. Returns the interruptions that still wait. */
  settle(state: AnyRunState): Promise<readonly RunToolApprovalItem[]>
  /**
   * Reads a saved state. Pass the context yourself: the saved one may be forged. Calls of tools that are no longer
   * visible are read too, and refused when the state runs.
   */
  restore<A extends AnyAgent>(agent: A, saved: string, context: Context): Promise<RunState<Context, A>>
}

type ApprovalsGate = Pick<Gate, 'approvals' | 'catalog'>

/** A waiting call, for the gate. */
interface AgentWaitingCall extends Arguments {
  readonly name: string
  readonly callId: string
  readonly id: string
}

export function createRunApprovals<Context>(
  gate: ApprovalsGate,
  runs: AgentRuns,
  names: ExposedNames,
): RunApprovals<Context> {
  return {
    async answer(state, item, person, answer) {
      checkVerdict(answer)
      const { decision, reason } = answer
      const call = callOf(item, names)
      if (!call) throw new ConfigError('answer', `"${item.name}" is no tool of the gate`)
      const run = await runs.of(contextOf(state))
      const pending = (await findApproval(gate, run, call, 'pending')) ?? (await ask(run, call))
      if (typeof pending === 'string') return state.reject(item, { message: pending })
      if (pending) await gate.approvals.decide(person, pending.id, { decision, reason })
      if (decision === 'approve') return state.approve(item)
      const message = (await refusalOf(run, call)) ?? reason
      state.reject(item, message === undefined ? {} : { message })
    },
    async settle(state) {
      const run = await runs.of(contextOf(state))
      const left: RunToolApprovalItem[] = []
      for (const item of state.getInterruptions()) {
        const call = callOf(item, names)
        const answer = call && (await answerOf(gate, run, call))
        if (answer === 'approved') state.approve(item)
        else if (answer === undefined) left.push(item)
        else state.reject(item, { message: answer.refused })
      }
      return left
    },
    restore: (agent, saved, context) =>
      whileRestoring(() => RunState.fromStringWithContext(agent, saved, new RunContext(context))),
  }
}

/** Returns the context of a state. The SDK shows a result's context, and has a state's context under this name. */
// oxlint-disable-next-line no-underscore-dangle -- there is no other way to it
const contextOf = (state: AnyRunState): AnyRunContext => state._context

function callOf(item: RunToolApprovalItem, names: ExposedNames): AgentWaitingCall | undefined {
  const { rawItem, name } = item
  if (rawItem.type !== 'function_call' || name === undefined) return undefined
  const id = names.toId(name)
  return id === undefined ? undefined : { ...readArguments(rawItem.arguments), name, callId: rawItem.callId, id }
}

/** Asks for approval again if none waits at the gate. Returns the text for the model if the gate refuses. */
async function ask(run: OpenRun, call: AgentWaitingCall): Promise<Approval | string | undefined> {
  const { name, input, callId, malformed } = call
  if (malformed !== undefined) return refusalOf(run, call)
  const asked = await run.requestApproval({ name, input, callId })
  return asked?.status === 'waiting' ? asked.approval : asked?.text
}

/** Records a call that can no longer run, and returns the text for the model. */
async function refusalOf(
  run: OpenRun,
  { name, input, callId, malformed }: AgentWaitingCall,
): Promise<string | undefined> {
  if (malformed !== undefined) return (await run.call({ name, input, callId, malformed })).text
  const asked = await run.requestApproval({ name, input, callId })
  return asked?.status === 'refused' ? asked.text : undefined
}

async function answerOf(
  gate: ApprovalsGate,
  run: OpenRun,
  call: AgentWaitingCall,
): Promise<'approved' | { readonly refused: string } | undefined> {
  if (call.malformed === undefined) {
    if (await findApproval(gate, run, call, 'pending')) return undefined
    if (await findApproval(gate, run, call, 'approved')) return 'approved'
  }
  const refused = await refusalOf(run, call)
  return refused === undefined ? undefined : { refused }
}

async function findApproval(
  gate: ApprovalsGate,
  { guarded, origin }: OpenRun,
  { id, input, malformed }: AgentWaitingCall,
  status: 'pending' | 'approved',
): Promise<Approval | undefined> {
  if (malformed !== undefined) return undefined
  const { user, tenant } = guarded.view.caller
  const run = origin.bindsApprovals ? guarded.id : undefined
  const tool = gate.catalog.get(id)
  const inputHash = tool && inputHashOf(tool, input)
  const found = await gate.approvals.list({ status, tool: id, ...(user === undefined ? {} : { user }) })
  return found.find(
    (one) => one.user === user && one.tenant === tenant && one.run === run && one.inputHash === inputHash,
  )
}
