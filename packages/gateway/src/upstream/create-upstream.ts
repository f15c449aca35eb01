import { setTimeout as sleep } from 'node:timers/promises'

import { type Clock, type McpResult, redactor, type Redactor, systemClock } from '@toolgate/core'

import type { ServerConfig } from '../config/config.ts'
import { isLargeResult } from '../large-results.ts'
import { nextTurn } from '../next-turn.ts'
import { type BackoffOptions, createBackoff } from './backoff.ts'
import type { ConnectionHooks, Handshake, LogLevel } from './connection.ts'
import { isObject, type JsonObject } from './json-rpc.ts'
import type { FindTracing, McpOperation, SentRequest } from '../telemetry/operation.ts'
import { openServer, type OpenServer } from './open.ts'
import { toParamHeaders } from './param-headers.ts'
import { completeResult } from './protocol.ts'
import type { Reaper } from './reaper.ts'
import { createRefresher } from './refresher.ts'
import { slicesOf } from './slices.ts'
import { fetchTools, type ToolList } from './tool-list.ts'
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
  /** What its reasons pass through, which are shown. Default: the built-in tables. */
  readonly redact?: Redactor
  readonly backoff?: BackoffOptions
  /** Follows calls, where somebody listens. */
  readonly tracing?: FindTracing | undefined
}

/** Progress puts the timeout of a call off, but not beyond so many times its length. */
const MAX_TIMEOUT_FACTOR = 10
const HEADER_MISMATCH = -32_020

/**
 * Gives one MCP server, kept alive from `start` to `close`.
 *
 * It is started with a command, reached at a URL, or started and then reached at its URL. However it fails, it goes
 * down with a reason, is tried again with growing delays, and disturbs no other.
 */
export function createUpstream(config: ServerConfig, deps: UpstreamDeps): Upstream {
  const { name } = config
  const { clock = systemClock, redact = redactor, reaper } = deps
  const backoff = createBackoff(deps.backoff)
  const listeners = new Set<() => void>()
  const stopping = new AbortController()
  const address = addressOf(config)
  const firstStart = Promise.withResolvers<void>()
  let state: UpstreamState = { status: 'starting', since: clock.wallMs(), restarts: 0, rejected: [] }
  let list: Pick<ToolList, 'texts' | 'tools' | 'text' | 'paramHeaders'> = {
    tools: [],
    text: '',
    texts: new Map(),
    paramHeaders: new Map(),
  }
  let current: OpenServer | undefined
  let living: Promise<void> | undefined
  let endRun: (() => void) | undefined

  return {
    name,
    get state() {
      return state
    },
    get tools() {
      return list.tools
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    start() {
      living ??= live()
      return firstStart.promise
    },
    call,
    close,
  }

  /** Starts the server over and over until it is closed. */
  async function live(): Promise<void> {
    while (!stopping.signal.aborted) {
      const ended = await liveOnce()
      firstStart.resolve()
      await Promise.all([ended?.close(), wait(backoff.nextDelayMs())])
      if (!stopping.signal.aborted) setState({ ...state, restarts: state.restarts + 1 })
    }
  }

  async function wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: stopping.signal }).catch(ignore)
  }

  /** Runs the server once, to its end. What is left of it is still to be closed. */
  async function liveOnce(): Promise<OpenServer | undefined> {
    const lost = Promise.withResolvers<void>()
    lost.promise.catch(ignore)
    endRun = lost.resolve
    const refresher = createRefresher(() => refresh(server))
    const hooks: ConnectionHooks = { onListChanged: refresher.request, onRenewed, onLost: lost.reject, log }
    let server: OpenServer | undefined
    let readyMs: number | undefined
    try {
      server = await openServer(config, { hooks, reaper, signal: stopping.signal })
      const read = await Promise.race([readTools(server), lost.promise])
      if (!read || stopping.signal.aborted) return server
      current = server
      readyMs = clock.monotonicMs()
      await Promise.race([showTools(server, read), lost.promise])
      if (stopping.signal.aborted) return server
      setReady(server, read)
      firstStart.resolve()
      refresher.requestAfterTtl(read.ttlMs)
      await lost.promise
    } catch (error) {
      if (!stopping.signal.aborted) setDown(toUpstreamError(error), server)
    } finally {
      current = undefined
      refresher.close()
      if (readyMs !== undefined) backoff.ranFor(clock.monotonicMs() - readyMs)
    }
    return server
  }

  /** Another version may have taken its place. */
  function onRenewed({ serverInfo }: Handshake): void {
    if (current && serverInfo) setState({ ...state, serverInfo })
  }

  function readTools({ connection }: OpenServer): Promise<ToolList> {
    return fetchTools(connection, { timeoutMs: config.startTimeoutMs, signal: stopping.signal })
  }

  /** Reads the tools again. A list that cannot be read leaves the one that was. */
  async function refresh(server: OpenServer | undefined): Promise<number | undefined> {
    if (!server || server !== current) return undefined
    try {
      const read = await readTools(server)
      if (server !== current) return undefined
      await showTools(server, read)
      if (server !== current) return undefined
      setTools(read)
      return read.ttlMs
    } catch (error) {
      if (server === current) log('warn', 'its tools could not be read again', toUpstreamError(error).message)
      return 0
    }
  }

  /**
   * Shows all but the last of many tools that were read, some in each turn of the event loop, as those who listen take
   * long for many. What the server no longer lists goes with the first.
   */
  async function showTools(server: OpenServer, read: ToolList): Promise<void> {
    if (read.text === list.text) return
    const shown = new Map(list.tools.map((tool) => [tool.name, tool]))
    const isShown = (tool: McpTool) => list.texts.get(shown.get(tool.name) as McpTool) === read.texts.get(tool)
    const kept = new Set(read.tools.filter(isShown))
    const slices = [
      ...slicesOf(
        read.tools.filter((tool) => !kept.has(tool)),
        (tool) => read.texts.get(tool)?.length ?? 0,
      ),
    ]
    for (const slice of slices.slice(0, -1)) {
      for (const tool of slice) kept.add(tool)
      list = { ...read, tools: read.tools.filter((tool) => kept.has(tool)), text: '' }
      setState({ ...state })
      await nextTurn()
      if (server !== current) return
    }
  }

  function setReady({ connection }: OpenServer, read: ToolList): void {
    const { era, protocolVersion, serverInfo } = connection
    const info = serverInfo ? { serverInfo } : {}
    const { rejected } = read
    list = keepEqual(read)
    setState({
      status: 'ready',
      since: clock.wallMs(),
      restarts: state.restarts,
      era,
      protocolVersion,
      ...info,
      rejected,
    })
    log('info', `is ready: MCP ${protocolVersion}, ${read.tools.length} tools`)
    logRejected(read)
  }

  function setTools(read: ToolList): void {
    if (read.text === list.text) return
    list = read
    setState({ ...state, rejected: read.rejected })
    log('info', `has changed its list: ${read.tools.length} tools`)
    logRejected(read)
  }

  /** An equal list stays the same object, so that a restart is no change of the tools. */
  function keepEqual(read: ToolList): typeof list {
    return read.text === list.text ? list : read
  }

  function logRejected({ rejected }: ToolList): void {
    for (const { tool, reason } of rejected.slice(0, 20)) log('warn', `its tool "${tool}" cannot be offered`, reason)
  }

  function setDown(error: UpstreamError, server: OpenServer | undefined): void {
    const reason = redact.redactText(error.message)
    const since = state.status === 'down' && state.reason === reason ? state.since : clock.wallMs()
    const repeated = since === state.since
    setState({ ...state, status: 'down', reason, since })
    log(repeated ? 'debug' : 'warn', `is down: ${reason}`, server?.stderrTail())
  }

  function setState(next: UpstreamState): void {
    state = next
    for (const listener of listeners) {
      try {
        listener()
      } catch (error) {
        log('error', 'a listener failed', String(error))
      }
    }
  }

  function log(level: LogLevel, message: string, detail?: string): void {
    deps.log({ level, server: name, message, ...(detail ? { detail } : {}) })
  }

  function call(asked: UpstreamCall): Promise<McpResult> {
    const server = current
    if (!server) return Promise.reject(new UpstreamError('upstream_down', `server "${name}" is not running`))
    const operation = deps.tracing?.()?.startSent(toSent(asked.tool, server))
    return operation ? followCall(operation, () => callOn(server, asked, operation)) : callOn(server, asked)
  }

  function toSent(tool: string, { connection: { protocolVersion } }: OpenServer): SentRequest {
    return { method: 'tools/call', tool, server: name, ...address, protocolVersion }
  }

  async function callOn(
    server: OpenServer,
    { tool, arguments: input, signal, onProgress }: UpstreamCall,
    trace?: McpOperation,
  ): Promise<McpResult> {
    const { connection } = server
    const headers = list.paramHeaders.get(tool)
    try {
      const result = await connection.request(
        'tools/call',
        { name: tool, arguments: input },
        {
          timeoutMs: config.callTimeoutMs,
          maxTimeoutMs: config.callTimeoutMs * MAX_TIMEOUT_FACTOR,
          signal,
          onProgress,
          paramHeaders: headers && toParamHeaders(headers, input),
          trace,
        },
      )
      if (isLargeResult(result)) await nextTurn()
      return checkResult(completeResult(connection.era, result))
    } catch (error) {
      // The list that said which arguments go into headers is out of date.
      if (error instanceof UpstreamError && error.rpc?.code === HEADER_MISMATCH) void refresh(server)
      throw toCallError(error)
    }
  }

  /** Errors of a call name the server. What ended it may quote its stderr, which is not for callers. */
  function toCallError(error: unknown): UpstreamError {
    const { code, message, rpc } = toUpstreamError(error)
    const text = code === 'upstream_down' ? 'is not running' : message
    return new UpstreamError(code, `server "${name}" ${text}`, { ...(rpc ? { rpc } : {}), cause: error })
  }

  async function close(): Promise<void> {
    if (!stopping.signal.aborted) {
      stopping.abort()
      endRun?.()
      const { reason: _before, ...rest } = state
      setState({ ...rest, status: 'stopped', since: clock.wallMs() })
      firstStart.resolve()
    }
    await living
  }
}

/** Where a server is, for those who look at traces. A port that is chosen at each start is not said. */
function addressOf({ url }: ServerConfig): Pick<SentRequest, 'transport' | 'host' | 'port'> {
  if (url === undefined) return { transport: 'pipe', host: undefined, port: undefined }
  const fixed = url.replace(':${port}', '')
  const { hostname, port, protocol } = URL.canParse(fixed) ? new URL(fixed) : NOWHERE
  const implied = fixed === url ? (protocol === 'https:' ? 443 : 80) : undefined
  return { transport: 'tcp', host: hostname || undefined, port: port === '' ? implied : Number(port) }
}

const NOWHERE = { hostname: '', port: '', protocol: '' }

async function followCall(operation: McpOperation, call: () => Promise<McpResult>): Promise<McpResult> {
  try {
    const result = await operation.within(call)
    if (result.isError === true) operation.fail('tool_error')
    return result
  } catch (error) {
    const { code, rpc } = error as UpstreamError
    operation.fail(rpc ? String(rpc.code) : code, rpc?.code)
    throw error
  } finally {
    operation.end()
  }
}

function ignore(): undefined {
  return undefined
}

/** A result is passed on as it came, but only if it has the shape of one. */
function checkResult(result: JsonObject): McpResult {
  const { content, isError } = result
  const fits =
    (content === undefined || Array.isArray(content)) && (isError === undefined || typeof isError === 'boolean')
  if (!fits) throw new UpstreamError('upstream_protocol', 'answered a call with something that is no result of a tool')
  return result
}

function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  const message = isObject(error) && typeof error['message'] === 'string' ? error['message'] : String(error)
  return new UpstreamError('upstream_protocol', `failed (${message})`, { cause: error })
}
