import { isObject } from '@toolgate/values/json'
import { type LogLevel, toLogLevel } from '../model/log-levels.ts'
import type { ClientCapabilities } from '../servers/asks/client-link.ts'

/** What a client declares when it begins a session. */
export interface SessionClient {
  readonly capabilities: ClientCapabilities
  readonly protocolVersion: string
}

/** The data with which a session continues in another process, without its running requests. */
export interface KeptSession extends SessionClient {
  readonly owner: string
  readonly logLevel: LogLevel
  /** The groups that the session has opened. */
  readonly opened: readonly string[]
  /** The URIs of the resources that it is subscribed to. */
  readonly subscriptions: readonly string[]
}

/** Stores sessions for other processes: the next process of this gateway, or other replicas. */
export interface SessionKeeper {
  /** Returns whether the session is stored. `false`: another replica has it, or nothing can be written now. */
  put(id: string, kept: KeptSession): Promise<boolean>
  /** Returns whether a session that was stored still is. `false`: it was ended elsewhere. */
  has(id: string): Promise<boolean>
  /** Never rejects. */
  remove(id: string): Promise<void>
  /** Hands sessions over, so that other replicas can continue them. */
  free(ids: readonly string[]): Promise<void>
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const KEY = 'session/'

/** Returns the key under which a session is stored; `undefined` for an id that no gateway has given. */
export function keyOfSession(id: string): string | undefined {
  return ID.test(id) ? KEY + id : undefined
}

/** Returns the ids of the sessions among keys. */
export function sessionIdsIn(keys: readonly string[]): ReadonlySet<string> {
  return new Set(keys.flatMap((key) => (key.startsWith(KEY) ? [key.slice(KEY.length)] : [])))
}

/** Returns the data of a stored session; `undefined` for a row of a later version. */
export function parseKeptSession(kept: unknown): KeptSession | undefined {
  if (!isObject(kept)) return undefined
  const { owner, capabilities, protocolVersion, logLevel, opened, subscriptions } = kept
  const level = toLogLevel(logLevel)
  if (typeof owner !== 'string' || typeof protocolVersion !== 'string' || !isObject(capabilities) || !level)
    return undefined
  return {
    owner,
    capabilities,
    protocolVersion,
    logLevel: level,
    opened: textsIn(opened),
    subscriptions: textsIn(subscriptions),
  }
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []
}
