import { REASONS, type MessageKind, retryAfterSeconds } from '../decide/decision.ts'
import type { CallFailed, CallRefused, CallWaiting } from '../call/outcome.ts'

/** MCP's `CallToolResult`. */
export interface McpResult {
  readonly content?: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** Tools tell the model of refusals in results (MCP 2026-07-28, tools, "error handling"): it can read these and act on them. */
export function errorResult(text: string): McpResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/**
 * Gives the result of a call whose tool gave none.
 *
 * Says in `_meta`, for the client's own code, what the text says to the model: which approval it waits for, when to come
 * again, as a 429 does, or why not now and what to do. `structuredContent` is no place for it, as that must fit the
 * tool's `outputSchema`.
 */
export function toErrorResult(outcome: CallRefused | CallWaiting | CallFailed): McpResult {
  const told = errorResult(outcome.text)
  const meta = metaOf(outcome)
  return meta ? { ...told, _meta: meta } : told
}

/** Of these a caller knows that the tool is there, so beside the text its client is told in fields. */
const EXPLAINED: ReadonlySet<MessageKind> = new Set(['unavailable', 'locked', 'suspended', 'busy'])

function metaOf(outcome: CallRefused | CallWaiting | CallFailed): McpResult['_meta'] {
  if (outcome.status === 'failed') return undefined
  if (outcome.status === 'waiting') {
    const { id, expiresAt } = outcome.approval
    return { 'dev.toolgate/approval': { id, expiresAt } }
  }
  const [deciding] = outcome.decision.reasons
  if (deciding === undefined) return undefined
  if (deciding.code === 'rate_limited') return { 'dev.toolgate/retry-after': retryAfterSeconds(deciding.resetMs ?? 0) }
  if (outcome.decision.outcome !== 'wait' || !EXPLAINED.has(REASONS[deciding.code].message)) return undefined
  const { code: error, message, text: why, suggestion } = deciding
  // As the text says it: of what is for people only there is nothing in either.
  const refusal = { error, reason: message ?? why, ...(suggestion === undefined ? {} : { suggestion }) }
  return { 'dev.toolgate/refusal': refusal }
}
