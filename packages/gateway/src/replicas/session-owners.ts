import { readOwnJson, toJsonText } from '@toolgate/values/json'
import { type KeptSession, keyOfSession, parseKeptSession, type SessionKeeper } from '../calls/kept-session.ts'
import type { Owned, OwnerStore } from './replica-store.ts'

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

  put(id: string, kept: KeptSession): Promise<boolean> {
    return this.#owners.put(keyOf(id), this.#self, toJsonText(kept))
  }

  /** The row of a live replica stays until this replica removes it. */
  async has(): Promise<boolean> {
    return true
  }

  async remove(id: string): Promise<void> {
    await this.#owners.remove(keyOf(id), this.#self).catch(this.#onFault)
  }

  async free(ids: readonly string[]): Promise<void> {
    await this.#owners.free(ids.map(keyOf), this.#self)
  }

  /** Makes this replica the owner of a session, although the replica that has it is live. */
  async move(id: string): Promise<void> {
    await this.#owners.move(keyOf(id), this.#self)
  }

  /** Returns the replica that has a session, or this replica if no live replica has it. */
  async find(id: string): Promise<{ readonly owned: Owned; readonly kept: KeptSession } | undefined> {
    const key = keyOfSession(id)
    const owned = key === undefined ? undefined : await this.#owners.find(key, this.#self)
    const kept = owned && parseKeptSession(readOwnJson(owned.content, 'exact'))
    return owned && kept && { owned, kept }
  }
}

/** Returns the key of a session of this gateway. */
function keyOf(id: string): string {
  return keyOfSession(id) ?? ''
}
