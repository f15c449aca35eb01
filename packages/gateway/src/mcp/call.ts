import type { CallOutcome, Progress, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/core/expose'
import {
  type Cancelling,
  errorResult,
  type JsonRpcError,
  type McpResult,
  relayedError,
  toErrorResult,
} from '@toolgate/core/internal'
import { isLargeResult } from '../large-results.ts'
import { nextTurn } from '../next-turn.ts'
import { UpstreamError } from '../upstream/upstream.ts'

export interface ToolCall {
  readonly view: View
  readonly names: WireNames
  /** As the client spelled it. */
  readonly name: string
  readonly input: unknown
  readonly signal: AbortSignal | Cancelling
  readonly onProgress: ((progress: Progress) => void) | undefined
}

/** What a client is answered: a result, or the JSON-RPC error that the upstream gave. */
export type ToolAnswer = { readonly result: McpResult } | { readonly error: JsonRpcError }

/** Calls a tool through the gate, for a client that knows it by its wire name. */
export async function callTool({ view, names, name, input, signal, onProgress }: ToolCall): Promise<ToolAnswer> {
  const outcome = await view.call({
    tool: names.toId(name),
    input,
    signal,
    onProgress,
    calledAs: name,
    nameOf: (id) => names.toName(id) ?? id,
    idOf: names.toId,
  })
  const answer = toAnswer(outcome)
  if ('result' in answer && isLargeResult(answer.result)) await nextTurn()
  return answer
}

/** Longer than any name of a tool, so that what is left of a longer one names none. */
const MAX_RECORDED_NAME = 1024

/**
 * Records a call that is refused before the gate sees it: its message is not one, or its headers say something else.
 * Who tries such a thing on a tool should be in the audit, whatever becomes of it.
 */
export async function recordRefusedCall(view: View, names: WireNames, name: unknown, problem: string): Promise<void> {
  const calledAs = typeof name === 'string' ? name.slice(0, MAX_RECORDED_NAME) : '(no name)'
  await view.call({ tool: names.toId(calledAs), calledAs, malformed: problem })
}

const within = new WeakMap<McpResult, ToolAnswer>()

/** Gives an answer as a tool's result: an error that is none is told, and known again when it comes out of the gate. */
export function toResult(answer: ToolAnswer): McpResult {
  if ('result' in answer) return answer.result
  const told = errorResult(answer.error.message)
  within.set(told, answer)
  return told
}

export function toAnswer(outcome: CallOutcome): ToolAnswer {
  switch (outcome.status) {
    case 'done':
      return toOwnAnswer(outcome.output as McpResult)
    case 'waiting':
    case 'refused':
      return { result: toErrorResult(outcome) }
    case 'failed': {
      const rpc = outcome.error instanceof UpstreamError ? outcome.error.rpc : undefined
      return rpc ? { error: relayedError(rpc) } : { result: toErrorResult(outcome) }
    }
  }
}

/** A call through `call_tool` is answered as a direct one. */
function toOwnAnswer(result: McpResult): ToolAnswer {
  const isObject = typeof result === 'object' && result !== null
  return (isObject && within.get(result)) || { result }
}
