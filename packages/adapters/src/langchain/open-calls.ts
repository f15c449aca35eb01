import { AIMessage, type BaseMessage, HumanMessage, RemoveMessage, ToolMessage } from '@langchain/core/messages'
import type { ToolCall } from '@langchain/core/messages/tool'
import { REMOVE_ALL_MESSAGES } from '@langchain/langgraph'
import { USER_WROTE } from '../shared/unanswered.ts'
import { findAnswers } from './answers.ts'
import type { GuardRuntime } from './runs.ts'

/**
 * Returns messages in which each call has an answer, for a user who wrote while a call waited for approval. Providers
 * reject messages with an unanswered call. The call did not run, and its approval still waits at the gate.
 *
 * The guard does this in an agent of `createAgent`. In your own graph, pass the result to the model.
 *
 * @example
 * const answer = await model.invoke(answerOpenCalls(state.messages))
 */
export function answerOpenCalls(messages: readonly BaseMessage[]): BaseMessage[] {
  return withAnswers(messages, openCallsOf(messages), new Map())
}

/**
 * Returns a change of an agent's messages that answers their open calls; `undefined` if none is open. Calls that ended
 * beside the waiting one get the answer that they had.
 */
export async function closeOpenCalls(
  messages: readonly BaseMessage[],
  runtime: GuardRuntime,
): Promise<BaseMessage[] | undefined> {
  const open = openCallsOf(messages)
  if (open.size === 0) return undefined
  const answers = await findAnswers(runtime, new Set([...open].map(({ id }) => id)))
  return [new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), ...withAnswers(messages, open, answers)]
}

/** Returns the calls without an answer, after which the user has written. */
function openCallsOf(messages: readonly BaseMessage[]): ReadonlySet<ToolCall> {
  const lastOfUser = messages.findLastIndex((message) => HumanMessage.isInstance(message))
  const earlier = messages.slice(0, Math.max(0, lastOfUser))
  const calls = earlier.flatMap((message) => callsOf(message))
  if (calls.length === 0) return new Set()
  const answered = new Set(
    messages.map((message) => (ToolMessage.isInstance(message) ? message.tool_call_id : undefined)),
  )
  return new Set(calls.filter(({ id }) => id !== undefined && !answered.has(id)))
}

function withAnswers(
  messages: readonly BaseMessage[],
  open: ReadonlySet<ToolCall>,
  answers: ReadonlyMap<string, ToolMessage>,
): BaseMessage[] {
  return messages.flatMap((message) => [
    message,
    ...callsOf(message)
      .filter((call) => open.has(call))
      .map((call) => answers.get(call.id ?? '') ?? toOpen(call)),
  ])
}

function callsOf(message: BaseMessage): readonly ToolCall[] {
  return AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []
}

function toOpen({ id = '', name }: ToolCall): ToolMessage {
  return new ToolMessage({ content: USER_WROTE, tool_call_id: id, name, status: 'error' })
}
