import { hash } from 'node:crypto'
import type { MaybePromise } from '@toolgate/core/internal'
import type { Owned, OwnerStore } from '../replica/replica-store.ts'
import type { Owner } from '../upstream/owner.ts'

/** The instances of a user, as far as their home is concerned. */
export interface HomeInstances {
  /** Ends the instances that run nothing. */
  endIdle(): Promise<void>
  /** Ends all instances of an owner. */
  endOfOwner(key: string): Promise<void>
  /** Returns the keys of the owners that have instances. */
  readonly owners: ReadonlySet<string>
}

export interface HomesDeps {
  /** The incarnation of this replica. */
  readonly self: string
  readonly owners: OwnerStore
  readonly instances: () => HomeInstances
  readonly onFault: (error: unknown) => void
}

interface Home {
  readonly owner: string
  /** The servers that have an instance for the user. */
  readonly servers: Set<string>
  /** Those whose instance was lost with the replica before, until that was said. */
  readonly lost: Set<string>
}

const KEY = 'home/'

/**
 * The replica of each user whose servers keep something for them: it has all of their instances, so a user never has two of
 * one server.
 */
export class Homes {
  readonly #deps: HomesDeps
  /** The homes of this replica, by key. */
  readonly #here = new Map<string, Home>()

  constructor(deps: HomesDeps) {
    this.#deps = deps
  }

  /** Whether this replica is the home of a user. */
  has(owner: Owner): boolean {
    return this.#here.has(keyOf(owner))
  }

  /** Returns the home of a user if it is another replica. `undefined`: it is this one. */
  find(owner: Owner): MaybePromise<Owned | undefined> {
    return this.has(owner) ? undefined : this.#claim(owner)
  }

  /** Returns whether a server has lost the instance of a user. It is said once. */
  takeLost(owner: Owner, server: string): boolean {
    return this.#here.get(keyOf(owner))?.lost.delete(server) === true
  }

  /** Notes that a server has an instance for a user, or none any more. */
  note(owner: Owner, server: string, isOpen: boolean): void {
    const key = keyOf(owner)
    const home = this.#here.get(key)
    if (!home || home.servers.has(server) === isOpen) return
    if (isOpen) home.servers.add(server)
    else home.servers.delete(server)
    this.#deps.owners.put(key, this.#deps.self, contentOf(home)).catch(this.#deps.onFault)
  }

  /** Gives up the homes of users for whom nothing runs. Returns whether any are left. */
  async handOver(): Promise<boolean> {
    const { instances, owners, self } = this.#deps
    await instances().endIdle()
    const busy = instances().owners
    const free = [...this.#here].flatMap(([key, { owner }]) => (busy.has(owner) ? [] : [key]))
    for (const key of free) this.#here.delete(key)
    if (free.length > 0) await owners.free(free, self)
    return this.#here.size > 0
  }

  /** Ends what is here of users whose home is another replica by now. */
  async retain(keys: ReadonlySet<string>): Promise<void> {
    for (const [key, { owner }] of this.#here)
      if (!keys.has(key)) {
        this.#here.delete(key)
        await this.#deps.instances().endOfOwner(owner)
      }
  }

  async #claim(owner: Owner): Promise<Owned | undefined> {
    const { owners, self } = this.#deps
    const key = keyOf(owner)
    const owned = await owners.claim(key, self, '[]')
    if (owned.owner !== self) return owned
    if (!this.#here.has(key)) {
      const lost = new Set(owned.taken === 'lost' ? serversIn(owned) : [])
      this.#here.set(key, { owner: owner.key, servers: new Set(), lost })
    }
    return undefined
  }
}

function keyOf({ key }: Owner): string {
  return KEY + hash('sha256', key, 'base64url')
}

function contentOf({ servers }: Home): string {
  return JSON.stringify([...servers])
}

function serversIn({ content }: Owned): readonly string[] {
  const servers: unknown = JSON.parse(content)
  return Array.isArray(servers) ? servers.filter((server) => typeof server === 'string') : []
}
