import type { Cancelling, Progress } from '@toolgate/core'

import type { JsonObject } from './json-rpc.ts'
import type { UpstreamError } from './upstream.ts'

export type Era = 'legacy' | 'modern'

/** What a server said of itself when the connection was made. */
export interface Handshake {
  readonly era: Era
  readonly protocolVersion: string
  readonly serverInfo: { readonly name: string; readonly version: string } | undefined
  readonly capabilities: JsonObject
}

/** What follows a request on its way. */
export interface RequestTrace {
  /** Goes into the request's `_meta`. */
  readonly meta: JsonObject | undefined
  sentAs(id: number): void
}

export interface RequestOptions {
  /** From the sending, and again from each progress notification. */
  readonly timeoutMs: number
  /** The longest that progress can put the timeout off. Default: `timeoutMs`. */
  readonly maxTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** `Mcp-Param-*` headers, as names and values in turn. */
  readonly paramHeaders?: readonly string[] | undefined
  readonly trace?: RequestTrace | undefined
}

/** A server that has answered its handshake, over whatever transport. */
export interface Connection extends Handshake {
  /** @throws {UpstreamError} */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject>
  close(): Promise<void>
}

export interface ConnectionHooks {
  onListChanged(): void
  /** The server was shaken hands with again. */
  onRenewed(handshake: Handshake): void
  /** Once, unless it was closed before: nothing will be answered any more. */
  onLost(error: UpstreamError): void
  log(level: LogLevel, message: string, detail?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface ConnectOptions {
  readonly era: 'auto' | Era
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly hooks: ConnectionHooks
}
