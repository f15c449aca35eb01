import type { GuardedCallEvent } from '@toolgate/adapters/ai-sdk'
import type { StepCall } from '@toolgate/core'
import type { ModelMessage, StepResult, ToolSet } from 'ai'
import { isInputRequest } from './ask-for-input.ts'
import type { LevelState, PendingState, WaitingCall } from './pause.ts'
import type { Usage } from './result.ts'

export type SdkStep = StepResult<ToolSet>

/** Calls that are over, by call id. */
type Ended = ReadonlyMap<string, GuardedCallEvent>

/** Gives a step's calls, in the order in which the model made them. */
export function callsOf({ toolCalls }: SdkStep, ended: Ended): readonly StepCall[] {
  return toolCalls.flatMap(({ toolCallId }) => {
    const event = ended.get(toolCallId)
    return event ? [{ tool: event.tool, callId: toolCallId, status: event.status }] : []
  })
}

/** Gives what of a step has no result yet: what waits for an approval, for an input, or in a sub-agent. */
export function pendingOf(
  { content, toolCalls, response }: SdkStep,
  ended: Ended,
  agents: ReadonlyMap<string, LevelState>,
): readonly PendingState[] {
  const outputs = new Map(
    content.flatMap((part) => (part.type === 'tool-result' ? [[part.toolCallId, part.output]] : [])),
  )
  const written = writtenInputs(response.messages)
  return toolCalls.flatMap(({ toolCallId: callId, toolName: name, input: parsed }): readonly PendingState[] => {
    const event = ended.get(callId)
    if (event === undefined) return []
    const input = written.has(callId) ? written.get(callId) : parsed
    const call: WaitingCall = { callId, tool: event.tool, name, input }
    const level = agents.get(callId)
    if (level) return [{ ...call, kind: 'agent', level }]
    if (event.approval) return [{ ...call, kind: 'approval', approvalId: event.approval.id }]
    const output: unknown = outputs.get(callId)
    if (isInputRequest(output)) return [{ ...call, kind: 'input', question: output.question, schema: output.schema }]
    return []
  })
}

/** Whether a call has neither a result nor a refusal: its tool is executed elsewhere, or it waits. */
export function hasUnanswered({ content, toolCalls }: SdkStep): boolean {
  const answered = new Set(
    content.flatMap((part) => {
      if (part.type === 'tool-result' || part.type === 'tool-error') return [part.toolCallId]
      return part.type === 'tool-approval-response' && !part.approved ? [part.toolCall.toolCallId] : []
    }),
  )
  return toolCalls.some(({ toolCallId, providerExecuted }) => !providerExecuted && !answered.has(toolCallId))
}

export function usageOf({
  usage: { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens },
}: SdkStep): Usage {
  return { input: inputTokens, output: outputTokens, total: totalTokens }
}

/** The inputs of calls that wait, as the model wrote them, where a schema has made something else of them. */
function writtenInputs(messages: readonly ModelMessage[]): ReadonlyMap<string, unknown> {
  const written = new Map<string, unknown>()
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const part of content)
      if (part.type === 'tool-approval-request' && 'inputSchemaInput' in part)
        written.set(part.toolCallId, part.inputSchemaInput)
  }
  return written
}
