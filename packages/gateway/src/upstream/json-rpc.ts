import { redactor } from '@toolgate/core'
import { measureJson } from '../json-text.ts'
import { LIMITS } from './limits.ts'
import { UpstreamError } from './upstream.ts'

export type JsonObject = { readonly [key: string]: unknown }
export type RpcId = string | number
export type RpcError = NonNullable<UpstreamError['rpc']>

/** A JSON-RPC 2.0 message of an upstream, checked. */
export type RpcMessage =
  | { readonly kind: 'result'; readonly id: RpcId; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly id: RpcId | null; readonly error: RpcError }
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject }
  /** An answer that cannot be used, to a request that is known. */
  | { readonly kind: 'unusable'; readonly id: RpcId; readonly error: UpstreamError }

export const METHOD_NOT_FOUND = -32_601

/** Above this, text that is nested too deeply is not parsed even for its id: that alone takes seconds and gigabytes. */
const DEEP_PARSE_CHARACTERS = 1024 * 1024

/**
 * Gives the messages of one JSON text: one, or those of a batch, which 2025-03-26 allows.
 *
 * @throws {UpstreamError} `upstream_protocol` for text that is no JSON-RPC, `upstream_too_large` for text that is
 * better not parsed
 */
export function parseMessages(text: string): readonly RpcMessage[] {
  if (nestsDeeperThan(text, LIMITS.jsonDepth)) return [tooDeep(text)]
  const value = parseJson(text)
  return Array.isArray(value) ? value.map((item) => toMessage(item, text)) : [toMessage(value, text)]
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Gives the error for text that is no answer of an MCP server. */
export function notMcp(text: string): UpstreamError {
  return new UpstreamError('upstream_protocol', `answered something that is not MCP: ${quote(text)}`)
}

/**
 * Gives text for a message: printable, on one line, cut to `max` characters.
 *
 * It is redacted before it is cut, and cut between words: half a secret is not recognised as one.
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

/** Of one word alone, no more than is printed of keys to tell them apart. */
const ALONE_LENGTH = 8
const WORD_BREAK = /[\s"',;][^\s"',;]*$/

function cutBetweenWords(line: string, max: number): string {
  const cut = line.slice(0, max)
  const at = cut.search(WORD_BREAK)
  return at === -1 ? cut.slice(0, ALONE_LENGTH) : cut.slice(0, at + 1).trimEnd()
}

/** Says whether JSON text nests arrays and objects deeper than `limit`, without parsing it. */
export function nestsDeeperThan(text: string, limit: number): boolean {
  return measureJson(text, { depth: limit }).excess !== undefined
}

function tooDeep(text: string): RpcMessage {
  const reason = `answered JSON that is nested deeper than ${LIMITS.jsonDepth} levels`
  if (text.length > DEEP_PARSE_CHARACTERS) throw new UpstreamError('upstream_too_large', reason)
  const value = parseJson(text)
  const error = new UpstreamError('upstream_protocol', reason)
  if (isObject(value) && isId(value['id']) && value['method'] === undefined) {
    return { kind: 'unusable', id: value['id'], error }
  }
  throw error
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notMcp(text)
  }
}

function toMessage(value: unknown, text: string): RpcMessage {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') throw notMcp(text)
  const { id, method, params, result, error } = value
  if (typeof method === 'string') {
    return isId(id)
      ? { kind: 'request', id, method }
      : { kind: 'notification', method, params: isObject(params) ? params : {} }
  }
  if (isObject(result) && isId(id)) return { kind: 'result', id, result }
  const rpc = toRpcError(error)
  if (rpc && (isId(id) || id === null || id === undefined)) return { kind: 'error', id: id ?? null, error: rpc }
  if (isId(id)) return { kind: 'unusable', id, error: notMcp(text) }
  throw notMcp(text)
}

function toRpcError(error: unknown): RpcError | undefined {
  if (!isObject(error) || !Number.isInteger(error['code'])) return undefined
  const { code, message, data } = error
  const rpc = { code: code as number, message: typeof message === 'string' ? message : '' }
  return data === undefined ? rpc : { ...rpc, data }
}

function isId(id: unknown): id is RpcId {
  return typeof id === 'string' || typeof id === 'number'
}

function quote(text: string): string {
  return JSON.stringify(clip(text, 100))
}
