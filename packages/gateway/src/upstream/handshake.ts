import type { Handshake } from './connection.ts'
import { clip, isObject, type JsonObject, notMcp } from './json-rpc.ts'
import { CLIENT_CAPABILITIES, CLIENT_INFO, LEGACY_VERSIONS, MODERN_VERSION } from './protocol.ts'
import { UpstreamError } from './upstream.ts'

/** The request with which MCP 2026-07-28 begins. */
export const DISCOVER = 'server/discover'
const UNSUPPORTED_VERSION = -32_022

type Ask = (method: string, params: JsonObject) => Promise<JsonObject>

/**
 * Makes the handshake of the revisions before 2026-07-28, without its closing notification.
 *
 * @throws {UpstreamError} `upstream_protocol` for a revision that is not spoken here
 */
export async function initialize(ask: Ask): Promise<Handshake> {
  const result = await ask('initialize', {
    protocolVersion: LEGACY_VERSIONS[0],
    capabilities: CLIENT_CAPABILITIES,
    clientInfo: CLIENT_INFO,
  })
  const { protocolVersion, capabilities, serverInfo } = result
  if (typeof protocolVersion !== 'string' || !isObject(capabilities)) throw notMcp(JSON.stringify(result))
  if (!LEGACY_VERSIONS.includes(protocolVersion)) throw unspoken([protocolVersion])
  return { era: 'legacy', protocolVersion, capabilities, serverInfo: toServerInfo(serverInfo) }
}

/**
 * Asks a server whether it speaks MCP 2026-07-28. Gives `undefined` where it gave no sign of that.
 *
 * @throws {UpstreamError} when it speaks a later revision only, and whatever `ask` throws
 */
export async function discover(ask: Ask): Promise<Handshake | undefined> {
  let result: JsonObject
  try {
    result = await ask(DISCOVER, {})
  } catch (error) {
    if (error instanceof UpstreamError && error.code === 'upstream_rpc') return refuseLater(supportedOf(error))
    throw error
  }
  const { supportedVersions, capabilities, _meta } = result
  if (!isStrings(supportedVersions) || !isObject(capabilities)) return undefined
  if (!supportedVersions.includes(MODERN_VERSION)) return refuseLater(supportedVersions)
  const info = isObject(_meta) ? _meta['io.modelcontextprotocol/serverInfo'] : undefined
  return { era: 'modern', protocolVersion: MODERN_VERSION, capabilities, serverInfo: toServerInfo(info) }
}

function refuseLater(supported: readonly string[]): undefined {
  if (supported.some((version) => version >= MODERN_VERSION)) throw unspoken(supported)
}

function supportedOf(error: UpstreamError): readonly string[] {
  const data = error.rpc?.code === UNSUPPORTED_VERSION && error.rpc.data
  return isObject(data) && isStrings(data['supported']) ? data['supported'] : []
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function unspoken(versions: readonly string[]): UpstreamError {
  const known = [MODERN_VERSION, ...LEGACY_VERSIONS].join(', ')
  return new UpstreamError(
    'upstream_protocol',
    `speaks MCP ${clip(versions.join(', '), 100)}; those spoken here are ${known}`,
  )
}

function toServerInfo(info: unknown): Handshake['serverInfo'] {
  if (!isObject(info) || typeof info['name'] !== 'string') return undefined
  const { name, version } = info
  return { name: clip(name, 100), version: typeof version === 'string' ? clip(version, 100) : '' }
}
