import type { Caller, Gate } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import type { TracedMethod } from '../telemetry/tracing.ts'
import type { McpReply, McpRequest } from './request.ts'
import type { CallRounds } from './rounds.ts'
import type { Sessions } from './sessions.ts'

/** `legacy`: the revisions of MCP before 2026-07-28. */
export type Era = 'legacy' | 'modern'

/** A method of MCP. The rooms that bring methods are the rows of the table in which requests are looked up. */
export type Method = {
  /** The only era that has the method. Default: both have it. */
  readonly era?: Era
  /** `false`: the method is served before the lists of its caller are loaded. */
  readonly needsLists?: boolean
  /** Serves a request. @throws {RpcFault} */
  readonly serve: (request: McpRequest, at: Serving) => Promise<McpReply>
} & (
  | { readonly name: TracedMethod; readonly isTraced?: true }
  /** Requests of this method have no span. */
  | { readonly name: string; readonly isTraced: false }
)

/** The endpoint that received a request: `/mcp`, or the endpoint of an app. */
export interface Serving {
  /** The gate, which opens only views of the endpoint's app. */
  readonly gate: Pick<Gate, 'view'>
  readonly rounds: Pick<CallRounds, 'serve'>
  readonly sessions: Pick<Sessions, 'keep'>
  /** Sends a notification on the streams of a session. */
  readonly streams: { notify(session: string, method: string, params: JsonObject): void }
  /** How long a client may cache a list, in milliseconds. */
  readonly listTtlMs: number
  /** Returns why a caller's lists may lack items now, as a text for the caller. Default: no reason. */
  readonly listProblemOf?: ((caller: Caller) => string | undefined) | undefined
}

/** The client to which the gateway declares its capabilities. */
export interface Declaring {
  readonly era: Era
  /** The revision that an earlier client has agreed on. */
  readonly protocolVersion?: string
}
