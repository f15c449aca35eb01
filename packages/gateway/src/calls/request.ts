import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, Tool } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { JsonRpcError, RequestId } from '@toolgate/mcp'
import type { ClientLink } from '../servers/asks/client-link.ts'
import type { Session } from './sessions.ts'

/** A request of a client, independent of the era. */
export interface McpRequest {
  readonly id: RequestId
  readonly params: JsonObject
  /** The id of the client's credential. */
  readonly client: string
  /** The caller, in the session that the client names, if any. */
  readonly caller: Caller
  /** Returns the current caller; `undefined` if the credential is no longer accepted. */
  readonly callerNow: () => Caller | undefined
  /** The caller of the credential, without a session. */
  readonly owner: Caller
  /** The session that the client names. `undefined` without one, and since 2026-07-28. */
  readonly session: Session | undefined
  /** A supported revision of MCP. */
  readonly protocolVersion: string | undefined
  /** The headers that must repeat arguments; `undefined` before 2026-07-28. */
  readonly headers: IncomingHttpHeaders | undefined
  /** Aborts when the client cancels the request or has disconnected for good. */
  readonly signal: Cancelling
  /** The channel from servers to the client. */
  readonly link: ClientLink
  /** Sends a notification before the answer. It may be lost. */
  notify(method: string, params: JsonObject): void
}

/** The answer to a request, independent of the era. */
export type McpReply = McpResultReply | McpAskReply | McpTaskReply | { readonly error: JsonRpcError }

export interface McpResultReply {
  readonly result: JsonObject
  /** How long the client may cache the result, in ms. Absent for results that are not cached. */
  readonly ttlMs?: number | undefined
  /** Whether the same reply answers equal requests, so that its bytes are cached. */
  readonly isKept?: boolean
  /** The called tool, if the caller sees it. */
  readonly tool?: Tool | undefined
}

/** Asks the client for more input (2026-07-28). Never cached. */
export interface McpAskReply {
  /** The `inputRequests`, by key. */
  readonly asks: JsonObject
  /** The sealed `requestState`. */
  readonly state: string
}

/** A call that runs as a task. It has the whole result, in the form of the client's era. */
interface McpTaskReply {
  readonly created: JsonObject
}
