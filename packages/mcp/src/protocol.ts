/** The stateless revisions of MCP, newest first. Each request names its revision and its client. */
export const MODERN_VERSIONS: readonly string[] = ['2026-07-28']

/** The revisions of MCP that begin with `initialize`, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

/** The keys of `_meta` that MCP 2026-07-28 defines. */
export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const

/** The notification that a client's list of tools has changed. */
export const LIST_CHANGED = 'notifications/tools/list_changed'

/** The codes of JSON-RPC 2.0 §5.1 that both sides use. */
export const RPC_CODES = { methodNotFound: -32_601, invalidParams: -32_602, internalError: -32_603 } as const

/** An integer beyond 2^53 is a `bigint`, so that it is sent back with the same digits. */
export type RequestId = string | number | bigint

/** A JSON-RPC 2.0 error object. */
export interface JsonRpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/**
 * Codes with which a server rejects the headers or the revision of a request (MCP 2026-07-28). They are about the
 * request that this process sent. A client that received them would change its own headers or revision.
 */
const HOP_ERRORS: ReadonlyMap<number, string> = new Map([
  [-32_020, 'The server refused the headers of the request to it'],
  [-32_022, 'The server does not speak the MCP revision of the request to it'],
])

/**
 * Returns a server's error as it is sent to the client.
 *
 * Its code, message and data stay the same. An error about the hop to that server becomes an internal error that quotes
 * it.
 *
 * @example
 * relayedError({ code: -32_020, message: 'no Mcp-Name' }).code // -32603
 */
export function relayedError({ code, message, data }: JsonRpcError): JsonRpcError {
  const hop = HOP_ERRORS.get(code)
  if (hop !== undefined) return { code: RPC_CODES.internalError, message: `${hop} (${code}: ${message}).` }
  return { code, message, ...(data === undefined ? {} : { data }) }
}
