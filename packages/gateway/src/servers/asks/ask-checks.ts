import { type JsonObject, toJsonText } from '@toolgate/values/json'
import { RPC_CODES, RpcError } from '@toolgate/mcp'

const MAX_CHARS = 256 * 1024

/** Returns the error for a request of a server that MCP does not allow. */
export function invalid(problem: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `${problem}.`)
}

/** @throws {RpcError} for a request that is too large for a client */
export function checkSize(params: JsonObject): void {
  if (toJsonText(params).length > MAX_CHARS) throw invalid(`the request has more than ${MAX_CHARS} characters`)
}

/** Puts the server's configured name first, as the text may claim any name. */
export function named(server: string, message: string): string {
  return `Server "${server}" asks: ${message}`
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
