/** A JSON-RPC 2.0 error object. */
export interface JsonRpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/**
 * Codes with which a server refuses how it was asked (MCP 2026-07-28). The client that caused the call was not the one
 * that asked: it would change its own headers or revision.
 */
const HOP_ERRORS: ReadonlyMap<number, string> = new Map([
  [-32_020, 'The server refused the headers of the request to it'],
  [-32_022, 'The server does not speak the MCP revision of the request to it'],
])

/**
 * Returns a server's error as it is passed on to the client whose call it answers.
 *
 * Code, message and data stay. Errors about the request between us and the server become internal errors that quote them.
 *
 * @example
 * relayedError({ code: -32_020, message: 'no Mcp-Name' }).code // -32603
 */
export function relayedError({ code, message, data }: JsonRpcError): JsonRpcError {
  const hop = HOP_ERRORS.get(code)
  if (hop !== undefined) return { code: -32_603, message: `${hop} (${code}: ${message}).` }
  return { code, message, ...(data === undefined ? {} : { data }) }
}
