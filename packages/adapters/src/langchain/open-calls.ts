import { AIMessage, type BaseMessage, HumanMessage, RemoveMessage, ToolMessage } from '@langchain/core/messages'
import type { ToolCall } from '@langchain/core/messages/tool'
import type { RunnableConfig } from '@langchain/core/runnables'
import { REMOVE_ALL_MESSAGES } from '@langchain/langgraph'
import { USER_WROTE } from '../shared/unanswered.ts'
import { findAnswers } from './answers.ts'

/**
 * Returns the change of a graph's messages that answers each open call, for a user who wrote while a call waited for
 * approval; an empty list if none is open. Providers reject messages with an unanswered call.
 *
 * Calls that ended beside the waiting one get the answer that they had, from the checkpointer. The waiting call did not
 * run. The guard does this in an agent of `createAgent`. In your own graph, do it in a node before the model.
 *
 * @example
 * graph.addNode('open', async ({ messages }, config) => ({ messages: await answerOpenCalls(messages, config) }))
 */
export async function answerOpenCalls(
  messages: readonly BaseMessage[],
  config: Pick<RunnableConfig, 'configurable'> = {},
): Promise<BaseMessage[]> {
  const open = openCallsOf(messages)
  if (open.size === 0) return []
  const answers = await findAnswers(config, new Set([...open].map(({ id }) => id)))
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
