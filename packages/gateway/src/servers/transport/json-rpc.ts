import { isObject, JSON_BOUNDS, JsonFault, type JsonObject, readJson } from '@toolgate/values/json'
import { redactor } from '@toolgate/values/redact'
import { type JsonRpcError, type RequestId, withoutNulls } from '@toolgate/mcp'
import { findMembers, type TextSpan, splitItems } from '../../util/json-text.ts'
import { isLarge, markLarge } from '../../util/next-turn.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** A checked JSON-RPC 2.0 message from a server. */
export type RpcMessage =
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly id: RequestId | null; readonly error: JsonRpcError }
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: JsonObject }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  /** An invalid answer to a known request. */
  | { readonly kind: 'unusable'; readonly id: RequestId; readonly error: UpstreamError }

/** A message that is not an answer. */
export type ServerMessage = Extract<RpcMessage, { readonly kind: 'request' | 'notification' }>

/** The text of a list item that is too large to parse at once. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Returns the messages of one JSON text: a single message, or those of a batch, which 2025-03-26 allows.
 *
 * A text beyond the bounds is not parsed. If it answers with a list of items, each item is returned as {@link
 * JsonText}, so that an unusable item does not affect the others. Any other answer is `unusable`. The same applies to a
 * text with a duplicate key.
 *
 * @throws {UpstreamError} `upstream_protocol` for text that is not JSON-RPC, `upstream_too_large` for a text beyond the
 * bounds that answers no request
 */
export function parseMessages(text: string, isUtf8 = true): readonly RpcMessage[] {
  const value = isUtf8 ? parseJson(text) : new JsonFault('not-utf8')
  if (value instanceof JsonFault) {
    const members = findMembers(text, ['id', 'method', ...LIST_MEMBERS.keys()])
    return [(isUtf8 && readLists(text, members)) || refuseMessage(text, value, members)]
  }
  return Array.isArray(value) ? value.map((item) => toMessage(item, text)) : [toMessage(value, text)]
}

/** Returns the error for text that is not MCP. */
export function notMcp(text: string): UpstreamError {
  return new UpstreamError('upstream_protocol', `answered something that is not MCP: ${quote(text)}`)
}

/**
 * Returns text for a message: printable, on one line, cut to `max` characters.
 *
 * It is redacted first and cut between words, because half a secret would not be recognized.
 */
export function clip(text: string, max = 200): string {
  const line = redactor
    .redactText(text.slice(0, max * 4))
    // oxlint-disable-next-line no-control-regex -- terminal colours and controls are what is taken out
    .replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, '')
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
  return line.length > max ? `${cutBetweenWords(line, max - 1)}…` : line
}

/** The number of characters kept of a single long word, as many as are printed of a key. */
const ALONE_LENGTH = 8
const WORD_BREAK = /[\s"',;][^\s"',;]*$/

function cutBetweenWords(line: string, max: number): string {
  const cut = line.slice(0, max)
  const at = cut.search(WORD_BREAK)
  return at === -1 ? cut.slice(0, ALONE_LENGTH) : cut.slice(0, at + 1).trimEnd()
}

/** The lists in results, by their path in a message. */
const LIST_MEMBERS: ReadonlyMap<string, string> = new Map(
  ['tools', 'resources', 'resourceTemplates', 'prompts'].map((field) => [`result.${field}`, field]),
)

/** Reads an answer whose list makes it large. */
function readLists(text: string, members: ReadonlyMap<string, TextSpan>): RpcMessage | undefined {
  for (const [member, field] of LIST_MEMBERS) {
    const span = members.get(member)
    const message = span && readList(text, span, field)
    if (message) return message
  }
  return undefined
}

function readList(text: string, span: TextSpan, field: string): RpcMessage | undefined {
  const items = splitItems(text.slice(span.start, span.end))
  if (!items) return undefined
  const rest = `${text.slice(0, span.start)}[]${text.slice(span.end)}`
  const value = parseJson(rest)
  if (value instanceof JsonFault) return undefined
  const message = toMessage(value, rest)
  if (message.kind !== 'result') return undefined
  return { ...message, result: { ...message.result, [field]: items.map((item) => new JsonText(item)) } }
}

/** @throws {UpstreamError} for a text that answers no request */
function refuseMessage(
  text: string,
  { excess, problem }: JsonFault,
  members: ReadonlyMap<string, TextSpan>,
): RpcMessage {
  const isStray = excess === undefined || (excess.bound === 'depth' && text.length <= STRAY_CHARS)
  const error = new UpstreamError(isStray ? 'upstream_protocol' : 'upstream_too_large', `answered JSON that ${problem}`)
  const span = members.get('id')
  const id = span && span.end - span.start <= MAX_ID_TEXT ? parseJson(text.slice(span.start, span.end)) : undefined
  const own = toOwnId(id)
  if (!isId(own) || members.has('method')) throw error
  return { kind: 'unusable', id: own, error }
}

/** The maximum length of stray output. Output that a server prints by mistake is shorter. */
const STRAY_CHARS = 1024 * 1024
/** The maximum length of an id. The ids of our requests are small integers. */
const MAX_ID_TEXT = 100

/** Returns the fault of a text that is JSON but breaks our bounds. */
function parseJson(text: string): unknown {
  try {
    return readJson(text, { bounds: JSON_BOUNDS.answer, integers: 'exact' })
  } catch (error) {
    if (error instanceof JsonFault && error.kind !== 'not-json') return error
    throw notMcp(text)
  }
}

/** Whether a message answers another request. Some servers answer an unknown request with a string as its id. */
export function answersOther(message: RpcMessage, id: number): boolean {
  if (message.kind === 'request' || message.kind === 'notification') return false
  return typeof message.id === 'number' && message.id !== id
}

function toMessage(value: unknown, text: string): RpcMessage {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') throw notMcp(text)
  const { id: given, method, params, result, error } = value
  if (method === '') throw notMcp(text)
  if (typeof method === 'string') {
    const asked = isObject(params) ? withoutNulls(params) : {}
    return isId(given)
      ? { kind: 'request', id: given, method, params: asked }
      : { kind: 'notification', method, params: asked }
  }
  const id = toOwnId(given)
  if (isObject(result) && isId(id)) {
    if (isLarge(text)) markLarge(result)
    return { kind: 'result', id, result }
  }
  const rpc = toRpcError(error)
  if (rpc && (isId(id) || id === null || id === undefined)) return { kind: 'error', id: id ?? null, error: rpc }
  if (isId(id)) return { kind: 'unusable', id, error: notMcp(text) }
  throw notMcp(text)
}

/**
 * Returns the id of one of our requests as we sent it. Our ids are numbers, and some servers write them as text. Ids of
 * a server's own requests are given back as they came.
 */
export function toOwnId(id: unknown): unknown {
  return typeof id === 'string' && OWN_ID.test(id) ? Number(id) : id
}

const OWN_ID = /^\d{1,15}$/

function toRpcError(error: unknown): JsonRpcError | undefined {
  if (!isObject(error)) return undefined
  const { code, message, data } = error
  if (typeof code !== 'number' || !Number.isInteger(code)) return undefined
  const rpc = { code, message: typeof message === 'string' ? message : '' }
  return data === undefined ? rpc : { ...rpc, data }
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'string' || typeof id === 'number' || typeof id === 'bigint'
}

function quote(text: string): string {
  return JSON.stringify(clip(text, 100))
}

/** Returns the error for a JSON-RPC error answer. */
export function rpcError(rpc: JsonRpcError): UpstreamError {
  return new UpstreamError('upstream_rpc', `answered error ${rpc.code}: ${clip(rpc.message)}`, { rpc })
}
