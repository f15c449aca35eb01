import { type Caller, ConfigError, defineCaller, type ViewOptions } from '@toolgate/core'
import { type MaybePromise, safely, type Shape, shapeOf } from '@toolgate/core/internal'
import { ListWatch, ToolLists } from '@toolgate/mcp'
import { checkCaller, checkGuard } from '../shared/guard-options.ts'
import { type ChangeBus, createChangeBus, type McpChangeBus } from './change-bus.ts'
import { Connection, type GuardedGate, type Guarding } from './connection.ts'
import type { McpAuthInfo, McpRequest } from './sdk-context.ts'
import type { SdkServer } from './sdk-server.ts'

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

const SHAPE: Shape = shapeOf<McpGuardOptions<SdkServer>>({
  app: true,
  visibility: true,
  server: true,
  caller: true,
  listTtlMs: true,
  watchEveryMs: true,
  onFault: true,
})

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
  checkGuard(gate, options, SHAPE)
  const { app, visibility, listTtlMs = 0, watchEveryMs = 1000 } = options
  if (typeof options.server !== 'function') throw new ConfigError('server', 'must be a function that makes a server')
  if (app !== undefined && !gate.apps.list.some(({ name }) => name === app))
    throw new ConfigError('app', `there is no app "${app}"`)
  checkMs('listTtlMs', listTtlMs, 0)
  checkMs('watchEveryMs', watchEveryMs, 1)
  const onFault = safely(options.onFault)
  const narrowed = app !== undefined || visibility !== undefined
  const openView = (caller: Caller) => gate.view(caller, narrowed ? { app, visibility } : undefined)
  const lists = new ToolLists(gate)
  const watch = new ListWatch({ gate, openView, lists, onFault, everyMs: watchEveryMs, quietMs: 0 })
  const callerOf = createCallerOf(options.caller)
  const guarding: Guarding = { gate, openView, lists, watch, callerOf, onFault, listTtlMs }
  let bus: ChangeBus | undefined

  const serve = (context: McpServerContext = {}): Server => {
    const { authInfo, requestInfo, era } = context
    const isPerRequest = requestInfo !== undefined
    const server = options.server(context)
    Connection.open(guarding, server, { listChanged: !isPerRequest || (bus !== undefined && era === 'modern') })
    if (isPerRequest) bus?.enter(() => callerOf({ authInfo, sessionId: undefined, headers: requestInfo.headers }))
    return server
  }
  return Object.defineProperty(serve, 'bus', {
    get: () => (bus ??= createChangeBus(watch, onFault)),
  }) as McpGuard<Server>
}

/** The longest that a timer takes. */
const MAX_MS = 2 ** 31 - 1

function checkMs(name: string, ms: number, least: number): void {
  if (!(ms >= least && ms <= MAX_MS))
    throw new ConfigError(name, `must be a number of milliseconds from ${least} to ${MAX_MS}`)
}

/** A function reads the token that the host verified, so its answer may be made anew at each request. */
function createCallerOf(given: McpGuardOptions<SdkServer>['caller']): Guarding['callerOf'] {
  if (typeof given === 'function') return async (request) => defineCaller(await given(request))
  const caller = checkCaller(given)
  return async () => caller
}
