import type { GuardedCallEvent } from '@toolgate/adapters/ai-sdk'
import type { StepCall } from '@toolgate/core/steps'
import type { ModelMessage, StepResult, ToolSet } from 'ai'
import { isInputRequest } from '../ask-for-input.ts'
import type { Conversation, PendingState, WaitingCall } from '../pause/state.ts'
import type { Usage } from '../result.ts'

export type SdkStep = StepResult<ToolSet>

/** Ended calls, by call id. */
type EndedCalls = ReadonlyMap<string, GuardedCallEvent>

/** Returns a step's calls, in the order of the model. */
export function callsOf({ toolCalls }: SdkStep, ended: EndedCalls): readonly StepCall[] {
  return toolCalls.flatMap(({ toolCallId }) => {
    const event = ended.get(toolCallId)
    return event ? [{ tool: event.tool, callId: toolCallId, status: event.status }] : []
  })
}

/** Returns the calls of a step without a result: they wait for an approval, for an input, or in a sub-agent. */
export function pendingOf(
  { content, toolCalls, response }: SdkStep,
  ended: EndedCalls,
  agents: ReadonlyMap<string, Conversation>,
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
    const inside = agents.get(callId)
    if (inside) return [{ ...call, kind: 'agent', level: inside }]
    if (event.approval) return [{ ...call, kind: 'approval', approvalId: event.approval.id }]
    const output: unknown = outputs.get(callId)
    if (isInputRequest(output)) return [{ ...call, kind: 'input', question: output.question, schema: output.schema }]
    return []
  })
}

/** Whether a call has neither a result nor a refusal, because its tool is executed elsewhere, or it waits. */
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

/** Returns the inputs of waiting calls as the model wrote them, if a schema has transformed them. */
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

/** The messages of one conversation, without approvals, because only those in the gate's store count. */
export interface Transcript {
  readonly messages: readonly ModelMessage[]
  /** Sets the messages before a step to those that the SDK sends. */
  reset(messages: readonly ModelMessage[]): void
  /** Adds a step's messages, without the results of waiting calls. */
  add(messages: readonly ModelMessage[], waiting?: ReadonlySet<string>): void
}

export function createTranscript(initial: readonly ModelMessage[]): Transcript {
  let messages = [...initial]
  return {
    get messages() {
      return messages
    },
    reset: (given) => void (messages = [...given]),
    add: (given, waiting = NONE) => void messages.push(...given.flatMap((message) => clean(message, waiting))),
  }
}

const NONE: ReadonlySet<string> = new Set()

function clean(message: ModelMessage, waiting: ReadonlySet<string>): readonly ModelMessage[] {
  if (message.role !== 'assistant' && message.role !== 'tool') return [message]
  if (typeof message.content === 'string') return [message]
  const content = message.content.filter((part) => {
    if (part.type === 'tool-approval-request' || part.type === 'tool-approval-response') return false
    return !(part.type === 'tool-result' && waiting.has(part.toolCallId))
  })
  return content.length === 0 ? [] : [{ ...message, content } as ModelMessage]
}

/** The result of a call for the model. */
export type ToolResultOutput = StepToolResult['output']
export type StepToolResult = Extract<
  Extract<ModelMessage, { role: 'tool' }>['content'][number],
  { type: 'tool-result' }
>

/** Appends results to the messages. They join the message with the same step's other results. */
export function withResults(
  messages: readonly ModelMessage[],
  results: readonly StepToolResult[],
): readonly ModelMessage[] {
  if (results.length === 0) return messages
  const last = messages.at(-1)
  if (last?.role !== 'tool') return [...messages, { role: 'tool', content: [...results] }]
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...results] }]
}
