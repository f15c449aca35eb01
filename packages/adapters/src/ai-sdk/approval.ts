import type { ToolApprovalStatus, ToolSet } from 'ai'
import type { LoopCall, LoopRun } from './run.ts'

/** What the SDK asks about one call. */
export interface ApprovalQuestion {
  readonly toolCall: {
    readonly toolName: string
    readonly toolCallId: string
    readonly input: unknown
    readonly providerExecuted?: boolean | undefined
  }
  readonly tools: ToolSet | undefined
  readonly toolsContext: unknown
  readonly runtimeContext: unknown
  readonly messages: readonly unknown[]
}

/** Gives the SDK's `toolApproval` of a run. */
export function createToolApproval(run: LoopRun): (question: ApprovalQuestion) => Promise<ToolApprovalStatus> {
  return async ({ toolCall, messages }) => {
    if (toolCall.providerExecuted === true) return undefined
    const { toolName, toolCallId, input } = toolCall
    const call: LoopCall = { toolName, toolCallId, input, messages }
    const outcome = await run.requestApproval(call)
    if (!outcome) return undefined
    return { type: outcome.status === 'waiting' ? 'user-approval' : 'denied', reason: outcome.text }
  }
}
