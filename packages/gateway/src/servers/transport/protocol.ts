import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { LEGACY_VERSIONS } from '@toolgate/mcp'
import type { Era, Handshake } from './connection.ts'
import type { ServerMay } from '../../config/may.ts'
import { clip, notMcp } from './json-rpc.ts'
import { LIMITS } from './limits.ts'
import { UpstreamError } from '../../model/upstream.ts'
import { VERSION } from '../../files.ts'

/** The stateless revision. It has no handshake: every request identifies its client. */
export const MODERN_VERSION = '2026-07-28'

const CLIENT_INFO: { readonly name: string; readonly version: string } = { name: 'toolgate', version: VERSION }

/** The capabilities for requests without a client, or for a client that supports nothing. */
const NO_CAPABILITIES: JsonObject = {}

/** The `_meta` of every request of MCP 2026-07-28. */
const MODERN_META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': MODERN_VERSION,
  'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
  'io.modelcontextprotocol/clientCapabilities': NO_CAPABILITIES,
}

/**
 * Returns the text of a request. With `progress`, its id is sent as the progress token. `meta` is merged into `_meta`.
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

/** Returns the `_meta` fields from both the trace and the request. */
export function joinMeta(trace: JsonObject | undefined, meta: JsonObject | undefined): JsonObject | undefined {
  return trace && meta ? { ...trace, ...meta } : (trace ?? meta)
}

/** @throws {UpstreamError} `upstream_protocol` for params that are not plain JSON */
export function encode(message: JsonObject): string {
  try {
    return toJsonText(message)
  } catch (error) {
    throw new UpstreamError('upstream_protocol', 'cannot be sent arguments that are not plain JSON', { cause: error })
  }
}

/**
 * Returns a final result.
 *
 * @throws {UpstreamError} `upstream_protocol` for `input_required` where it is not supported, and for a result without
 * the `resultType` that MCP 2026-07-28 requires
 */
export function completeResult(era: Era, result: JsonObject): JsonObject {
  if (era === 'legacy' || result['resultType'] === 'complete') return result
  const type = result['resultType']
  throw new UpstreamError(
    'upstream_protocol',
    type === 'input_required'
      ? 'asked for more input, which is not supported'
      : `answered a result of the unknown type ${toJsonText(type)?.slice(0, 50) ?? '(none)'}`,
  )
}

/**
 * Returns a value as an HTTP header value: unchanged, or as `=?base64?…?=` of its UTF-8
 * (MCP 2026-07-28, Streamable HTTP, "Value Encoding").
 */
export function toHeaderValue(value: string): string {
  const safe = /^[\x21-\x7E](?:[\t\x20-\x7E]*[\x21-\x7E])?$/.test(value)
  if (safe && !(value.startsWith('=?base64?') && value.endsWith('?='))) return value
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`
}

/** The first request of MCP 2026-07-28. */
export const DISCOVER = 'server/discover'
const UNSUPPORTED_VERSION = -32_022

type AskServer = (method: string, params: JsonObject) => Promise<JsonObject>

/** Returns the capabilities to declare to a server of an earlier revision at the handshake, for all of its clients. */
export function handshakeCapabilities({ elicit, sample, roots, open }: ServerMay): JsonObject {
  const elicitation = { ...(elicit && { form: {} }), ...(open.length > 0 && { url: {} }) }
  return {
    ...(Object.keys(elicitation).length > 0 && { elicitation }),
    ...(sample && { sampling: { tools: {} } }),
    ...(roots && { roots: {} }),
  }
}

/**
 * Performs the handshake of revisions before 2026-07-28, without its closing notification.
 *
 * @throws {UpstreamError} `upstream_protocol` for an unsupported revision
 */
export async function initialize(ask: AskServer, capabilities: JsonObject): Promise<Handshake> {
  const result = await ask('initialize', {
    protocolVersion: LEGACY_VERSIONS[0],
    capabilities,
    clientInfo: CLIENT_INFO,
  })
  const { protocolVersion, serverInfo } = result
  const declared = capabilitiesOf(result)
  if (typeof protocolVersion !== 'string' || !isObject(declared)) throw notMcp(toJsonText(result))
  if (!LEGACY_VERSIONS.includes(protocolVersion)) throw unsupported([protocolVersion])
  return {
    era: 'legacy',
    protocolVersion,
    capabilities: declared,
    serverInfo: toServerInfo(serverInfo),
    instructions: textOf(result['instructions']),
  }
}

/**
 * Performs the handshake of MCP 2026-07-28. Returns `undefined` if the server does not seem to support it.
 *
 * @throws {UpstreamError} if the server supports only a later revision, and all errors of `ask`
 */
export async function discover(ask: AskServer): Promise<Handshake | undefined> {
  let result: JsonObject
  try {
    result = await ask(DISCOVER, {})
  } catch (error) {
    if (error instanceof UpstreamError && error.code === 'upstream_rpc') return refuseLater(supportedOf(error))
    throw error
  }
  const { supportedVersions, _meta } = result
  const capabilities = capabilitiesOf(result)
  if (!isStrings(supportedVersions) || !isObject(capabilities)) return undefined
  if (!supportedVersions.includes(MODERN_VERSION)) return refuseLater(supportedVersions)
  const info = isObject(_meta) ? _meta['io.modelcontextprotocol/serverInfo'] : undefined
  return {
    era: 'modern',
    protocolVersion: MODERN_VERSION,
    capabilities,
    serverInfo: toServerInfo(info),
    instructions: textOf(result['instructions']),
  }
}

/** A server that writes `null` declares nothing. */
function capabilitiesOf({ capabilities }: JsonObject): unknown {
  return capabilities === null ? {} : capabilities
}

function refuseLater(supported: readonly string[]): undefined {
  if (supported.some((version) => version >= MODERN_VERSION)) throw unsupported(supported)
}

function supportedOf(error: UpstreamError): readonly string[] {
  const data = error.rpc?.code === UNSUPPORTED_VERSION && error.rpc.data
  return isObject(data) && isStrings(data['supported']) ? data['supported'] : []
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function unsupported(versions: readonly string[]): UpstreamError {
  const known = [MODERN_VERSION, ...LEGACY_VERSIONS].join(', ')
  return new UpstreamError('upstream_protocol', `speaks MCP ${clip(versions.join(', '), 100)}; supported are ${known}`)
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, LIMITS.instructionsChars).toWellFormed() : undefined
}

function toServerInfo(info: unknown): Handshake['serverInfo'] {
  if (!isObject(info) || typeof info['name'] !== 'string') return undefined
  const { name, version } = info
  return { name: clip(name, 100), version: typeof version === 'string' ? clip(version, 100) : '' }
}
