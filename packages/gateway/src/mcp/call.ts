import {
  type CallOutcome,
  type CallRefused,
  type Cancelling,
  type Progress,
  retryAfterSeconds,
  type View,
  type WireNames,
} from '@toolgate/core'
import { type McpResult, UpstreamError } from '../upstream/upstream.ts'

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
export type ToolAnswer = { readonly result: McpResult } | { readonly error: RpcError }

export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** Calls a tool through the gate, for a client that knows it by its wire name. */
export async function callTool({ view, names, name, input, signal, onProgress }: ToolCall): Promise<ToolAnswer> {
  const outcome = await view.call({
    tool: names.toId(name),
    input,
    signal,
    onProgress,
    calledAs: name,
    nameOf: (id) => names.toName(id) ?? id,
  })
  return toAnswer(outcome)
}

/**
 * Records a call that is refused before the gate sees it: its message is not one, or its headers say something else.
 * Who tries such a thing on a tool should be in the audit, whatever becomes of it.
 */
export async function recordRefusedCall(view: View, names: WireNames, name: unknown, problem: string): Promise<void> {
  const calledAs = typeof name === 'string' ? name : '(no name)'
  await view.call({ tool: names.toId(calledAs), calledAs, malformed: problem })
}

function toAnswer(outcome: CallOutcome): ToolAnswer {
  switch (outcome.status) {
    case 'done':
      return { result: outcome.output as McpResult }
    case 'waiting':
      return {
        result: {
          ...toldResult(outcome.text),
          _meta: { 'dev.toolgate/approval': { id: outcome.approval.id, expiresAt: outcome.approval.expiresAt } },
        },
      }
    case 'refused':
      return { result: refusedResult(outcome) }
    case 'failed': {
      const rpc = outcome.error instanceof UpstreamError ? outcome.error.rpc : undefined
      return rpc ? { error: toOwnError(rpc) } : { result: toldResult(outcome.text) }
    }
  }
}

/** Tools tell the model of refusals in results (MCP 2026-07-28, tools, "error handling"): it can read these and act on them. */
function toldResult(text: string): McpResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/** Says when to come again, as a 429 does: the text says it to the model, and this to the client's own code. */
function refusedResult({ text, decision }: CallRefused): McpResult {
  const [deciding] = decision.reasons
  if (deciding?.code !== 'rate_limited') return toldResult(text)
  return { ...toldResult(text), _meta: { 'dev.toolgate/retry-after': retryAfterSeconds(deciding.resetMs ?? 0) } }
}

/** What an upstream says about its own hop (versions, headers, capabilities) is not about ours. */
const HOP_CODES: ReadonlySet<number> = new Set([-32020, -32021, -32022])

function toOwnError({ code, message, data }: RpcError): RpcError {
  if (HOP_CODES.has(code)) return { code: -32603, message: 'The tool could not be reached.' }
  return { code, message, ...(data === undefined ? {} : { data }) }
}
