import { randomUUID } from 'node:crypto'
import {
  type Caller,
  ConfigError,
  defineCaller,
  type Gate,
  type MaybePromise,
  type Progress,
  type View,
  type ViewOptions,
} from '@toolgate/core'
import { createChangeBus, type ChangeBus, type McpChangeBus } from './change-bus.ts'
import { createListings, type Listings } from './listing.ts'
import { createListWatch, type ListWatch } from './list-watch.ts'
import { isPlainObject, toldResult, toResult, withoutHop } from './results.ts'
import { RpcError } from './rpc-error.ts'
import {
  type Exchange,
  type HeldServer,
  holdTools,
  type McpAuthInfo,
  type McpRequest,
  type SdkServer,
} from './sdk-server.ts'

export interface McpGuardOptions<Server extends SdkServer> extends Pick<ViewOptions, 'app' | 'visibility'> {
  /** Makes a server of the SDK, new each time, without tools: `() => new Server({ name, version })`. */
  readonly server: (context: McpServerContext) => Server
  /** Who calls, or how to know it from a request. What throws here is answered with an error that says nothing. */
  readonly caller: Caller | ((request: McpRequest) => MaybePromise<Caller>)
  /** How long clients of MCP 2026-07-28 may keep a list, in milliseconds. Default 0. */
  readonly listTtlMs?: number | undefined
  /** How often lists are looked at for changes that nobody tells of, such as availability. Default 1,000 ms. */
  readonly watchEveryMs?: number | undefined
  /** Hears of faults that must not change an answer. Default: ignores them. */
  readonly onFault?: ((error: unknown) => void) | undefined
}

/** What SDK v2 says to a factory of servers (`McpRequestContext`). v1 has no such thing. */
export interface McpServerContext {
  readonly era?: 'legacy' | 'modern' | undefined
  readonly authInfo?: McpAuthInfo | undefined
  readonly requestInfo?: { readonly headers: Headers } | undefined
}

/** Makes guarded servers: one for each request, connection or session, as the SDK's transports want it. */
export interface McpGuard<Server extends SdkServer> {
  (context?: McpServerContext): Server
  /**
   * For `createMcpHandler` of SDK v2: tells each `subscriptions/listen` of the changes of its own caller's list. Only
   * where it is used do servers over HTTP say that they tell of changes.
   */
  readonly bus: McpChangeBus
}

type GuardedGate = Pick<Gate, 'apps' | 'catalog' | 'locks' | 'subscribe' | 'view'>

/**
 * Gives servers whose tools are the gate's: `tools/list` shows what the caller sees, and `tools/call` goes through the
 * gate. For SDK v1 and v2 alike.
 *
 * @throws {ConfigError} for an app that there is not; each server is checked when it is made
 * @example
 * const serve = guard(gate, { server: () => new Server(INFO), caller: ({ authInfo }) => toCaller(authInfo) })
 * createMcpHandler(serve, { bus: serve.bus })  // SDK v2, over HTTP
 * await serve().connect(new StdioServerTransport())  // either, on any other transport
 */
export function guard<Server extends SdkServer>(gate: GuardedGate, options: McpGuardOptions<Server>): McpGuard<Server> {
  const { app, visibility, onFault = () => {} } = options
  if (typeof options.server !== 'function') throw new ConfigError('server', 'must be a function that makes a server')
  if (app !== undefined && !gate.apps.list.some(({ name }) => name === app))
    throw new ConfigError('app', `there is no app "${app}"`)
  const narrowed = app !== undefined || visibility !== undefined
  const openView = (caller: Caller) => gate.view(caller, narrowed ? { app, visibility } : undefined)
  const listings = createListings(gate, openView)
  const watch = createListWatch({ gate, listings, onFault, everyMs: options.watchEveryMs ?? 1000 })
  const callerOf = createCallerOf(options.caller)
  const serving: Serving = { gate, openView, listings, watch, callerOf, onFault, listTtlMs: options.listTtlMs ?? 0 }
  let bus: ChangeBus | undefined

  const serve = (context: McpServerContext = {}): Server => {
    const isPerRequest = context.requestInfo !== undefined
    const server = options.server(context)
    const held: HeldServer = holdTools(
      server,
      {
        'tools/list': (exchange) => serveList(serving, connection, exchange),
        'tools/call': (exchange) => serveCall(serving, connection, exchange),
      },
      { listChanged: !isPerRequest || (bus !== undefined && context.era === 'modern') },
    )
    const connection = createConnection(serving, held)
    if (isPerRequest) {
      const { authInfo, requestInfo } = context
      bus?.enter(() => callerOf({ authInfo, sessionId: undefined, headers: requestInfo?.headers }))
    }
    return server
  }
  return Object.defineProperty(serve, 'bus', {
    get: () => (bus ??= createChangeBus(watch, onFault)),
  }) as McpGuard<Server>
}

/** What all servers of a guard have in common. */
interface Serving {
  readonly gate: GuardedGate
  readonly openView: (caller: Caller) => Promise<View>
  readonly listings: Listings
  readonly watch: ListWatch
  readonly callerOf: (request: McpRequest) => Promise<Caller>
  readonly onFault: (error: unknown) => void
  readonly listTtlMs: number
}

function createCallerOf(given: McpGuardOptions<SdkServer>['caller']): Serving['callerOf'] {
  if (typeof given === 'function') return async (request) => defineCaller(await given(request))
  const caller = defineCaller(given)
  return async () => caller
}

/** One server and the client that it stays with, if it stays with one. */
interface Connection {
  readonly held: HeldServer
  /** The caller in the session that the connection is. */
  callerFor(exchange: Exchange): Promise<Caller>
  /** The client was given this list. */
  listed(exchange: Exchange, caller: Caller, key: string): void
}

function createConnection({ gate, watch, callerOf }: Serving, held: HeldServer): Connection {
  let id: string | undefined
  let leave: (() => void) | undefined
  return {
    held,
    async callerFor({ from, isLasting }) {
      const caller = await callerOf(from)
      return isLasting ? inSession(caller, from.sessionId ?? (id ??= randomUUID())) : caller
    },
    listed({ isLasting }, caller, key) {
      if (!isLasting) return
      leave?.()
      const connection = held.connection()
      leave = watch.add({
        caller,
        key,
        changed: () => held.tellChanged(),
        isOpen: () => held.connection() === connection,
        ended: () => gate.locks.forget(caller),
      })
    },
  }
}

/** A session of the caller's own, whatever a client says: groups that it opens are open for nobody else. */
function inSession(caller: Caller, id: string): Caller {
  if (caller.session !== undefined) return caller
  const owner = [caller.tenant ?? '', caller.user ?? caller.agent ?? ''].map(encodeURIComponent)
  return defineCaller({ ...caller, session: [...owner, id].join('/') })
}

/** MCP, tools: JSON-RPC 2.0's "invalid params". */
const INVALID_PARAMS = -32_602

async function serveList(serving: Serving, connection: Connection, exchange: Exchange): Promise<object> {
  const { listings, listTtlMs } = serving
  if (exchange.params['cursor'] !== undefined)
    throw new RpcError(INVALID_PARAMS, 'params.cursor is none of this server: its list has one page.')
  const { caller, listing } = await known(serving, async () => {
    const asking = await connection.callerFor(exchange)
    return { caller: asking, listing: await listings.of(asking) }
  })
  connection.listed(exchange, caller, listing.key)
  const tools = connection.held.fitList(listing.tools)
  // What one caller sees is for nobody else, whatever the server was made with.
  return exchange.isModern ? { tools, ttlMs: listTtlMs, cacheScope: 'private' } : { tools }
}

async function serveCall(serving: Serving, connection: Connection, exchange: Exchange): Promise<object> {
  const { gate, listings, onFault } = serving
  const call = readCall(exchange.params)
  const names = listings.names()
  const { name, progressToken } = call
  const tool = names.toId(name)
  const view = await known(
    serving,
    async () => serving.openView(await connection.callerFor(exchange)),
    // Somebody tried, whoever it was.
    () => record(serving, {}, name, 'the caller is not known'),
  )
  if (call.problem !== undefined) {
    await view.call({ tool, calledAs: name, malformed: call.problem })
    throw new RpcError(INVALID_PARAMS, call.problem)
  }
  const onProgress = (progress: Progress) => {
    const params = { ...progress, progressToken }
    exchange.notify({ method: 'notifications/progress', params }).catch(onFault)
  }
  const outcome = await view.call({
    tool,
    calledAs: name,
    input: call.input,
    signal: exchange.signal,
    onProgress: progressToken === undefined ? undefined : onProgress,
    context: exchange.context,
    nameOf: (id) => names.toName(id) ?? id,
    idOf: names.toId,
  })
  const outputSchema = tool === undefined ? undefined : gate.catalog.get(tool)?.outputSchema
  const result = withoutHop(await toResult(outcome, { name, outputSchema }))
  if (result['resultType'] === 'input_required' && !exchange.isModern)
    return toldResult(`${name} asks its client for input, which takes a client of MCP 2026-07-28.`)
  return connection.held.fitResult(result, outputSchema)
}

interface ReadCall {
  readonly name: string
  readonly input: unknown
  readonly progressToken: unknown
  readonly problem: string | undefined
}

function readCall({ name, arguments: input, _meta: meta }: Exchange['params']): ReadCall {
  const progressToken = isPlainObject(meta) ? meta['progressToken'] : undefined
  const problem =
    typeof name !== 'string'
      ? 'params.name must be a string.'
      : input !== undefined && !isPlainObject(input)
        ? 'params.arguments must be an object.'
        : undefined
  return { name: typeof name === 'string' ? name : '(no name)', input, progressToken, problem }
}

/**
 * Gives what depends on knowing the caller. A fault in that is the host's to hear of, and nobody else's.
 *
 * @throws {RpcError} that says nothing
 */
async function known<T>({ onFault }: Serving, find: () => Promise<T>, onUnknown?: () => Promise<void>): Promise<T> {
  try {
    return await find()
  } catch (error) {
    onFault(error)
    await onUnknown?.()
    // JSON-RPC 2.0's "internal error".
    throw new RpcError(-32_603, 'The caller is not known.')
  }
}

/** Never rejects: a record that cannot be written changes no answer. */
async function record({ gate, listings, onFault }: Serving, caller: Caller, name: string, problem: string) {
  try {
    const view = await gate.view(caller)
    await view.call({ tool: listings.names().toId(name), calledAs: name, malformed: problem })
  } catch (error) {
    onFault(error)
  }
}
