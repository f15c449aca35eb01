import { hash } from 'node:crypto'
import { readOwnJson } from '@toolgate/values/json'
import type { MaybePromise } from '@toolgate/core/internal'
import type { Answering } from '../calls/sessions.ts'
import type { Owned, OwnerStore } from './replica-store.ts'
import type { Owner } from '../model/owner.ts'
import { unreachable } from './forward.ts'

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
  /** Homes of one replica. Default 10,000. */
  readonly max?: number
}

interface Home {
  readonly owner: string
  /** The servers that have an instance for the user. */
  readonly servers: Set<string>
  /** Those whose instance was lost with the replica before, until that was said. */
  readonly lost: Set<string>
  /** Requests that are being answered. */
  uses: number
}

const MAX_HOMES = 10_000
/** How many of the oldest homes are looked at for one that can be given up. */
const MAX_LOOKED_AT = 100
const KEY = 'home/'

/**
 * The replica of each user whose servers keep something for them: it has all of their instances, so a user never has two of
 * one server.
 */
export class Homes {
  readonly #deps: HomesDeps
  /** The homes of this replica, by key. The one that was used longest ago is first. */
  readonly #here = new Map<string, Home>()
  /** Those that are being given up. */
  readonly #freeing = new Map<string, Promise<void>>()

  constructor(deps: HomesDeps) {
    this.#deps = deps
  }

  /** Whether this replica is the home of a user. */
  has(owner: Owner): boolean {
    return this.#here.has(keyOf(owner))
  }

  /** Returns whether this replica is the home of a user. It then stays so until the response has ended. */
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
   * Returns who is the home of a user: this replica, if nobody live is. `undefined`: it is known to be this one.
   *
   * @throws {RpcFault} `owner_unreachable` where this replica is the home of too many
   */
  find(owner: Owner): MaybePromise<Owned | undefined> {
    return this.has(owner) ? undefined : this.#claim(owner)
  }

  /** Returns which other replica is the home of a user. Nobody becomes it. */
  async look(owner: Owner): Promise<Owned | undefined> {
    const owned = this.has(owner) ? undefined : await this.#deps.owners.look(keyOf(owner))
    return owned?.owner === this.#deps.self ? undefined : owned
  }

  /** Whether this replica is the home of a user, or has become it. */
  async isHere(owner: Owner): Promise<boolean> {
    const found = await this.find(owner)
    return found === undefined || found.owner === this.#deps.self
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
    const { instances } = this.#deps
    await instances().endIdle()
    const busy = instances().owners
    await this.#free([...this.#here].flatMap(([key, home]) => (home.uses > 0 || busy.has(home.owner) ? [] : [key])))
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

  /** Gives up the home that was used longest ago, if nothing is kept there for its user. */
  async #makeRoom(): Promise<void> {
    if (this.#here.size < (this.#deps.max ?? MAX_HOMES)) return
    let left = MAX_LOOKED_AT
    for (const [key, { uses, servers, lost }] of this.#here) {
      if (uses + servers.size + lost.size === 0) return this.#free([key])
      if (--left === 0) break
    }
    throw unreachable('This replica has the servers of too many users.')
  }

  /** Whoever asks for a home that is being given up waits, so that it is not taken and given up at once. */
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
