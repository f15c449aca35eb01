import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { LogLevel } from '../../model/log-levels.ts'
import type { Era } from '../transport/connection.ts'

/** The capabilities that a client declares for servers. Unknown keys are left out. */
export interface ClientCapabilities {
  /** An empty object means forms only, as in 2025-06-18. */
  readonly elicitation?: { readonly form?: JsonObject; readonly url?: JsonObject }
  readonly sampling?: JsonObject
  readonly roots?: JsonObject
  /** Extensions by name, such as `io.modelcontextprotocol/tasks`. */
  readonly extensions?: JsonObject
}

/** The client's retry of a call that returned `input_required` (2026-07-28). */
export interface ClientAnswers {
  /** The client's answers, by the key of each request. */
  readonly responses: JsonObject
  /** The opened state: the server's own state, or the id of a held call. */
  readonly state: unknown
}

/** Sends a server's request to the client. Rejects with an `McpError` if the client refuses or is gone. */
type AskClient = (method: string, params: JsonObject, signal: Cancelling) => Promise<JsonObject>

/** The client of one call, as servers can reach it. It is the `context` of the call. */
export interface ClientLink {
  readonly era: Era
  readonly capabilities: ClientCapabilities
  /** Asks the client over the stream of its request. Only clients of earlier revisions have it. */
  readonly ask: AskClient | undefined
  /** The minimum severity of log messages for the client; `undefined` for none. */
  readonly logLevel?: LogLevel | undefined
  /** Sends a server's log message. It may be lost. */
  log(params: JsonObject): void
  readonly answers?: ClientAnswers | undefined
  /** The client's answers without a state (2026-07-28). They count only for what the server asks in this round. */
  readonly answersAhead?: JsonObject | undefined
  /** How the call uses tasks. Default: its client receives only the result. */
  readonly tasks?: LinkTasks | undefined
}

export interface LinkTasks {
  /** Whether the client accepts a task instead of the result. */
  readonly isWanted: boolean
  /** Aborts when the gateway stops. The task then continues without this call. */
  readonly leave?: Cancelling | undefined
}

/** Marks links. Only this file can set it, and JSON cannot contain it. */
const LINK: unique symbol = Symbol('link')

/** Returns the link in a call's context; `undefined` for calls without a client, such as calls from the console. */
export function toClientLink(context: unknown): ClientLink | undefined {
  const isLink = typeof context === 'object' && context !== null && Object.hasOwn(context, LINK)
  return isLink ? (context as ClientLink) : undefined
}

/** Marks a link, so that no other context is mistaken for one. */
export function clientLink<Link extends ClientLink>(link: Link): Link {
  return Object.assign(link, MARK)
}

const MARK: object = { [LINK]: true }
