import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs, type BackoffOptions, createEmitter } from '@toolgate/core/internal'
import { redactor, type Redactor } from '@toolgate/core/redact'
import { type Clock, systemClock } from '@toolgate/core/stores'
import type { McpResult } from '@toolgate/mcp'
import type { ServerConfig } from '../config/config.ts'
import { nextTurn } from '../next-turn.ts'
import type { FindTracing } from '../telemetry/tracing.ts'
import type { ConnectionHooks, Handshake, LogLevel } from './connection.ts'
import { openServer, type OpenServer } from './open.ts'
import type { Reaper } from './reaper.ts'
import { createRefresher } from './refresher.ts'
import { ToolCaller } from './tool-call.ts'
import { fetchTools, slicesOf, type ToolList } from './tool-list.ts'
import { type McpTool, type Upstream, type UpstreamCall, UpstreamError, type UpstreamState } from './upstream.ts'

export interface UpstreamLogLine {
  readonly level: LogLevel
  readonly server: string
  readonly message: string
  readonly detail?: string
}

export interface UpstreamDeps {
  readonly reaper: Reaper
  readonly log: (line: UpstreamLogLine) => void
  readonly clock?: Clock
  /** Redacts the reasons that are shown. Default: the built-in tables. */
  readonly redact?: Redactor
  readonly backoff?: RestartOptions
  /** Finds the tracing of calls, if any. */
  readonly tracing?: FindTracing | undefined
}

const MAX_LOGGED_REJECTIONS = 20

/**
 * Returns one MCP server, kept alive from `start` to `close`.
 *
 * It is started with a command, reached at a URL, or started and then reached at its URL. After a failure it is down
 * with a reason, and is started again with growing delays. Other servers are not affected.
 */
export function createUpstream(config: ServerConfig, deps: UpstreamDeps): Upstream {
  return new SupervisedUpstream(config, deps)
}

type ShownTools = Pick<ToolList, 'texts' | 'tools' | 'text' | 'paramHeaders'>

class SupervisedUpstream implements Upstream {
  readonly name: string
  readonly #config: ServerConfig
  readonly #deps: UpstreamDeps
  readonly #clock: Clock
  readonly #caller: ToolCaller
  readonly #backoff: ReturnType<typeof createBackoff>
  readonly #changes = createEmitter((error) => this.#log('error', 'a listener failed', String(error)))
  readonly #stopping = new AbortController()
  readonly #firstStart = Promise.withResolvers<void>()
  #state: UpstreamState
  #list: ShownTools = { tools: [], text: '', texts: new Map(), paramHeaders: new Map() }
  /** The running server, once its tools were read. */
  #current: OpenServer | undefined
  #living: Promise<void> | undefined
  #endRun: (() => void) | undefined

  constructor(config: ServerConfig, deps: UpstreamDeps) {
    this.name = config.name
    this.#config = config
    this.#deps = deps
    this.#clock = deps.clock ?? systemClock
    this.#caller = new ToolCaller(config, deps.tracing)
    this.#backoff = createBackoff(deps.backoff)
    this.#state = { status: 'starting', since: this.#clock.wallMs(), restarts: 0, rejected: [] }
  }

  get state(): UpstreamState {
    return this.#state
  }

  get tools(): readonly McpTool[] {
    return this.#list.tools
  }

  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener)
  }

  start(): Promise<void> {
    this.#living ??= this.#live()
    return this.#firstStart.promise
  }

  call(asked: UpstreamCall): Promise<McpResult> {
    const server = this.#current
    if (!server) return Promise.reject(new UpstreamError('upstream_down', `server "${this.name}" is not running`))
    const headers = this.#list.paramHeaders.get(asked.tool)
    const onHeaderMismatch = () => void this.#refresh(server)
    return this.#caller.call({ connection: server.connection, headers, onHeaderMismatch }, asked)
  }

  async close(): Promise<void> {
    if (!this.#isStopping) {
      this.#stopping.abort()
      this.#endRun?.()
      const { reason: _before, ...rest } = this.#state
      this.#setState({ ...rest, status: 'stopped', since: this.#clock.wallMs() })
      this.#firstStart.resolve()
    }
    await this.#living
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Starts the server again and again until it is closed. */
  async #live(): Promise<void> {
    const { signal } = this.#stopping
    while (!this.#isStopping) {
      const ended = await this.#liveOnce()
      this.#firstStart.resolve()
      await Promise.all([ended?.close(), sleep(this.#backoff.nextDelayMs(), undefined, { signal }).catch(ignore)])
      if (!this.#isStopping) this.#setState({ ...this.#state, restarts: this.#state.restarts + 1 })
    }
  }

  /** Runs the server once, to its end. The caller must close the returned server. */
  async #liveOnce(): Promise<OpenServer | undefined> {
    const lost = Promise.withResolvers<void>()
    lost.promise.catch(ignore)
    this.#endRun = lost.resolve
    const refresher = createRefresher(() => this.#refresh(server))
    const hooks: ConnectionHooks = {
      onListChanged: refresher.request,
      onRenewed: (handshake) => this.#onRenewed(handshake),
      onLost: lost.reject,
      log: (level, message, detail) => this.#log(level, message, detail),
    }
    let server: OpenServer | undefined
    let readyMs: number | undefined
    try {
      server = await openServer(this.#config, { hooks, reaper: this.#deps.reaper, signal: this.#stopping.signal })
      const read = await Promise.race([this.#readTools(server), lost.promise])
      if (!read || this.#isStopping) return server
      this.#current = server
      readyMs = this.#clock.monotonicMs()
      await Promise.race([this.#showTools(server, read), lost.promise])
      if (this.#isStopping) return server
      this.#setReady(server, read)
      this.#firstStart.resolve()
      refresher.requestAfterTtl(read.ttlMs)
      await lost.promise
    } catch (error) {
      if (!this.#isStopping) this.#setDown(UpstreamError.from(error), server)
    } finally {
      this.#current = undefined
      refresher.close()
      if (readyMs !== undefined) this.#backoff.ranFor(this.#clock.monotonicMs() - readyMs)
    }
    return server
  }

  /** A new handshake may be with another version of the server. */
  #onRenewed({ serverInfo }: Handshake): void {
    if (this.#current && serverInfo) this.#setState({ ...this.#state, serverInfo })
  }

  #readTools({ connection }: OpenServer): Promise<ToolList> {
    return fetchTools(connection, { timeoutMs: this.#config.startTimeoutMs, signal: this.#stopping.signal })
  }

  /** Reads the tools again. If that fails, the current list stays. */
  async #refresh(server: OpenServer | undefined): Promise<number | undefined> {
    if (!server || server !== this.#current) return undefined
    try {
      const read = await this.#readTools(server)
      if (server !== this.#current) return undefined
      await this.#showTools(server, read)
      if (server !== this.#current) return undefined
      this.#setTools(read)
      return read.ttlMs
    } catch (error) {
      if (server === this.#current)
        this.#log('warn', 'its tools could not be read again', UpstreamError.from(error).message)
      return 0
    }
  }

  /**
   * Shows new tools in slices, one in each turn of the event loop, because listeners need long for many. The last slice
   * is left to the caller. Tools that the server no longer lists are removed with the first.
   */
  async #showTools(server: OpenServer, read: ToolList): Promise<void> {
    if (read.text === this.#list.text) return
    const { texts } = this.#list
    const shown = new Map(this.#list.tools.map((tool) => [tool.name, texts.get(tool)]))
    const kept = new Set(read.tools.filter((tool) => shown.get(tool.name) === read.texts.get(tool)))
    const added = read.tools.filter((tool) => !kept.has(tool))
    const slices = [...slicesOf(added, (tool) => read.texts.get(tool)?.length ?? 0)]
    for (const slice of slices.slice(0, -1)) {
      for (const tool of slice) kept.add(tool)
      this.#list = { ...read, tools: read.tools.filter((tool) => kept.has(tool)), text: '' }
      this.#setState({ ...this.#state })
      await nextTurn()
      if (server !== this.#current) return
    }
  }

  #setReady({ connection }: OpenServer, read: ToolList): void {
    const { era, protocolVersion, serverInfo } = connection
    // An equal list stays the same object, so that a restart does not count as a change of the tools.
    if (read.text !== this.#list.text) this.#list = read
    this.#setState({
      status: 'ready',
      since: this.#clock.wallMs(),
      restarts: this.#state.restarts,
      era,
      protocolVersion,
      ...(serverInfo ? { serverInfo } : {}),
      rejected: read.rejected,
    })
    this.#log('info', `is ready: MCP ${protocolVersion}, ${read.tools.length} tools`)
    this.#logRejected(read)
  }

  #setTools(read: ToolList): void {
    if (read.text === this.#list.text) return
    this.#list = read
    this.#setState({ ...this.#state, rejected: read.rejected })
    this.#log('info', `has changed its list: ${read.tools.length} tools`)
    this.#logRejected(read)
  }

  #logRejected({ rejected }: ToolList): void {
    for (const { tool, reason } of rejected.slice(0, MAX_LOGGED_REJECTIONS))
      this.#log('warn', `its tool "${tool}" cannot be offered`, reason)
  }

  #setDown(error: UpstreamError, server: OpenServer | undefined): void {
    const reason = (this.#deps.redact ?? redactor).redactText(error.message)
    const before = this.#state
    const since = before.status === 'down' && before.reason === reason ? before.since : this.#clock.wallMs()
    this.#setState({ ...before, status: 'down', reason, since })
    this.#log(since === before.since ? 'debug' : 'warn', `is down: ${reason}`, server?.stderrTail())
  }

  #setState(next: UpstreamState): void {
    this.#state = next
    this.#changes.emit()
  }

  #log(level: LogLevel, message: string, detail?: string): void {
    this.#deps.log({ level, server: this.name, message, ...(detail ? { detail } : {}) })
  }
}

function ignore(): undefined {
  return undefined
}

interface RestartOptions extends BackoffOptions {
  /** A server that was ready for so long starts again with the shortest delay. Default 60,000. */
  readonly resetMs?: number
}

/** Returns the delays between the starts of a server. */
export function createBackoff({ resetMs = 60_000, ...options }: RestartOptions = {}) {
  let failures = 0
  return {
    nextDelayMs: () => backoffMs(++failures, { firstMs: 250, maxMs: 30_000, ...options }),
    ranFor(ms: number) {
      if (ms >= resetMs) failures = 0
    },
  }
}
