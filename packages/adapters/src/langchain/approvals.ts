import { INTERRUPT, interrupt } from '@langchain/langgraph'
import {
  type Approval,
  type Caller,
  type CallRefused,
  type CallWaiting,
  ConfigError,
  type Gate,
  ToolgateError,
} from '@toolgate/core'
import { fieldsOf } from '../shared/fields.ts'
import { checkVerdict } from '../shared/guard-options.ts'
import type { GuardedCall } from '../shared/runs.ts'
import type { AgentRun, GuardRuntime } from './runs.ts'

/**
 * The handling of a call that a person must approve. `interrupt` pauses the graph. `tell` lets the run continue, and the
 * model is told that the call waits.
 */
export type ApprovalMode = 'interrupt' | 'tell'

/** The interrupt's value: a request in the format of LangChain's own human-in-the-loop middleware, and the approval's id. */
export interface ApprovalInterrupt {
  readonly actionRequests: readonly [{ readonly name: string; readonly args: unknown; readonly description: string }]
  readonly reviewConfigs: readonly [
    { readonly actionName: string; readonly allowedDecisions: readonly ['approve', 'reject'] },
  ]
  readonly toolgate: { readonly approval: string }
}

/** Whether a run can pause. It needs a checkpointer from which it is resumed. */
export function canPause({ configurable }: GuardRuntime): boolean {
  return Boolean(configurable?.['__pregel_checkpointer'])
}

export function pausesFor(mode: ApprovalMode | undefined, runtime: GuardRuntime): boolean {
  return mode === 'interrupt' || (mode === undefined && canPause(runtime))
}

/**
 * Pauses the graph if a person must approve the call. After the resume the gate's approvals decide, whatever value the
 * graph is resumed with. A pending approval pauses the graph again.
 *
 * Returns the refusal if no approval is possible, or `undefined` if the call may be made. The gate then decides it
 * again.
 */
export async function pauseForApproval(
  { approvals }: Pick<Gate, 'approvals'>,
  run: AgentRun,
  call: GuardedCall,
): Promise<CallRefused | CallWaiting | undefined> {
  for (;;) {
    const asked = await run.requestApproval(call)
    if (asked?.status !== 'waiting') return asked
    const { id } = asked.approval
    const request = toInterrupt(call, asked)
    do pause(request)
    while ((await approvals.get(id))?.status === 'pending')
  }
}

function toInterrupt({ name }: GuardedCall, { approval, text }: CallWaiting): ApprovalInterrupt {
  return {
    actionRequests: [{ name, args: approval.input, description: text }],
    reviewConfigs: [{ actionName: name, allowedDecisions: ['approve', 'reject'] }],
    toolgate: { approval: approval.id },
  }
}

/** Throws LangGraph's interrupt. Returns when the graph is resumed. */
function pause(request: ApprovalInterrupt): void {
  try {
    interrupt(request)
  } catch (error) {
    if (fieldsOf(error)['lc_error_code'] === 'MISSING_CHECKPOINTER')
      throw new ConfigError('approvals', '"interrupt" needs a checkpointer: createAgent({ …, checkpointer })', {
        cause: error,
      })
    throw error
  }
}

export interface ApprovalAnswer {
  readonly decision: 'approve' | 'reject'
  readonly reason?: string | undefined
}

/**
 * Decides the approvals that a paused run waits for, on behalf of `person`. Then invoke the agent again with `null` as
 * its input.
 *
 * @throws {ToolgateError} `approval_forbidden` if this person may not decide it, `approval_decided`, `approval_unknown`
 * @throws {ConfigError} for a run that waits for no approval, so that the answer would decide nothing
 * @example
 * const paused = await agent.invoke(input, config)
 * await decideApprovals(gate, person, paused, { decision: 'approve' })
 * const result = await agent.invoke(null, config)
 */
export async function decideApprovals(
  gate: Pick<Gate, 'approvals'>,
  approver: Caller,
  paused: object,
  answer: ApprovalAnswer | ((approval: Approval) => ApprovalAnswer | undefined),
): Promise<readonly Approval[]> {
  if (typeof answer !== 'function') checkVerdict(answer)
  const waiting = approvalsOf(paused)
  if (waiting.length === 0)
    throw new ConfigError('paused', 'waits for no approval of the gate: pass the result of the invocation that paused')
  const decided: Approval[] = []
  for (const id of waiting) {
    const approval = typeof answer === 'function' ? await gate.approvals.get(id) : undefined
    const verdict = typeof answer === 'function' ? approval && answer(approval) : answer
    if (verdict) checkVerdict(verdict)
    if (verdict) decided.push(await gate.approvals.decide(approver, id, verdict))
  }
  return decided
}

/**
 * Rejects what a run waits for, on behalf of its caller, because the user wrote instead and the run does not continue.
 *
 * An approval that the caller may not decide stays open until it expires. Only its own run could use it.
 */
export async function withdrawApprovals(
  { approvals }: Pick<Gate, 'approvals'>,
  caller: Caller,
  run: string,
): Promise<void> {
  const { user, tenant } = caller
  const pending = await approvals.list({ status: 'pending', ...(user !== undefined && { user }) })
  const own = pending.filter((one) => one.run === run && one.user === user && one.tenant === tenant)
  for (const one of own.filter((each) => approvals.mayDecide(caller, each)))
    await approvals.decide(caller, one.id, { decision: 'reject', reason: WITHDRAWN }).catch(ignoreDecided)
}

const WITHDRAWN = 'The user wrote instead of approving.'

/** A person may have decided it in between. */
function ignoreDecided(error: unknown): void {
  if (!(error instanceof ToolgateError)) throw error
}

function approvalsOf(paused: object): readonly string[] {
  const { [INTERRUPT]: interrupts } = fieldsOf(paused)
  if (!Array.isArray(interrupts)) return []
  return interrupts.flatMap((one: { readonly value?: Partial<ApprovalInterrupt> } | undefined) => {
    const id: unknown = one?.value?.toolgate?.approval
    return typeof id === 'string' ? [id] : []
  })
}
