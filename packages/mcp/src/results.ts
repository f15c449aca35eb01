import {
  type CallDone,
  type CallOutcome,
  type JsonSchema,
  type ReasonCode,
  REASONS,
  retryAfterSeconds,
} from '@toolgate/core'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { messageOf, outputText } from '@toolgate/values'
import { type JsonRpcError, META, relayedError, RPC_CODES } from './protocol.ts'

/** MCP's `CallToolResult`. */
export interface McpResult {
  readonly content?: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

/** The answer to a client: a result, or the JSON-RPC error of the server behind the tool. */
export type McpAnswer = { readonly result: McpResult } | { readonly error: JsonRpcError }

/** An error that a JSON-RPC error of the server behind the tool may have caused. */
export abstract class McpError extends Error {
  abstract readonly rpc: JsonRpcError | undefined
}

/** A JSON-RPC error. If a tool throws one, its call is answered with this error instead of a result. */
export class RpcError extends McpError {
  override readonly name = 'RpcError'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    // A client waits forever for an answer whose code is not an integer.
    this.code = Number.isSafeInteger(code) ? code : RPC_CODES.internalError
    this.data = toSendable(data)
  }

  override get rpc(): JsonRpcError {
    return this
  }
}

/** Returns the answer to a call of a tool that returns a `CallToolResult`, as the tools of a server do. */
export function toAnswer(outcome: CallOutcome): McpAnswer {
  switch (outcome.status) {
    case 'done':
      return withNote(unwrapAnswer(outcome.output as McpResult), outcome.note)
    case 'waiting':
    case 'refused':
    case 'input_required':
      return { result: toErrorResult(outcome) }
    case 'failed': {
      const rpc = outcome.error instanceof McpError ? outcome.error.rpc : undefined
      return rpc ? withNote({ error: relayedError(rpc) }, outcome.note) : { result: toErrorResult(outcome) }
    }
  }
}

/** Tells the model first what an approver changed of its input. The structured content stays as its schema wants it. */
function withNote(answer: McpAnswer, note: string | undefined): McpAnswer {
  if (note === undefined) return answer
  if ('error' in answer) return { error: { ...answer.error, message: `${note} ${answer.error.message}` } }
  return { result: noted(answer.result, note) }
}

function noted(result: McpResult, note: string): McpResult {
  return { ...result, content: [{ type: 'text', text: note }, ...(result.content ?? [])] }
}

export interface ResultTool {
  /** The tool's name, as the client knows it. */
  readonly name: string
  readonly outputSchema: JsonSchema | undefined
}

const ANY_TOOL: ResultTool = { name: 'the tool', outputSchema: undefined }

/**
 * Returns the result of a call of any tool. A `CallToolResult` stays as it is. Any other output becomes text. If it is
 * an object or the tool has an output schema, it is also sent as `structuredContent`.
 *
 * @throws {RpcError} if the tool threw it
 */
export async function toResult(outcome: CallOutcome, tool: ResultTool = ANY_TOOL): Promise<McpResult> {
  switch (outcome.status) {
    case 'done': {
      const { output, isCut, note } = outcome
      const result = isStream(output) ? await drain(output, tool) : resultOf(output, tool, isCut)
      return note === undefined ? result : noted(result, note)
    }
    case 'waiting':
    case 'refused':
    case 'input_required':
      return toErrorResult(outcome)
    case 'failed':
      if (outcome.error instanceof RpcError) throw outcome.error
      return toErrorResult(outcome)
  }
}

function resultOf(output: unknown, { outputSchema }: ResultTool, isCut = false): McpResult {
  if (isMcpResult(output)) return toSendable(output)
  const text = outputText(output)
  // A cut output has marks that its schema does not allow. Clients accept a result without its structure only as an error.
  if (isCut && outputSchema !== undefined) return errorResult(`${text}\n${CUT}`)
  // JSON may change the type of an object: a date becomes a string.
  const value = typeof output === 'string' ? output : parseJson(text)
  const isStructured = isObject(value) || (outputSchema !== undefined && value !== undefined)
  return { content: [{ type: 'text', text }], ...(isStructured && { structuredContent: value }) }
}

const CUT = '[cut: the tool ran. Its structured content is left out, because the output is too large]'

function isStream(output: unknown): output is AsyncIterable<unknown> {
  return typeof output === 'object' && output !== null && Symbol.asyncIterator in output
}

/** MCP has no partial results. Texts are joined; of other items, the last one is the result. */
async function drain(stream: AsyncIterable<unknown>, tool: ResultTool): Promise<McpResult> {
  let text = ''
  let last: { readonly item: unknown } | undefined
  try {
    for await (const item of stream) {
      if (typeof item === 'string') text += item
      else last = { item }
    }
  } catch (error) {
    return errorResult(`${tool.name} failed: ${messageOf(error)}`)
  }
  return resultOf(last ? last.item : text, tool)
}

/** Returns a result with `isError`. Models can read these and act on them (MCP 2026-07-28, tools, "error handling"). */
export function errorResult(text: string): McpResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/**
 * Returns the result of a call that was refused, waits for approval, needs input that its client cannot give, or failed.
 *
 * `_meta` has the same facts for the client's code: the approval that the call waits for, the seconds until a retry, or
 * the reason and what to do. They are not in `structuredContent`, which must match the tool's `outputSchema`.
 */
function toErrorResult(outcome: Exclude<CallOutcome, CallDone>): McpResult {
  const result = errorResult(outcome.text)
  const meta = metaOf(outcome)
  return meta ? { ...result, _meta: meta } : result
}

/** Refusals whose text already reveals that the tool exists, so `_meta` may repeat the reason. */
const EXPLAINED: ReadonlySet<(typeof REASONS)[ReasonCode]['message']> = new Set([
  'unavailable',
  'locked',
  'suspended',
  'busy',
])

/** Returns the facts of an outcome for the code of the client. */
export function metaOf(outcome: Exclude<CallOutcome, CallDone>): McpResult['_meta'] {
  if (outcome.status === 'failed' || outcome.status === 'input_required') return undefined
  if (outcome.status === 'waiting') {
    const { id, expiresAt } = outcome.approval
    return { 'dev.toolgate/approval': { id, expiresAt } }
  }
  const [deciding] = outcome.decision.reasons
  if (deciding === undefined) return undefined
  if (deciding.code === 'rate_limited')
    return deciding.resetMs === undefined
      ? undefined
      : { 'dev.toolgate/retry-after': retryAfterSeconds(deciding.resetMs) }
  if (outcome.decision.outcome !== 'wait' || !EXPLAINED.has(REASONS[deciding.code].message)) return undefined
  const { code: error, message, text, suggestion } = deciding
  const refusal = { error, reason: message ?? text, ...(suggestion === undefined ? {} : { suggestion }) }
  return { 'dev.toolgate/refusal': refusal }
}

const wrapped = new WeakMap<McpResult, McpAnswer>()
const inner = new WeakMap<McpResult, CallOutcome>()

/** Returns an answer as the result of `call_tool`. A JSON-RPC error becomes a text that {@link toAnswer} turns back. */
function wrapAnswer(answer: McpAnswer): McpResult {
  if ('result' in answer) return answer.result
  const result = errorResult(answer.error.message)
  wrapped.set(result, answer)
  return result
}

/**
 * Returns the outcome of the call that `call_tool` made, as the result of `call_tool`. {@link unwrapOutcome} reverses
 * this.
 */
export function wrapOutcome(outcome: CallOutcome): McpResult {
  const result = wrapAnswer(toAnswer(outcome))
  if (outcome.status === 'waiting' || needsScopes(outcome)) inner.set(result, outcome)
  return result
}

/** Returns the call that `call_tool` made, if it waits for approval or needs scopes; otherwise the outcome itself. */
export function unwrapOutcome(outcome: CallOutcome): CallOutcome {
  return (outcome.status === 'done' && inner.get(outcome.output as McpResult)) || outcome
}

function needsScopes(outcome: CallOutcome): boolean {
  return outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'scope_needed'
}

function unwrapAnswer(result: McpResult): McpAnswer {
  return (typeof result === 'object' && result !== null && wrapped.get(result)) || { result }
}

/**
 * Returns a result without the fields about the hop to the server: `resultType` and the server's name in `_meta`.
 * `input_required` stays, since the client has to answer it.
 */
export function withoutHop({ resultType, _meta: meta, ...result }: McpResult): McpResult {
  const { [META.serverInfo]: _, ...kept } = meta ?? {}
  return {
    ...(resultType === 'input_required' ? { resultType } : { content: [] }),
    ...result,
    ...(Object.keys(kept).length > 0 && { _meta: kept }),
  }
}

/** The fields without which clients reject a content block, by its type. */
const BLOCKS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['text', ['text']],
  ['image', ['data', 'mimeType']],
  ['audio', ['data', 'mimeType']],
  ['resource_link', ['name', 'uri']],
  ['resource', []],
])
const FIELDS: ReadonlySet<string> = new Set(['content', 'structuredContent', 'isError', '_meta', 'resultType'])

/**
 * Whether an output is a `CallToolResult`: an object with a list of content blocks. An empty list counts only if the
 * object has no fields of its own.
 */
export function isMcpResult(output: unknown): output is McpResult {
  if (!isObject(output)) return false
  const { content, resultType, isError, _meta: meta } = output
  if (resultType === 'input_required') return true
  if (!Array.isArray(content) || (isError !== undefined && typeof isError !== 'boolean')) return false
  if (meta !== undefined && !isObject(meta)) return false
  if (content.length === 0) return Object.keys(output).every((field) => FIELDS.has(field))
  return content.every(isBlock)
}

function isBlock(block: unknown): boolean {
  if (!isObject(block)) return false
  const { type, resource } = block
  if (type === 'resource' && !isObject(resource)) return false
  return BLOCKS.get(type)?.every((field) => typeof block[field] === 'string') ?? false
}

/**
 * Returns a value that the SDKs can send as JSON. For any other value they send no answer, and the client waits
 * forever. They cannot write an integer beyond 2^53, so it becomes a string of its digits.
 */
export function toSendable<Value>(value: Value): Value {
  try {
    JSON.stringify(value)
    return value
  } catch {
    return parseJson(outputText(value)) as Value
  }
}

function withDigitsAsText(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map(withDigitsAsText)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withDigitsAsText(item)]))
}

/** Returns the value of a JSON text; `undefined` if it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return withDigitsAsText(readOwnJson(text, 'exact'))
  } catch {
    return undefined
  }
}
