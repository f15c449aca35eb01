import type { CallOutcome } from '@toolgate/core'
import type { ToolApprovalStatus } from 'ai'
import { answeredCalls } from './answers.ts'
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
    if (!run.offered(toolName)) return isHosts(question) ? yours : denied(await run.refuseUnsent(call), undefined)
    if (yours?.type === 'denied') return denied(await run.refuse(call, 'toolApproval', yours.reason), yours)
    if (yours?.type === 'user-approval') run.requireApproval(call)
    const outcome = await ask(run, call)
    if (!outcome || outcome.status === 'done') return yours?.type === 'user-approval' ? undefined : yours
    if (outcome.status !== 'waiting' || isAnswered(question.messages, toolCallId))
      return { type: 'denied', reason: outcome.text }
    return { type: 'user-approval', reason: yours?.reason ?? outcome.text }
  }
}

/** Gives `needsApproval` of a tool: how version 6 of the SDK asks. */
export function needsApproval(run: LoopRun, toolName: string): NeedsApproval {
  return async (input, { toolCallId, messages }) => {
    // One that messages say is approved is about to be made, and is asked about there.
    if (isAnswered(messages, toolCallId)) return true
    return (await ask(run, { toolName, toolCallId, input, messages }))?.status === 'waiting'
  }
}

type NeedsApproval = (
  input: unknown,
  options: { readonly toolCallId: string; readonly messages: readonly unknown[] },
) => Promise<boolean>

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
