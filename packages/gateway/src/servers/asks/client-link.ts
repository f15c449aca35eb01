import type { Cancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { LogLevel } from '../../model/log-levels.ts'
import type { Era } from '../transport/connection.ts'

/** What a client declares that it can do for servers. Keys that we do not know are not here. */
export interface ClientCapabilities {
  /** An empty object means forms only, as in 2025-06-18. */
  readonly elicitation?: { readonly form?: JsonObject; readonly url?: JsonObject }
  readonly sampling?: JsonObject
  readonly roots?: JsonObject
  /** Extensions by name, such as `io.modelcontextprotocol/tasks`. */
  readonly extensions?: JsonObject
}

/** A retry of a call that was answered with `input_required` (2026-07-28). */
export interface ClientAnswers {
  /** The client's answers, by the key of each request. */
  readonly responses: JsonObject
  /** The opened state: the upstream's own, or the id of a held call. */
  readonly state: unknown
}

/** Sends a request of a server to the client. Rejects with an `McpError` if the client refuses or is gone. */
export type AskClient = (method: string, params: JsonObject, signal: Cancelling) => Promise<JsonObject>

/** The client of one call, as servers reach it. It is the `context` of the call. */
export interface ClientLink {
  readonly era: Era
  readonly capabilities: ClientCapabilities
  /** Asks the client over the stream of its request. Only clients of the earlier era have it. */
  readonly ask: AskClient | undefined
  /** The least severe log messages that the client wants; `undefined` for none. */
  readonly logLevel?: LogLevel | undefined
  /** Sends a log message of a server. It may be lost. */
  log(params: JsonObject): void
  readonly answers?: ClientAnswers | undefined
  /** How the call takes part in tasks. Default: its client gets the result only. */
  readonly tasks?: LinkTasks | undefined
}

export interface LinkTasks {
  /** The client takes a task in place of the result. */
  readonly isWanted: boolean
  /** Aborts when the gateway stops: the task goes on without it. */
  readonly leave?: Cancelling | undefined
}

/** Marks links. Only this file has it, and JSON cannot carry it. */
const LINK: unique symbol = Symbol('link')

/** Returns the link of a call's context; `undefined` for calls without a client, such as those of the console. */
export function toClientLink(context: unknown): ClientLink | undefined {
  const isLink = typeof context === 'object' && context !== null && Object.hasOwn(context, LINK)
  return isLink ? (context as ClientLink) : undefined
}

/** Returns the link, marked as one: a context of another kind is never taken for a link. */
export function clientLink<Link extends ClientLink>(link: Link): Link {
  return Object.assign(link, MARK)
}

const MARK: object = { [LINK]: true }
