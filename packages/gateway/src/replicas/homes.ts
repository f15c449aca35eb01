import { hash } from 'node:crypto'
import { readOwnJson } from '@toolgate/values/json'
import type { Answering } from '../calls/sessions.ts'
import type { Owned, OwnerStore } from './replica-store.ts'
import type { Owner } from '../model/owner.ts'
import { unreachable } from './forward.ts'

/** The operations on a user's instances that their home needs. */
export interface HomeInstances {
  /** Ends the idle instances. */
  endIdle(): Promise<void>
  /** Ends all instances of an owner. */
  endOfOwner(key: string): Promise<void>
  /** Returns the keys of the owners that have instances. */
  readonly owners: ReadonlySet<string>
}

interface HomesDeps {
  /** The id of this replica's current process. */
  readonly self: string
  readonly owners: OwnerStore
  readonly instances: () => HomeInstances
  readonly onFault: (error: unknown) => void
  /** The maximum number of homes at one replica. Default 10,000. */
  readonly max?: number
}

interface Home {
  readonly owner: string
  /** The servers that have an instance of the user. */
  readonly servers: Set<string>
  /** The servers whose instance was lost with the former replica, until this is reported. */
  readonly lost: Set<string>
  /** The number of requests that are being answered. */
  uses: number
}

const MAX_HOMES = 10_000
/** The maximum number of oldest homes that are checked for one to hand over. */
const MAX_LOOKED_AT = 100
const KEY = 'home/'

/**
 * The homes of users: if servers keep data for a user, one replica has all of the user's instances. So a user never has
 * two instances of one server.
 */
export class Homes {
  readonly #deps: HomesDeps
  /** The homes at this replica, by key. The least recently used one comes first. */
  readonly #here = new Map<string, Home>()
  /** The homes that are being handed over. */
  readonly #freeing = new Map<string, Promise<void>>()

  constructor(deps: HomesDeps) {
    this.#deps = deps
  }

  /** Whether this replica is the home of a user. */
  has(owner: Owner): boolean {
    return this.#here.has(keyOf(owner))
  }

  /** Returns whether this replica is the home of a user. If so, it stays so until the response has ended. */
  enter(owner: Owner, response: Answering): boolean {
    const key = keyOf(owner)
    const home = this.#here.get(key)
    if (!home) return false
    this.#here.delete(key)
    this.#here.set(key, home)
    if (response.destroyed) return true
    home.uses++
    response.once('close', () => home.uses--)
    return true
  }

  /**
   * Returns the home of a user: this replica, if no live replica is the home. `undefined`: it is already known to be
   * this one.
   *
   * @throws {RpcFault} `owner_unreachable` if this replica is the home of too many users
   */
  find(owner: Owner): Promise<Owned> | undefined {
    return this.has(owner) ? undefined : this.#claim(owner)
  }

  /** Returns the other replica that is the home of a user. This replica does not become the home. */
  async look(owner: Owner): Promise<Owned | undefined> {
    const owned = this.has(owner) ? undefined : await this.#deps.owners.look(keyOf(owner))
    return owned?.owner === this.#deps.self ? undefined : owned
  }

  /** Whether this replica is the home of a user, or has just become it. */
  async isHere(owner: Owner): Promise<boolean> {
    const found = await this.find(owner)
    return found === undefined || found.owner === this.#deps.self
  }

  /** Returns whether a server has lost the instance of a user. It returns `true` only once. */
  takeLost(owner: Owner, server: string): boolean {
    return this.#here.get(keyOf(owner))?.lost.delete(server) === true
  }

  /** Records whether a server has an instance of a user. */
  note(owner: Owner, server: string, isOpen: boolean): void {
    const key = keyOf(owner)
    const home = this.#here.get(key)
    if (!home || home.servers.has(server) === isOpen) return
    if (isOpen) home.servers.add(server)
    else home.servers.delete(server)
    this.#deps.owners.put(key, this.#deps.self, contentOf(home)).catch(this.#deps.onFault)
  }

  /** Hands over the homes of users for whom nothing runs. Returns whether any are left. */
  async handOver(): Promise<boolean> {
    const { instances } = this.#deps
    await instances().endIdle()
    const busy = instances().owners
    await this.#free([...this.#here].flatMap(([key, home]) => (home.uses > 0 || busy.has(home.owner) ? [] : [key])))
    return this.#here.size > 0
  }

  /** Ends the instances of users whose home is now another replica. */
  async retain(keys: ReadonlySet<string>): Promise<void> {
    for (const [key, { owner }] of this.#here)
      if (!keys.has(key)) {
        this.#here.delete(key)
        await this.#deps.instances().endOfOwner(owner)
      }
  }

  async #claim(owner: Owner): Promise<Owned> {
    const { owners, self } = this.#deps
    const key = keyOf(owner)
    await this.#makeRoom()
    await this.#freeing.get(key)
    const owned = await owners.claim(key, self, '[]')
    if (owned.owner === self && !this.#here.has(key)) {
      const lost = new Set(owned.taken === 'lost' ? serversIn(owned) : [])
      this.#here.set(key, { owner: owner.key, servers: new Set(), lost, uses: 0 })
    }
    return owned
  }

  /** Hands over the least recently used home that keeps nothing for its user. */
  async #makeRoom(): Promise<void> {
    if (this.#here.size < (this.#deps.max ?? MAX_HOMES)) return
    let left = MAX_LOOKED_AT
    for (const [key, { uses, servers, lost }] of this.#here) {
      if (uses + servers.size + lost.size === 0) return this.#free([key])
      if (--left === 0) break
    }
    throw unreachable('This replica has the servers of too many users.')
  }

  /** Hands over homes. A request for one of them waits, so that it is not taken and handed over at once. */
  async #free(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    const { owners, self } = this.#deps
    for (const key of keys) this.#here.delete(key)
    const freed = owners.free(keys, self)
    const settled = freed.catch(() => undefined)
    for (const key of keys) this.#freeing.set(key, settled)
    await freed.finally(() => keys.forEach((key) => this.#freeing.delete(key)))
  }
}

function keyOf({ key }: Owner): string {
  return KEY + hash('sha256', key, 'base64url')
}

function contentOf({ servers }: Home): string {
  return JSON.stringify([...servers])
}

function serversIn({ content }: Owned): readonly string[] {
  const servers: unknown = readOwnJson(content)
  return Array.isArray(servers) ? servers.filter((server) => typeof server === 'string') : []
}
