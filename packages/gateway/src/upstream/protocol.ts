import { VERSION } from '../version.ts'
import type { Era } from './connection.ts'
import type { JsonObject } from './json-rpc.ts'
import { UpstreamError } from './upstream.ts'

/** The stateless revision, without a handshake of its own: every request says who asks. */
export const MODERN_VERSION = '2026-07-28'

/** The revisions that begin with `initialize`, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

export const CLIENT_INFO: { readonly name: string; readonly version: string } = { name: 'toolgate', version: VERSION }

/** None: what a server asks of its client (roots, sampling, elicitation) is not governed yet. */
export const CLIENT_CAPABILITIES: JsonObject = {}

/** The `_meta` that every request of MCP 2026-07-28 carries. */
export const MODERN_META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': MODERN_VERSION,
  'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
  'io.modelcontextprotocol/clientCapabilities': CLIENT_CAPABILITIES,
}

/**
 * Gives the text of a request. With a progress token, which is its id, the server may report progress; `meta` goes
 * into its `_meta` too.
 */
export function encodeRequest(
  era: Era,
  id: number,
  method: string,
  params: JsonObject,
  options: { readonly progress: boolean; readonly meta?: JsonObject | undefined },
): string {
  const token = options.progress ? { progressToken: id } : undefined
  const own = options.meta ? { ...token, ...options.meta } : token
  const meta = era === 'modern' ? { ...MODERN_META, ...own } : own
  return encode({ jsonrpc: '2.0', id, method, params: meta ? { ...params, _meta: meta } : params })
}

/** @throws {UpstreamError} `upstream_protocol` for params that JSON cannot hold */
export function encode(message: JsonObject): string {
  try {
    return JSON.stringify(message)
  } catch (error) {
    throw new UpstreamError('upstream_protocol', 'cannot be sent arguments that are not plain JSON', { cause: error })
  }
}

/**
 * Gives the result if it is final.
 *
 * @throws {UpstreamError} `upstream_protocol` for `input_required`, which is not governed yet, and for a result
 * without the `resultType` that MCP 2026-07-28 requires
 */
export function completeResult(era: Era, result: JsonObject): JsonObject {
  if (era === 'legacy' || result['resultType'] === 'complete') return result
  const type = result['resultType']
  throw new UpstreamError(
    'upstream_protocol',
    type === 'input_required'
      ? 'asked for more input, which is not supported'
      : `answered a result of the unknown type ${JSON.stringify(type)?.slice(0, 50) ?? '(none)'}`,
  )
}

/**
 * Gives a value as an HTTP header can carry it: as it is, or as `=?base64?…?=` of its UTF-8
 * (MCP 2026-07-28, Streamable HTTP, "Value Encoding").
 */
export function toHeaderValue(value: string): string {
  const safe = /^[\x21-\x7E](?:[\t\x20-\x7E]*[\x21-\x7E])?$/.test(value)
  if (safe && !(value.startsWith('=?base64?') && value.endsWith('?='))) return value
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`
}
