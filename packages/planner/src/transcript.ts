import type { ModelMessage } from 'ai'

/** The messages of one conversation, without approvals: those count in the gate's store, and nowhere else. */
export interface Transcript {
  readonly messages: readonly ModelMessage[]
  /** What it is, before a step: what the SDK sends. */
  reset(messages: readonly ModelMessage[]): void
  /** What a step has added, without the results of calls that wait. */
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

/** What the model is told of a call. */
export type ToolResultOutput = ToolResult['output']
export type ToolResult = Extract<Extract<ModelMessage, { role: 'tool' }>['content'][number], { type: 'tool-result' }>

/** Gives the messages with results behind them, in one message with those of the same step that are there already. */
export function withResults(
  messages: readonly ModelMessage[],
  results: readonly ToolResult[],
): readonly ModelMessage[] {
  if (results.length === 0) return messages
  const last = messages.at(-1)
  if (last?.role !== 'tool') return [...messages, { role: 'tool', content: [...results] }]
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...results] }]
}
