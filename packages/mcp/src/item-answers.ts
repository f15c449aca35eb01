import type { CallOutcome } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { readsAsUnknown } from '@toolgate/core/decide'
import { type JsonRpcError, META, relayedError, RPC_CODES } from './protocol.ts'
import { McpError, metaOf } from './results.ts'

/** The answer to a read, a prompt or a completion. These have no results with `isError`. */
export type ItemAnswer = { readonly result: JsonObject } | { readonly error: JsonRpcError }

/** MCP before 2026-07-28: resources, "error handling". */
const RESOURCE_NOT_FOUND = -32_002
/** A code in the range that JSON-RPC reserves for servers. The SDKs use it for all their own errors. */
const REFUSED = -32_000

/** Returns the error for a URI that is hidden or does not exist. Both get the same bytes. */
export function resourceNotFound(uri: string, era: 'legacy' | 'modern'): JsonRpcError {
  const code = era === 'modern' ? RPC_CODES.invalidParams : RESOURCE_NOT_FOUND
  return { code, message: 'Resource not found', data: { uri } }
}

/** Returns the error for a prompt that is hidden or does not exist. Both get the same bytes. */
export function promptNotFound(name: string): JsonRpcError {
  return { code: RPC_CODES.invalidParams, message: `Prompt not found: ${name}` }
}

/** Whether a server's error may mean that it lacks the resource. A read has no other parameter. */
export function isNotFound({ code }: JsonRpcError): boolean {
  return code === RESOURCE_NOT_FOUND || code === RPC_CODES.invalidParams
}

/**
 * Returns the answer to a call of a resource or a prompt. `notFound` answers for hidden items, and for items that the
 * server lacks according to `isMissing`.
 */
export function toItemAnswer(
  outcome: CallOutcome,
  notFound: JsonRpcError,
  isMissing: (error: JsonRpcError) => boolean = () => false,
): ItemAnswer {
  switch (outcome.status) {
    case 'done':
      return { result: withoutServer(outcome.output) }
    case 'refused':
      return { error: readsAsUnknown(outcome.decision) ? notFound : refusal(outcome) }
    case 'failed': {
      const rpc = outcome.error instanceof McpError ? outcome.error.rpc : undefined
      if (!rpc) return { error: { code: RPC_CODES.internalError, message: outcome.text } }
      return { error: isMissing(rpc) ? notFound : relayedError(rpc) }
    }
    case 'waiting':
      return { error: refusal(outcome) }
    case 'input_required':
      return { error: { code: RPC_CODES.internalError, message: outcome.text } }
  }
}

function refusal(outcome: Exclude<CallOutcome, { status: 'done' | 'failed' | 'input_required' }>): JsonRpcError {
  const data = metaOf(outcome)
  return { code: codeOf(outcome), message: outcome.text, ...(data && { data }) }
}

/** An argument that is missing or wrong has the code that servers give it (MCP: prompts, "error handling"). */
function codeOf(outcome: Exclude<CallOutcome, { status: 'done' | 'failed' | 'input_required' }>): number {
  const isInput = outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'input_invalid'
  return isInput ? RPC_CODES.invalidParams : REFUSED
}

/**
 * Returns a server's result without the fields about the hop to it. The server does not set how long clients may cache
 * it.
 */
function withoutServer(output: unknown): JsonObject {
  if (!isObject(output)) return {}
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta: meta, ...result } = output
  const { [META.serverInfo]: _info, ...kept } = isObject(meta) ? meta : {}
  return { ...result, ...(Object.keys(kept).length > 0 && { _meta: kept }) }
}
