import type { Caller } from '@toolgate/core'
import { type NoPlace, type Place, toCancelling } from '@toolgate/core/internal'
import type { McpResult } from '@toolgate/mcp'
import type { ServerConfig } from '../config/config.ts'
import { abortedError } from './connection.ts'
import { createUpstream, type UpstreamDeps } from './create-upstream.ts'
import { makeFolders, mentionsOwner, toInstanceConfig } from './instance-config.ts'
import type { HeldInstance, InstanceRow, Instances } from './instances.ts'
import { LISTING, type Owner, ownerOf } from './owner.ts'
import { Pauses } from './pauses.ts'
import { type Upstream, type UpstreamCall, UpstreamError, type UpstreamItems, type UpstreamState } from './upstream.ts'

export interface PerUserDeps extends UpstreamDeps {
  /** Shared by all servers. */
  readonly instances: Instances
  /** Absolute. Each instance has a folder below it. */
  readonly folder: string
}

/**
 * One MCP server with an instance for each user.
 *
 * Its list comes from an instance of its own, which answers no calls. A call runs in the instance of its caller, which
 * starts at the first call. A remote server that keeps no sessions has one connection: there is nothing to separate.
 */
export class PerUserUpstream implements Upstream {
  readonly name: string
  readonly #config: ServerConfig
  readonly #deps: PerUserDeps
  readonly #listing: Upstream
  /** Whether each user needs an instance, whatever the server says. */
  readonly #isAlwaysOwn: boolean
  readonly #pauses = new Pauses()
  #isClosed = false

  constructor(config: ServerConfig, deps: PerUserDeps) {
    this.name = config.name
    this.#config = config
    this.#deps = deps
    this.#isAlwaysOwn = config.command !== undefined || Object.values(config.headers).some(mentionsOwner)
    this.#listing = this.#open(LISTING, deps)
  }

  get state(): UpstreamState {
    return this.#listing.state
  }

  get items(): UpstreamItems {
    return this.#listing.items
  }

  get instances(): readonly InstanceRow[] {
    return this.#deps.instances.rowsOf(this.name)
  }

  /** Whether calls run in instances of their callers. */
  get needsInstances(): boolean {
    return this.#isAlwaysOwn || this.#listing.state.hasSession === true
  }

  subscribe(listener: () => void): () => void {
    return this.#listing.subscribe(listener)
  }

  start(): Promise<void> {
    return this.#listing.start()
  }

  /** Takes the place of one call in its caller's instance. `undefined`: the server needs none. */
  admit(caller: Caller): Place | NoPlace | undefined {
    return this.needsInstances ? this.#take(caller) : undefined
  }

  async call(asked: UpstreamCall): Promise<McpResult> {
    return this.needsInstances ? this.#within(asked) : this.#listing.call(asked)
  }

  /** A subscription keeps the place of its caller: the server announces changes to the instance that asked. */
  async watch(uri: string, caller: Caller, listener: () => void): Promise<() => void> {
    if (!this.needsInstances) return this.#listing.watch(uri, caller, listener)
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

  async close(): Promise<void> {
    this.#isClosed = true
    this.#pauses.close()
    await Promise.all([this.#listing.close(), this.#deps.instances.closeAll(this.name)])
  }

  /** Runs one request in its caller's instance. What goes on after its result keeps the instance in use. */
  async #within(asked: UpstreamCall): Promise<McpResult> {
    const { caller, signal } = asked
    const held = this.#take(caller)
    if ('text' in held) throw this.#busy(held)
    try {
      await whileWanted(held.started, signal)
      return await this.#pauses.follow(
        held.owner,
        asked,
        () => held.again(),
        () => held.upstream.call(asked),
      )
    } finally {
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
    return this.#deps.instances.take(this.name, owner, () => this.#create(owner))
  }

  #create(owner: Owner): Upstream {
    const { log } = this.#deps
    return this.#open(owner, { ...this.#deps, log: (line) => log({ ...line, user: owner.name }) })
  }

  #open(owner: Pick<Owner, 'user' | 'tenant' | 'folder'>, deps: UpstreamDeps): Upstream {
    const { config, folders } = toInstanceConfig(this.#config, owner, this.#deps.folder)
    return createUpstream(config, { ...deps, prepare: () => makeFolders(folders) })
  }
}

/** Waits for a start for as long as the caller does. */
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
