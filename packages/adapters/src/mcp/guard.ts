import { type Caller, ConfigError, defineCaller, type ViewOptions } from '@toolgate/core'
import { safely, type Shape, shapeOf } from '@toolgate/values'
import { ListWatch, ToolLists } from '@toolgate/mcp'
import { type CallerOption, checkCaller, checkGuard } from '../shared/guard-options.ts'
import { type ChangeBus, createChangeBus, type McpChangeBus } from './change-bus.ts'
import { McpConnection, type GuardedGate, type McpGuarding } from './connection.ts'
import type { McpAuthInfo, McpRequest } from './sdk-context.ts'
import type { SdkServer } from './sdk-server.ts'

export interface McpGuardOptions<Server extends SdkServer> extends Pick<ViewOptions, 'app' | 'visibility'> {
  /** Returns a new SDK server without tools: `() => new Server({ name, version })`. */
  readonly server: (context: McpServerContext) => Server
  /** The caller, or a function that finds the caller of a request. If it throws, the client gets an error without details. */
  readonly caller: CallerOption<McpRequest>
  /** How long clients of MCP 2026-07-28 may cache a list, in milliseconds. Default 0. */
  readonly listTtlMs?: number | undefined
  /**
   * The time between comparisons of lists, which find changes without an event, such as on another replica. Default
   * 1,000 ms.
   */
  readonly watchEveryMs?: number | undefined
  /** Called with faults that do not change an answer. Default: faults are ignored. */
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

/** The argument of a server factory in SDK v2 (`McpRequestContext`). v1 passes none. */
export interface McpServerContext {
  readonly era?: 'legacy' | 'modern' | undefined
  readonly authInfo?: McpAuthInfo | undefined
  readonly requestInfo?: { readonly headers: Headers } | undefined
}

/** Returns a guarded server for each request, connection or session, as the SDK's transports need it. */
export interface McpGuard<Server extends SdkServer> {
  (context?: McpServerContext): Server
  /**
   * For `createMcpHandler` of SDK v2: notifies each `subscriptions/listen` of changes to its own caller's list. Servers
   * over HTTP declare `listChanged` only if the bus is used.
   */
  readonly bus: McpChangeBus
}

/**
 * Returns a factory of servers with the gate's tools: `tools/list` lists the tools that the caller sees, and `tools/call`
 * goes through the gate. For SDK v1 and v2.
 *
 * @throws {ConfigError} for an unknown app; each server is checked when it is made
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
  const watch = new ListWatch({ gate, openView, lists, onFault, everyMs: watchEveryMs, minIntervalMs: 0 })
  const callerOf = createCallerOf(options.caller)
  const guarding: McpGuarding = { gate, openView, lists, watch, callerOf, onFault, listTtlMs }
  let bus: ChangeBus | undefined

  const serve = (context: McpServerContext = {}): Server => {
    const { authInfo, requestInfo, era } = context
    const isPerRequest = requestInfo !== undefined
    const server = options.server(context)
    McpConnection.open(guarding, server, { listChanged: !isPerRequest || (bus !== undefined && era === 'modern') })
    if (isPerRequest) bus?.enter(async () => callerOf({ authInfo, sessionId: undefined, headers: requestInfo.headers }))
    return server
  }
  return Object.defineProperty(serve, 'bus', {
    get: () => (bus ??= createChangeBus(watch, onFault)),
  }) as McpGuard<Server>
}

/** The longest delay of a timer, in milliseconds. */
const MAX_MS = 2 ** 31 - 1

function checkMs(name: string, ms: number, least: number): void {
  if (!(ms >= least && ms <= MAX_MS))
    throw new ConfigError(name, `must be a number of milliseconds from ${least} to ${MAX_MS}`)
}

/**
 * Returns a function that finds the caller of a request. A host's function runs for each request, because each has its
 * own token.
 */
function createCallerOf(given: McpGuardOptions<SdkServer>['caller']): McpGuarding['callerOf'] {
  if (typeof given === 'function') return async (request) => defineCaller(await given(request))
  const caller = checkCaller(given)
  return async () => caller
}
