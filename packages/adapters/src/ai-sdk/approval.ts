import type { CallOutcome } from '@toolgate/core'
import type { ToolApprovalStatus } from 'ai'
import { answeredCalls } from './answers.ts'
import { isImpostor } from './given-tools.ts'
import type { ApprovalQuestion, LoopCall, LoopRun } from './loop.ts'
import { type ApprovalStatus, yourApproval } from './your-approval.ts'

/**
 * Gives the SDK's `toolApproval` of a run: the stricter of yours and of the gate.
 *
 * A call that a person must approve waits in the gate's store, and the SDK pauses. When it goes on, the store says
 * whether anybody has approved; what messages say does not count, and neither does it for what yours leaves to a person.
 */
export function createToolApproval(run: LoopRun): (question: ApprovalQuestion) => Promise<ToolApprovalStatus> {
  return async (question) => {
    const yours = await yourApproval(run, question)
    const { toolName, toolCallId, input, providerExecuted } = question.toolCall
    // The provider has run it by now.
    if (providerExecuted === true) return yours
    const call: LoopCall = { toolName, toolCallId, input, messages: question.messages }
    if (isImpostor(run, toolName, question.tools)) return denied(await run.refuseUnsent(call), undefined)
    if (!run.offered(toolName)) return isHosts(question) ? yours : denied(await run.refuseUnsent(call), undefined)
    if (yours?.type === 'denied') return denied(await run.refuse(call, 'toolApproval', yours.reason), yours)
    note(run, call, yours)
    const outcome = await ask(run, call)
    if (!outcome || outcome.status === 'done') return yours?.type === 'user-approval' ? undefined : yours
    if (outcome.status !== 'waiting' || onlyTells(run) || isAnswered(question.messages, toolCallId))
      return { type: 'denied', reason: outcome.text }
    return { type: 'user-approval', reason: yours?.reason ?? outcome.text }
  }
}

/** Gives `needsApproval` of a tool: how version 6 of the SDK asks. */
export function needsApproval(run: LoopRun, toolName: string): NeedsApproval {
  return async (input, execution) => {
    const { toolCallId, messages } = execution
    // One that messages say is approved is about to be made, and is asked about there.
    if (isAnswered(messages, toolCallId)) return true
    const call: LoopCall = { toolName, toolCallId, input, messages }
    const yours = await yourApproval(run, toQuestion(call, execution))
    // What yours denies is refused where it is made.
    if (yours?.type === 'denied') return false
    note(run, call, yours)
    return (await ask(run, call))?.status === 'waiting' && !onlyTells(run)
  }
}

/** Whether a call that waits ends with what the model is told, as one that is refused does. */
function onlyTells({ options }: LoopRun): boolean {
  return options.approvals === 'tell'
}

type NeedsApproval = (input: unknown, execution: ExecutionContext) => Promise<boolean>

interface ExecutionContext {
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly context?: unknown
  /** Its name before version 7. */
  readonly experimental_context?: unknown
}

/** Asks yours where the SDK has not, as its version or your other options have it: gives why the call is refused. */
export async function hearLate(
  run: LoopRun,
  call: LoopCall,
  execution: ExecutionContext,
): Promise<CallOutcome | undefined> {
  const hasYours = run.options.toolApproval ?? run.offered(call.toolName)?.imported?.tool.needsApproval
  if (hasYours === undefined || run.isHeard(call)) return undefined
  const yours = await yourApproval(run, toQuestion(call, execution))
  if (yours?.type === 'denied') return run.refuse(call, 'toolApproval', yours.reason)
  note(run, call, yours)
  return undefined
}

/** What yours leaves to a person runs only with the word of one. */
function note(run: LoopRun, call: LoopCall, yours: ApprovalStatus | undefined): void {
  run.hear(call, { mustBeAsked: yours?.type === 'user-approval' })
}

function toQuestion(call: LoopCall, { messages, context, experimental_context }: ExecutionContext): ApprovalQuestion {
  const own = context ?? experimental_context
  return { toolCall: call, tools: undefined, toolsContext: { [call.toolName]: own }, runtimeContext: own, messages }
}

function isAnswered(messages: readonly unknown[], toolCallId: string): boolean {
  return answeredCalls(messages).some((answered) => answered.toolCallId === toolCallId)
}

/** A tool that the host has put beside those of the guard is its own. One that is nowhere was hidden meanwhile. */
function isHosts({ tools, toolCall }: ApprovalQuestion): boolean {
  return tools !== undefined && Object.hasOwn(tools, toolCall.toolName)
}

/** What the client executes is handed over by a call that does nothing: it is decided, counted and recorded here. */
function ask(run: LoopRun, call: LoopCall): Promise<CallOutcome | undefined> {
  return run.offered(call.toolName)?.isEnforceable === false ? run.call(call) : run.requestApproval(call)
}

/** The text is yours, unless the gate would have refused the call before it came to yours. */
function denied(outcome: CallOutcome, yours: ApprovalStatus | undefined): ApprovalStatus {
  const isYours = yours && outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'hook_denied'
  const text = isYours ? yours.reason : outcome.text
  return { type: 'denied', ...(text === undefined ? {} : { reason: text }) }
}
