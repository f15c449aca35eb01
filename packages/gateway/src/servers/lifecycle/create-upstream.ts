import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '@toolgate/core'
import { backoffMs, type BackoffOptions, createEmitter } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import { redactor, type Redactor } from '@toolgate/values/redact'
import { type Clock, systemClock } from '@toolgate/core/stores'
import type { McpResult } from '@toolgate/mcp'
import type { ServerConfig } from '../../config/config.ts'
import { nextTurn } from '../../util/next-turn.ts'
import { TASKS_EXTENSION } from '../asks/upstream-tasks.ts'
import type { FindTracing } from '../../telemetry/tracing.ts'
import type { ConnectionHooks, Handshake, LogLevel } from '../transport/connection.ts'
import type { RequestCredential } from '../transport/credential.ts'
import { openServer, type OpenServer } from '../transport/open.ts'
import type { FirstStarts } from './first-starts.ts'
import { ITEM_KINDS, LIST_NAMES } from './item-kinds.ts'
import type { Reaper } from '../../util/reaper.ts'
import { createRefresher } from './refresher.ts'
import { ResourceWatches } from './resource-watches.ts'
import { ServerCaller } from '../transport/server-call.ts'
import { ServerLogLevel } from './server-log-level.ts'
import type { UpstreamLogLine } from '../transport/server-logs.ts'
import { fetchLists, type ReadLists, ServerLists, ttlOf } from './server-lists.ts'
import {
  type Offer,
  OFFERS,
  type RejectedItem,
  type Upstream,
  type UpstreamCall,
  UpstreamError,
  type UpstreamItems,
  type UpstreamState,
} from '../../model/upstream.ts'

export interface UpstreamDeps {
  readonly reaper: Reaper
  readonly log: (line: UpstreamLogLine) => void
  readonly clock?: Clock
  /** Redacts the displayed reasons. Default: the built-in rules. */
  readonly redact?: Redactor
  readonly backoff?: RestartOptions
  /** Runs before each start. If it throws, the start fails with this reason. */
  readonly prepare?: (() => Promise<void>) | undefined
  /** The credential of HTTP requests, if it may change. */
  readonly credential?: RequestCredential | undefined
  /** Returns the tracing of calls, if it is enabled. */
  readonly tracing?: FindTracing | undefined
  /** The starts that download packages. Default: each start has the time limit of the configuration. */
  readonly firstStarts?: FirstStarts | undefined
  /** Throws if no call may be sent now. */
  readonly checkStart?: (() => void) | undefined
}

const MAX_LOGGED_REJECTIONS = 20
/** Begins the reason of a server that starts for the first time. The packages follow. */
const DOWNLOADS = 'it downloads, unless they are in a cache: '

/**
 * Returns one MCP server, which is kept running from `start` to `close`.
 *
 * It is started with a command, reached at a URL, or both. After a failure the server is down with a reason, and is
 * restarted with increasing delays. Other servers are not affected.
 */
export function createUpstream(config: ServerConfig, deps: UpstreamDeps): Upstream {
  return new SupervisedUpstream(config, deps)
}

class SupervisedUpstream implements Upstream {
  readonly name: string
  readonly #config: ServerConfig
  readonly #deps: UpstreamDeps
  readonly #clock: Clock
  readonly #caller: ServerCaller
  readonly #backoff: ReturnType<typeof createBackoff>
  readonly #changes = createEmitter((error) => this.#log('error', 'a listener failed', String(error)))
  readonly #stopping = new AbortController()
  readonly #firstStart = Promise.withResolvers<void>()
  state: UpstreamState
  readonly #lists = new ServerLists()
  readonly #watches: ResourceWatches
  /** The running server, once its lists were read. */
  #current: OpenServer | undefined
  /** The log level of the running server. */
  #logLevel: ServerLogLevel | undefined
  /** The rejected items that are logged. */
  #logged: ReadonlySet<string> = new Set()
  #living: Promise<void> | undefined
  #endRun: (() => void) | undefined
  /** Ends the pause before the next start. */
  #endPause: (() => void) | undefined

  constructor(config: ServerConfig, deps: UpstreamDeps) {
    this.name = config.name
    this.#config = config
    this.#deps = deps
    this.#clock = deps.clock ?? systemClock
    this.#caller = new ServerCaller(config, deps)
    this.#watches = new ResourceWatches(config.name, config.callTimeoutMs)
    this.#backoff = createBackoff(deps.backoff)
    this.state = { status: 'starting', since: this.#clock.wallMs(), restarts: 0, rejected: [] }
  }

  get items(): UpstreamItems {
    return this.#lists.items
  }

  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener)
  }

  start(): Promise<void> {
    this.#living ??= this.#live()
    return this.#firstStart.promise
  }

  readonly call = (asked: UpstreamCall): Promise<McpResult> => {
    const server = this.#current
    if (!server) return Promise.reject(new UpstreamError('upstream_down', `server "${this.name}" is not running`))
    const { name } = asked.params
    const isTool = asked.method === 'tools/call' && typeof name === 'string'
    const isModern = server.connection.era === 'modern'
    const headers = isTool && isModern ? this.#lists.paramHeaders.get(name) : undefined
    const onHeaderMismatch = () => void this.#refresh(server, ['tools'])
    const target = { connection: server.connection, headers, onHeaderMismatch }
    const level = asked.logLevel === undefined ? undefined : this.#logLevel
    return level ? level.during(asked, () => this.#caller.call(target, asked)) : this.#caller.call(target, asked)
  }

  watch(uri: string, _caller: Caller, listener: () => void): Promise<() => void> {
    return this.#watches.add(uri, listener)
  }

  restart(): Promise<void> {
    if (this.#isStopping || !this.#living) return Promise.resolve()
    const { reason: _before, ...rest } = this.state
    this.#log('warn', 'is restarted by a person')
    this.#setState({ ...rest, status: 'starting', since: this.#clock.wallMs() })
    this.#backoff.reset()
    this.#endRun?.()
    this.#endPause?.()
    return Promise.resolve()
  }

  async close(): Promise<void> {
    if (!this.#isStopping) {
      this.#stopping.abort()
      this.#endRun?.()
      const { reason: _before, ...rest } = this.state
      this.#setState({ ...rest, status: 'stopped', since: this.#clock.wallMs() })
      this.#firstStart.resolve()
    }
    await this.#living
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Starts the server repeatedly until it is closed. */
  async #live(): Promise<void> {
    const { signal } = this.#stopping
    while (!this.#isStopping) {
      const ended = await this.#liveOnce()
      this.#firstStart.resolve()
      const pause = new AbortController()
      this.#endPause = () => pause.abort()
      const either = { signal: AbortSignal.any([signal, pause.signal]) }
      await Promise.all([ended?.close(), sleep(this.#backoff.nextDelayMs(), undefined, either).catch(ignore)])
      if (!this.#isStopping) this.#setState({ ...this.state, restarts: this.state.restarts + 1 })
    }
  }

  /** Runs the server once, to its end. The caller must close the returned server. */
  async #liveOnce(): Promise<OpenServer | undefined> {
    const lost = Promise.withResolvers<void>()
    lost.promise.catch(ignore)
    this.#endRun = lost.resolve
    const { offers } = this.#config
    const refreshers = new Map(offers.map((offer) => [offer, createRefresher(() => this.#refresh(server, [offer]))]))
    const hooks: ConnectionHooks = {
      offers,
      onListChanged: (offer) => refreshers.get(offer)?.request(),
      onResourceUpdated: (uri) => this.#watches.updated(uri),
      onRenewed: (handshake) => this.#onRenewed(handshake),
      onLost: lost.reject,
      log: (level, message, detail) => this.#log(level, message, detail),
    }
    let server: OpenServer | undefined
    let readyMs: number | undefined
    try {
      await this.#deps.prepare?.()
      server = await this.#open(hooks)
      const read = await Promise.race([this.#read(server, offers), lost.promise])
      if (!read || this.#isStopping) return server
      this.#current = server
      this.#logLevel = new ServerLogLevel(server.connection)
      this.#watches.connected(server.connection)
      readyMs = this.#clock.monotonicMs()
      await Promise.race([this.#show(server, read), lost.promise])
      if (this.#isStopping) return server
      this.#setReady(server, read)
      this.#firstStart.resolve()
      for (const refresher of refreshers.values()) refresher.requestAfterTtl(ttlOf(read))
      await lost.promise
    } catch (error) {
      if (!this.#isStopping) this.#setDown(UpstreamError.from(error), server)
    } finally {
      this.#current = undefined
      this.#logLevel = undefined
      this.#watches.lost()
      for (const refresher of refreshers.values()) refresher.close()
      if (readyMs !== undefined) this.#backoff.ranFor(this.#clock.monotonicMs() - readyMs)
    }
    return server
  }

  /** Opens the server. A start that downloads packages has more time, and says what it waits for. */
  #open(hooks: ConnectionHooks): Promise<OpenServer> {
    const { reaper, credential, firstStarts } = this.#deps
    const { signal } = this.#stopping
    const open = (extraMs: number) => {
      const startTimeoutMs = this.#config.startTimeoutMs + extraMs
      return openServer({ ...this.#config, startTimeoutMs }, { hooks, reaper, signal, credential })
    }
    const fetching = firstStarts?.of(this.#config)
    if (!fetching) return open(0)
    if (fetching.isFirst) {
      const reason = `${DOWNLOADS}${fetching.packages.join(', ')}`
      if (this.state.status === 'starting') this.#setState({ ...this.state, reason })
      this.#log('info', `starts for the first time: ${reason}`)
    }
    return fetching.run(signal, open)
  }

  /** Updates the state after a new handshake, which may be with another version of the server. */
  #onRenewed({ serverInfo, hasSession }: Handshake): void {
    this.#logLevel?.renewed()
    if (this.#current) this.#watches.connected(this.#current.connection)
    if (this.#current)
      this.#setState({ ...this.state, ...(serverInfo ? { serverInfo } : {}), ...(hasSession ? { hasSession } : {}) })
  }

  #read({ connection }: OpenServer, offers: readonly Offer[]): Promise<ReadLists> {
    return fetchLists(connection, offers, {
      timeoutMs: this.#config.startTimeoutMs,
      signal: this.#stopping.signal,
    })
  }

  /** Reads lists again. If reading fails, the current ones stay. */
  async #refresh(server: OpenServer | undefined, offers: readonly Offer[]): Promise<number | undefined> {
    if (!server || server !== this.#current) return undefined
    try {
      const read = await this.#read(server, offers)
      if (server !== this.#current) return undefined
      await this.#show(server, read)
      if (server !== this.#current) return undefined
      this.#setLists(read)
      return ttlOf(read)
    } catch (error) {
      if (server === this.#current)
        this.#log('warn', `its ${offers.join(', ')} could not be read again`, UpstreamError.from(error).message)
      return 0
    }
  }

  /** Shows new items in slices, one slice in each turn of the event loop. The caller runs the last step. */
  async #show(server: OpenServer, read: ReadLists): Promise<void> {
    for (const step of this.#lists.stepsTo(read)) {
      step()
      this.#setState({ ...this.state })
      await nextTurn()
      if (server !== this.#current) return
    }
  }

  #setReady({ connection }: OpenServer, read: ReadLists): void {
    const { era, protocolVersion, serverInfo, instructions, hasSession } = connection
    // An equal list stays the same object, so that a restart does not count as a change of the tools.
    this.#lists.set(read)
    this.#setState({
      status: 'ready',
      since: this.#clock.wallMs(),
      restarts: this.state.restarts,
      era,
      protocolVersion,
      ...(serverInfo ? { serverInfo } : {}),
      has: OFFERS.filter((offer) => isObject(connection.capabilities[offer])),
      ...(instructions === undefined ? {} : { instructions }),
      tasks: hasTasks(connection),
      ...(hasSession ? { hasSession } : {}),
      rejected: this.#lists.rejected,
    })
    this.#log('info', `is ready: MCP ${protocolVersion}, ${countsOf(this.items, this.#config.offers)}`)
    this.#logRejected()
  }

  #setLists(read: ReadLists): void {
    const changed = this.#lists.set(read)
    for (const [name, error] of read.failed)
      this.#log('warn', `its ${ITEM_KINDS[name].many} could not be read again`, error.message)
    if (changed.length === 0) return
    this.#setState({ ...this.state, rejected: this.#lists.rejected })
    const counts = changed.map((name) => `${this.items[name].length} ${ITEM_KINDS[name].many}`)
    this.#log('info', `has changed its list: ${counts.join(', ')}`)
    this.#logRejected()
  }

  /** Logs each rejected item once, also if it is listed again or the server restarts. */
  #logRejected(): void {
    const fresh = this.#lists.rejected.filter((item) => !this.#logged.has(keyOf(item)))
    for (const item of fresh.slice(0, MAX_LOGGED_REJECTIONS))
      this.#log('warn', `its ${item.kind} "${item.name}" cannot be offered`, item.reason)
    const more = fresh.length - MAX_LOGGED_REJECTIONS
    if (more > 0) this.#log('warn', `${more} more of its items cannot be offered; GET /api/servers lists them`)
    this.#logged = new Set(this.#lists.rejected.map(keyOf))
  }

  #setDown(error: UpstreamError, server: OpenServer | undefined): void {
    const reason = (this.#deps.redact ?? redactor).redactText(error.message)
    const before = this.state
    const since = before.status === 'down' && before.reason === reason ? before.since : this.#clock.wallMs()
    this.#setState({ ...before, status: 'down', reason, since })
    this.#log(since === before.since ? 'debug' : 'warn', `is down: ${reason}`, server?.stderrTail())
  }

  #setState(next: UpstreamState): void {
    this.state = next
    this.#changes.emit()
  }

  #log(level: LogLevel, message: string, detail?: string): void {
    this.#deps.log({ level, server: this.name, message, ...(detail ? { detail } : {}) })
  }
}

function keyOf({ kind, name, reason }: RejectedItem): string {
  return JSON.stringify([kind, name, reason])
}

function countsOf(items: UpstreamItems, offers: readonly Offer[]): string {
  return LIST_NAMES.filter((name) => offers.includes(ITEM_KINDS[name].offer))
    .map((name) => `${items[name].length} ${ITEM_KINDS[name].many}`)
    .join(', ')
}

/** Whether a server runs tool calls as tasks: a capability before 2026-07-28, an extension since. */
function hasTasks({ era, capabilities: { tasks, extensions } }: Handshake): boolean {
  if (era === 'modern') return isObject(extensions) && isObject(extensions[TASKS_EXTENSION])
  const requests = isObject(tasks) ? tasks['requests'] : undefined
  const tools = isObject(requests) ? requests['tools'] : undefined
  return isObject(tools) && isObject(tools['call'])
}

function ignore(): undefined {
  return undefined
}

interface RestartOptions extends BackoffOptions {
  /** A server that was ready for this long starts again with the shortest delay. Default 60,000 ms. */
  readonly resetMs?: number
}

/** Returns the delays between the starts of a server. */
export function createBackoff({ resetMs = 60_000, ...options }: RestartOptions = {}) {
  let failures = 0
  return {
    nextDelayMs: () => backoffMs(++failures, { firstMs: 250, maxMs: 30_000, ...options }),
    reset() {
      failures = 0
    },
    ranFor(ms: number) {
      if (ms >= resetMs) failures = 0
    },
  }
}
