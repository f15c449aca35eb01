import type { UserHomes } from '../../model/homes.ts'
import type { NoPlace, Place } from '@toolgate/core/call'
import type { Owner } from '../../model/owner.ts'
import type { Upstream } from '../../model/upstream.ts'

/** The limits on the instances of all servers together. */
export interface InstanceLimits {
  /** An instance that runs no call for this long is ended. */
  readonly idleMs: number
  /** The maximum number of instances of one user, over all servers. */
  readonly perUser: number
  /** The maximum number of instances of all users. */
  readonly max: number
}

export const DEFAULT_INSTANCES: InstanceLimits = { idleMs: 15 * 60_000, perUser: 8, max: 32 }

export const INSTANCE_STATES = ['starting', 'running', 'idle', 'down'] as const
type InstanceState = (typeof INSTANCE_STATES)[number]

export interface InstanceInfo {
  readonly user: string
  readonly tenant: string | undefined
  readonly state: InstanceState
}

/** Returns how many instances are in each state. */
export function countStates(rows: readonly Pick<InstanceInfo, 'state'>[]): Readonly<Record<InstanceState, number>> {
  const counts = { starting: 0, running: 0, idle: 0, down: 0 }
  for (const { state } of rows) counts[state]++
  return counts
}

/** An instance in use. It is not ended until it is released. */
export interface HeldInstance extends Place {
  readonly upstream: Upstream
  /** Resolves when the first start has succeeded or failed. */
  readonly started: Promise<void>
  /** The key of its owner. */
  readonly owner: string
  /** Adds another hold, and returns the function that releases it. */
  again(): () => void
}

/** The instances of all servers with one instance per user, within the limits. */
export class Instances {
  readonly #limits: InstanceLimits
  readonly #homes: () => UserHomes | undefined
  /** The least recently used instance comes first. */
  readonly #open = new Map<string, Instance>()
  readonly #closing = new Map<string, Promise<void>>()

  constructor(limits: InstanceLimits, homes: () => UserHomes | undefined = () => undefined) {
    this.#limits = limits
    this.#homes = homes
  }

  /**
   * Returns the owner's instance of a server, and starts one if there is none. If a limit is reached, an idle instance
   * is ended to make room. Without an idle one, the result states why there is no room.
   *
   * `of`: the server's current configuration. An idle instance of another configuration is replaced.
   */
  take(server: string, owner: Owner, create: () => Upstream, of?: object): HeldInstance | NoPlace {
    const key = `${server} ${owner.key}`
    const homes = this.#homes()
    if (homes?.has(owner) === false) return isElsewhere(server)
    if (homes?.takeLost(owner, server)) return isLost(server)
    let instance = this.#open.get(key)
    if (instance && instance.of !== of) {
      if (instance.isBusy) return justChanged(server)
      void this.#end(key, instance)
      instance = undefined
    }
    if (!instance) {
      const room = this.#makeRoom(server, owner)
      if ('text' in room) return room
      // An instance starts only after the instance that it replaces has ended, since a folder or profile is for one
      // process.
      const before = Promise.all([room.ended, this.#closing.get(key)])
      instance = new Instance(server, owner, create(), before, of)
      this.#open.set(key, instance)
      homes?.note(owner, server, true)
    }
    return this.#hold(key, instance)
  }

  /** Resolves when the owner's instance of another configuration no longer runs a call. */
  replaceable(server: string, owner: Owner, of: object): Promise<void> | undefined {
    const instance = this.#open.get(`${server} ${owner.key}`)
    return instance && instance.of !== of ? instance.idle() : undefined
  }

  /** Whether the owner has an instance of a server, even if it is still starting. */
  has(server: string, owner: Owner): boolean {
    return this.#open.has(`${server} ${owner.key}`)
  }

  /** Returns the state of an owner's instance, with the reason if it is down. */
  stateOf(server: string, owner: Owner): { readonly state: InstanceState; readonly reason?: string } | undefined {
    const instance = this.#open.get(`${server} ${owner.key}`)
    const reason = instance?.upstream.state.reason
    return instance && { state: instance.row.state, ...(reason === undefined ? {} : { reason }) }
  }

  /** The maximum number of instances of all users. */
  get max(): number {
    return this.#limits.max
  }

  rowsOf(server: string): readonly InstanceInfo[] {
    return [...this.#open.values()].flatMap((instance) => (instance.server === server ? [instance.row] : []))
  }

  /** Ends an owner's instance of a server, with its running calls. */
  async endOf(server: string, owner: Owner): Promise<void> {
    const key = `${server} ${owner.key}`
    const instance = this.#open.get(key)
    if (instance) await this.#end(key, instance)
  }

  /** Ends all instances of a server's configuration. */
  async closeAll(server: string, of?: object): Promise<void> {
    for (const [key, instance] of this.#open)
      if (instance.server === server && instance.of === of) void this.#end(key, instance)
    await Promise.all([...this.#closing].flatMap(([key, ended]) => (key.startsWith(`${server} `) ? [ended] : [])))
  }

  /** The keys of the owners that have instances. */
  get owners(): ReadonlySet<string> {
    return new Set([...this.#open.values()].map(({ owner }) => owner.key))
  }

  /** Ends the idle instances. */
  async endIdle(): Promise<void> {
    for (const [key, instance] of this.#open) if (!instance.isBusy) void this.#end(key, instance)
    await Promise.all(this.#closing.values())
  }

  /** Ends all instances of an owner, with their running calls. */
  async endOfOwner(owner: string): Promise<void> {
    const own = [...this.#open].filter(([, instance]) => instance.owner.key === owner)
    await Promise.all(own.map(([key, instance]) => this.#end(key, instance)))
  }

  #hold(key: string, instance: Instance): HeldInstance {
    instance.enter()
    let isHeld = true
    return {
      upstream: instance.upstream,
      started: instance.started,
      owner: instance.owner.key,
      again: () => this.#hold(key, instance).release,
      release: () => {
        if (!isHeld) return
        isHeld = false
        instance.leave()
        if (instance.isBusy || this.#open.get(key) !== instance) return
        this.#open.delete(key)
        this.#open.set(key, instance)
        instance.endAfter(this.#limits.idleMs, () => void this.#end(key, instance))
      },
    }
  }

  /** Returns why the owner cannot get an instance of a server now. `undefined`: they have one, or can get one. */
  whyFull(server: string, owner: Owner, of?: object): NoPlace | undefined {
    const open = this.#open.get(`${server} ${owner.key}`)
    if (open?.isBusy && open.of !== of) return justChanged(server)
    const { among, isFull, whose, bound } = this.#boundOf(owner)
    if (this.has(server, owner) || !isFull || among.some(([, instance]) => !instance.isBusy)) return undefined
    return {
      text: `server "${server}" has no instance for this user, and all ${bound} instances of ${whose} are in use`,
      message:
        whose === 'this user'
          ? `all ${bound} instances that you may have are in use`
          : 'all instances of its servers are in use',
    }
  }

  #makeRoom(server: string, owner: Owner): { readonly ended: Promise<void> | undefined } | NoPlace {
    const full = this.whyFull(server, owner)
    if (full) return full
    const { among, isFull } = this.#boundOf(owner)
    const idle = isFull ? among.find(([, instance]) => !instance.isBusy) : undefined
    return { ended: idle && this.#end(...idle) }
  }

  /** Returns the limit that another instance of an owner would exceed, with the instances that it counts. */
  #boundOf(owner: Owner) {
    const { perUser, max } = this.#limits
    const all = [...this.#open]
    const own = all.filter(([, instance]) => instance.owner.key === owner.key)
    const isOwn = own.length >= perUser
    const [among, bound] = isOwn ? [own, perUser] : [all, max]
    return { among, bound, isFull: among.length >= bound, whose: isOwn ? 'this user' : 'all users' } as const
  }

  #end(key: string, instance: Instance): Promise<void> {
    if (this.#open.get(key) === instance) this.#open.delete(key)
    if (!this.#open.has(key)) this.#homes()?.note(instance.owner, instance.server, false)
    const ended = Promise.all([this.#closing.get(key), instance.close()]).then(() => {
      if (this.#closing.get(key) === ended) this.#closing.delete(key)
    })
    this.#closing.set(key, ended)
    return ended
  }
}

function isElsewhere(server: string): NoPlace {
  return {
    text: `the instances of this user are at another replica than this one, which was asked for server "${server}"`,
    message: 'its server runs for you at another replica; try again in a moment',
  }
}

function isLost(server: string): NoPlace {
  return {
    text: `instance_lost: server "${server}" ran for this user at a replica that is gone`,
    message: 'instance_lost: its server has lost what it kept for you; the next call begins anew',
  }
}

function justChanged(server: string): NoPlace {
  return {
    text: `server "${server}" has just changed, and still runs a call as it was`,
    message: 'its server has just changed, and still runs a call as it was; try again in a moment',
  }
}

/** One process or session of a server, for one owner. */
class Instance {
  readonly server: string
  readonly owner: Owner
  readonly upstream: Upstream
  readonly started: Promise<void>
  readonly of: object | undefined
  readonly #freed: (() => void)[] = []
  #calls = 0
  #isClosed = false
  #idle: NodeJS.Timeout | undefined

  constructor(server: string, owner: Owner, upstream: Upstream, before: Promise<unknown>, of: object | undefined) {
    this.of = of
    this.server = server
    this.owner = owner
    this.upstream = upstream
    this.started = before.then(() => (this.#isClosed ? undefined : upstream.start()))
  }

  get isBusy(): boolean {
    return this.#calls > 0
  }

  get row(): InstanceInfo {
    const { name, ofTenant } = this.owner
    return { user: name, tenant: ofTenant, state: this.#state }
  }

  get #state(): InstanceState {
    const { status } = this.upstream.state
    if (status !== 'ready') return status === 'starting' ? 'starting' : 'down'
    return this.isBusy ? 'running' : 'idle'
  }

  enter(): void {
    this.#calls++
    clearTimeout(this.#idle)
  }

  leave(): void {
    this.#calls--
    if (!this.isBusy) this.#free()
  }

  /** Resolves when no call runs or the instance is closed. */
  idle(): Promise<void> {
    if (!this.isBusy || this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => this.#freed.push(resolve))
  }

  #free(): void {
    for (const resolve of this.#freed.splice(0)) resolve()
  }

  endAfter(ms: number, end: () => void): void {
    this.#idle = setTimeout(end, ms).unref()
  }

  close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    this.#free()
    return this.upstream.close()
  }
}
