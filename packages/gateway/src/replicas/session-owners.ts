import { isObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import { toLogLevel } from '../model/log-levels.ts'
import type { KeptSession, SessionKeeper } from '../calls/sessions.ts'
import type { Owned, OwnerStore } from './replica-store.ts'

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const KEY = 'session/'

/** The stored sessions of earlier clients, over all replicas. */
export class SessionOwners implements SessionKeeper {
  readonly #owners: OwnerStore
  readonly #self: string
  readonly #onFault: (error: unknown) => void

  constructor(owners: OwnerStore, self: string, onFault: (error: unknown) => void) {
    this.#owners = owners
    this.#self = self
    this.#onFault = onFault
  }

  async put(id: string, kept: KeptSession): Promise<void> {
    await this.#owners.put(KEY + id, this.#self, toJsonText(kept))
  }

  async remove(id: string): Promise<void> {
    await this.#owners.remove(KEY + id, this.#self).catch(this.#onFault)
  }

  async free(ids: readonly string[]): Promise<void> {
    const keys = ids.map((id) => KEY + id)
    await this.#owners.free(keys, this.#self)
  }

  /** Returns the replica that has a session, or this replica if no live replica has it. */
  async find(id: string): Promise<{ readonly owned: Owned; readonly kept: KeptSession } | undefined> {
    const owned = ID.test(id) ? await this.#owners.find(KEY + id, this.#self) : undefined
    const kept = owned && toKept(owned)
    return owned && kept && { owned, kept }
  }
}

/** Returns the ids of the sessions among keys. */
export function sessionIdsIn(keys: readonly string[]): ReadonlySet<string> {
  return new Set(keys.flatMap((key) => (key.startsWith(KEY) ? [key.slice(KEY.length)] : [])))
}

/** Returns the session data that another replica has stored; `undefined` for a row of a later version. */
function toKept({ content }: Owned): KeptSession | undefined {
  const kept: unknown = readOwnJson(content, 'exact')
  if (!isObject(kept)) return undefined
  const { owner, capabilities, protocolVersion, logLevel, listens } = kept
  const level = toLogLevel(logLevel)
  if (typeof owner !== 'string' || typeof protocolVersion !== 'string' || !isObject(capabilities) || !level)
    return undefined
  return { owner, capabilities, protocolVersion, logLevel: level, listens: listens === true }
}
