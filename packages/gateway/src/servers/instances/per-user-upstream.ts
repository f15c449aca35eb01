import type { Caller } from '@toolgate/core'
import type { MissingConnection } from '@toolgate/core/groups'
import { createEmitter, type Emitter, endsWithin, toCancelling } from '@toolgate/values'
import type { NoPlace } from '@toolgate/core/call'
import { type Clock, systemClock } from '@toolgate/core/stores'
import type { McpResult } from '@toolgate/mcp'
import type { ServerConfig } from '../../config/config.ts'
import { abortedError } from '../transport/connection.ts'
import type { RequestCredential } from '../transport/credential.ts'
import { createUpstream, type UpstreamDeps } from '../lifecycle/create-upstream.ts'
import { makeFolders, mentionsOwner, toInstanceConfig } from '../../config/instance-config.ts'
import type { UserHomes } from '../../model/homes.ts'
import type { HeldInstance, InstanceInfo, Instances } from './instances.ts'
import { LISTING, type Owner, ownerOf } from '../../model/owner.ts'
import { Pauses } from './pauses.ts'
import {
  NO_ITEMS,
  type Upstream,
  type UpstreamCall,
  UpstreamError,
  type UpstreamItems,
  type UpstreamState,
  type UpstreamStatus,
} from '../../model/upstream.ts'
import { type UserList, UserLists } from './user-lists.ts'

interface PerUserDeps extends UpstreamDeps {
  /** The instances of all servers. */
  readonly instances: Instances
  /** An absolute path. Each instance has a folder below it. */
  readonly folder: string
  /** Finds the replica that has a user's instances. */
  readonly homes?: (() => Pick<UserHomes, 'find'> | undefined) | undefined
  /** The accounts that users have connected to the server, if it needs connections. */
  readonly connections?: ServerConnections | undefined
}

/** The users' own credentials of one server. */
export interface ServerConnections {
  /** Returns the credential of a user; `undefined` if they have not connected the server. */
  credentialOf(user: Pick<Caller, 'user' | 'tenant'>): RequestCredential | undefined
  /** Returns how a caller connects the server. */
  missingOf(caller: Caller): MissingConnection | undefined
}

/** How long a request waits for its caller's first list, without `waitForStart`. Tools that come later are announced. */
const LIST_WAIT_MS = 10_000

/**
 * One MCP server with an instance per user.
 *
 * Its list comes from a separate instance, which answers no calls. With `listing: user`, each user's list comes from
 * their own instance instead. A call runs in the instance of its caller, which starts at the first call. A remote
 * server without sessions has one shared connection, as there is nothing to separate.
 */
export class PerUserUpstream implements Upstream {
  readonly name: string
  readonly #config: ServerConfig
  readonly #deps: PerUserDeps
  /** The lists of users, if each user has their own. */
  readonly lists: UserLists | undefined
  /** The instance that lists. Absent if each user has their own list. */
  readonly #listing: Upstream | undefined
  readonly #clock: Clock
  readonly #changes: ReturnType<typeof createEmitter>
  readonly #ofInstances: Emitter<[UpstreamState]>
  /** Runs a call in the connection that all users share, or in the instance of its caller. */
  call: Upstream['call'] = (asked) => this.#within(asked)
  /** Whether calls run in the instances of their callers. */
  needsInstances = true
  #own: UpstreamState
  /** Whether each user needs an instance, whatever the server reports. */
  readonly #isAlwaysOwn: boolean
  readonly #pauses = new Pauses()
  /** The users whose lists wait to be read. */
  readonly #later = new Set<string>()
  #isClosed = false

  constructor(config: ServerConfig, deps: PerUserDeps) {
    this.name = config.name
    this.#config = config
    this.#deps = deps
    this.#isAlwaysOwn =
      config.command !== undefined ||
      deps.connections !== undefined ||
      Object.values(config.headers).some(mentionsOwner)
    const onFault = (error: unknown) =>
      deps.log({ level: 'error', server: config.name, message: 'a listener failed', detail: String(error) })
    this.#clock = deps.clock ?? systemClock
    this.#changes = createEmitter(onFault)
    this.#ofInstances = createEmitter<[UpstreamState]>(onFault)
    this.lists = config.listing === 'user' ? new UserLists(deps.instances.max, onFault) : undefined
    this.#listing = this.lists ? undefined : this.#open(LISTING, deps)
    this.#own = { status: 'starting', since: this.#clock.wallMs(), restarts: 0, rejected: [] }
    if (this.#listing && !this.#isAlwaysOwn) this.#share(this.#listing)
  }

  /** Lets all users share the connection of the listing instance, while the server keeps no session. */
  #share(listing: Upstream): void {
    const choose = () => {
      this.needsInstances = listing.state.hasSession === true
      this.call = this.needsInstances ? (asked) => this.#within(asked) : listing.call
    }
    choose()
    listing.subscribe(choose)
  }

  /**
   * The state of the listing instance. If each user has their own list, the server is ready as soon as it may start
   * instances.
   */
  get state(): UpstreamState {
    return this.#listing?.state ?? { ...this.#own, tasks: this.lists?.all.some(({ state }) => state.tasks) === true }
  }

  /** The items that all users share. */
  get items(): UpstreamItems {
    return this.#listing?.items ?? NO_ITEMS
  }

  get instances(): readonly InstanceInfo[] {
    return this.#deps.instances.rowsOf(this.name)
  }

  subscribe(listener: () => void): () => void {
    return (this.#listing ?? this.#changes).subscribe(listener)
  }

  /** Calls the listener with the state of a user's instance whenever it changes. */
  subscribeInstances(listener: (state: UpstreamState) => void): () => void {
    return this.#ofInstances.subscribe(listener)
  }

  start(): Promise<void> {
    if (this.#listing) return this.#listing.start()
    this.#setOwn('ready')
    return Promise.resolve()
  }

  /**
   * Waits for the caller's own list if it is not known yet, and starts their instance for it. With `isList`, the list
   * is also read again if their instance has ended. `undefined`: there is nothing to wait for.
   */
  prepare(caller: Caller, isList: boolean): Promise<unknown> | undefined {
    const owner = this.lists && ownerOf(caller)
    if (!owner || this.#isClosed) return undefined
    const isKnown = this.listOf(caller) !== undefined
    if (isKnown && !(isList && !this.#deps.instances.has(this.name, owner))) return undefined
    const held = this.#take(caller)
    if ('text' in held) {
      this.#prepareLater(caller, owner)
      return undefined
    }
    const { waitForStart, startTimeoutMs } = this.#config
    return endsWithin(held.started.finally(held.release), waitForStart ? startTimeoutMs : LIST_WAIT_MS)
  }

  /**
   * Reads the caller's list once their instance of an earlier configuration runs no calls, so that the list is
   * announced without another request. The request does not wait, since such a call may take long.
   */
  #prepareLater(caller: Caller, owner: Owner): void {
    const free = this.#deps.instances.replaceable(this.name, owner, this.#config)
    if (!free || this.#later.has(owner.key)) return
    this.#later.add(owner.key)
    void free.then(() => {
      this.#later.delete(owner.key)
      return this.prepare(caller, false)
    })
  }

  /** Returns the caller's own list, if it is known. */
  listOf(caller: Caller): UserList | undefined {
    const owner = ownerOf(caller)
    return owner && this.lists?.of(owner)
  }

  /**
   * Returns why the caller's list is not known, for people and for the caller. `undefined`: it is known, or nobody has
   * asked for it.
   */
  whyUnknown(caller: Caller): NoPlace | undefined {
    const owner = this.lists && ownerOf(caller)
    if (!owner || this.listOf(caller)) return undefined
    const missing = this.#deps.connections?.missingOf(caller)
    if (missing) return notConnected(missing, this.name)
    const full = this.#deps.instances.whyFull(this.name, owner, this.#config)
    if (full) return full
    const { state, reason = 'it does not answer' } = this.#deps.instances.stateOf(this.name, owner) ?? {}
    if (state === 'starting') return { text: 'its instance is still starting', message: 'it is still starting' }
    return state === 'down' ? { text: `its instance is down: ${reason}`, message: 'it does not start' } : undefined
  }

  /**
   * Reserves a place for one call in its caller's instance. `undefined`: the server needs none. If the instance also
   * has the caller's list, the place is available once it has started, as the list may have changed.
   */
  admit(caller: Caller) {
    if (!this.needsInstances) return undefined
    const owner = ownerOf(caller)
    // The first call of a user may not come from a client, but for example from the console.
    const home = owner && this.#deps.homes?.()?.find(owner)
    return home ? home.then(() => this.#admit(caller)) : this.#admit(caller)
  }

  #admit(caller: Caller) {
    const place = this.#take(caller)
    if (!this.lists || 'text' in place || place.upstream.state.status === 'ready') return place
    return place.started.then(() => place)
  }

  /** Watches a resource. The subscription keeps the caller's instance, as the server announces changes only there. */
  async watch(uri: string, caller: Caller, listener: () => void): Promise<() => void> {
    if (!this.needsInstances && this.#listing) return this.#listing.watch(uri, caller, listener)
    const held = this.#take(caller)
    if ('text' in held) throw this.#busy(held)
    try {
      await held.started
      const end = await held.upstream.watch(uri, caller, listener)
      return () => {
        end()
        held.release()
      }
    } catch (error) {
      held.release()
      throw error
    }
  }

  /** Ends the instance of a user, with its running calls. */
  endOf(user: Pick<Caller, 'user' | 'tenant'>): Promise<void> {
    const owner = ownerOf({ ...user })
    return owner ? this.#deps.instances.endOf(this.name, owner) : Promise.resolve()
  }

  /** Ends all instances. Each starts again for the next call of its user. */
  async restart(): Promise<void> {
    await Promise.all([this.#listing?.restart(), this.#deps.instances.closeAll(this.name, this.#config)])
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#pauses.close()
    if (!this.#listing) this.#setOwn('stopped')
    await Promise.all([this.#listing?.close(), this.#deps.instances.closeAll(this.name, this.#config)])
  }

  /** Runs one request in its caller's instance. A result that is not final keeps the instance in use. */
  async #within(asked: UpstreamCall): Promise<McpResult> {
    const { caller, signal } = asked
    const held = this.#take(caller)
    if ('text' in held) throw this.#busy(held)
    const untell = tellDownload(held.upstream, asked)
    try {
      await whileWanted(held.started, signal)
      return await this.#pauses.follow(
        held.owner,
        asked,
        () => held.again(),
        () => held.upstream.call(asked),
      )
    } finally {
      untell?.()
      held.release()
    }
  }

  #busy({ message }: NoPlace): UpstreamError {
    return new UpstreamError('upstream_down', `server "${this.name}" is busy: ${message}`)
  }

  #take(caller: Caller): HeldInstance | NoPlace {
    const owner = ownerOf(caller)
    if (this.#isClosed) return { text: `server "${this.name}" is stopped`, message: 'its server is stopped' }
    if (!owner) {
      const text = `server "${this.name}" has an instance for each user, and this caller has no user`
      return { text, message: 'its server is for callers with a user only' }
    }
    const { connections } = this.#deps
    const credential = connections?.credentialOf(caller)
    if (connections && !credential) return notConnected(connections.missingOf(caller), this.name)
    return this.#deps.instances.take(this.name, owner, () => this.#create(owner, credential), this.#config)
  }

  #create(owner: Owner, credential: RequestCredential | undefined): Upstream {
    const { log } = this.#deps
    const upstream = this.#open(owner, { ...this.#deps, credential, log: (line) => log({ ...line, user: owner.name }) })
    this.lists?.follow(owner, upstream)
    upstream.subscribe(() => this.#ofInstances.emit(upstream.state))
    return upstream
  }

  #setOwn(status: UpstreamStatus): void {
    this.#own = { ...this.#own, status, since: this.#clock.wallMs() }
    this.#changes.emit()
  }

  #open(owner: Pick<Owner, 'user' | 'tenant' | 'folder'>, deps: UpstreamDeps): Upstream {
    const { config, folders } = toInstanceConfig(this.#config, owner, this.#deps.folder)
    return createUpstream(config, { ...deps, prepare: () => makeFolders(folders) })
  }
}

/**
 * Returns the error for a missing connection. The decision usually refuses such a call first, but a connection may end
 * in between.
 */
function notConnected(missing: MissingConnection | undefined, server: string): NoPlace {
  const { text = `the server ${server} is not connected`, message = text } = missing ?? {}
  return { text, message }
}

/** Tells the client of a call, once, that the instance downloads packages for its start, as that may take minutes. */
function tellDownload(upstream: Upstream, { onProgress }: UpstreamCall): (() => void) | undefined {
  if (!onProgress || upstream.state.status === 'ready') return undefined
  let isTold = false
  const tell = () => {
    if (isTold || upstream.state.status !== 'starting' || upstream.state.reason === undefined) return
    isTold = true
    onProgress({
      progress: 0,
      message: `The server ${upstream.name} starts for the first time, and may download packages.`,
    })
  }
  tell()
  return upstream.subscribe(tell)
}

/** Waits for a start until the caller aborts. */
async function whileWanted(started: Promise<void>, signal: UpstreamCall['signal']): Promise<void> {
  const { promise: left, reject } = Promise.withResolvers<never>()
  left.catch(() => undefined)
  if (signal.aborted) throw abortedError(signal)
  const unwatch = toCancelling(signal).onAbort(() => reject(abortedError(signal)))
  try {
    await Promise.race([started, left])
  } finally {
    unwatch()
  }
}
