import { randomUUID } from 'node:crypto'
import { type Caller, defineCaller, type Gate, type Progress, type View } from '@toolgate/core'
import { errorResult } from '@toolgate/core/internal'
import { isPlainObject } from '../shared/mcp-result.ts'
import type { Exchange, McpRequest } from './exchange.ts'
import type { Listings } from './listing.ts'
import type { ListWatch } from './list-watch.ts'
import { toResult, withoutHop } from './results.ts'
import { RpcError } from './rpc-error.ts'
import type { HeldServer } from './sdk-server.ts'

/** What is asked of a gate. */
export type GuardedGate = Pick<Gate, 'apps' | 'catalog' | 'locks' | 'subscribe' | 'view'>

/** What all servers of a guard have in common. */
export interface Serving {
  readonly gate: GuardedGate
  readonly openView: (caller: Caller) => Promise<View>
  readonly listings: Listings
  readonly watch: ListWatch
  readonly callerOf: (request: McpRequest) => Promise<Caller>
  readonly onFault: (error: unknown) => void
  readonly listTtlMs: number
}

/** One server and the client that it stays with, if it stays with one. */
export interface Connection {
  readonly held: HeldServer
  /** The caller in the session that the connection is. */
  callerFor(exchange: Exchange): Promise<Caller>
  /** The client was given this list. */
  listed(exchange: Exchange, caller: Caller, key: string): void
}

export function createConnection({ gate, watch, callerOf }: Serving, held: HeldServer): Connection {
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

/** JSON-RPC 2.0's "invalid params". */
const INVALID_PARAMS = -32_602

/** Answers `tools/list`. */
export async function serveList(serving: Serving, connection: Connection, exchange: Exchange): Promise<object> {
  const { listings, listTtlMs } = serving
  if (exchange.params['cursor'] !== undefined)
    throw new RpcError(INVALID_PARAMS, 'params.cursor is none of this server: its list has one page.')
  const { caller, listing } = await known(serving, async () => {
    const asking = await connection.callerFor(exchange)
    return { caller: asking, listing: await listings.of(asking) }
  })
  connection.listed(exchange, caller, listing.key)
  const tools = connection.held.fitting.fitList(listing.tools)
  // What one caller sees is for nobody else, whatever the server was made with.
  return exchange.isModern ? { tools, ttlMs: listTtlMs, cacheScope: 'private' } : { tools }
}

/** Answers `tools/call`. */
export async function serveCall(serving: Serving, connection: Connection, exchange: Exchange): Promise<object> {
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
    return errorResult(`${name} asks its client for input, which takes a client of MCP 2026-07-28.`)
  return connection.held.fitting.fitResult(result, outputSchema)
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
