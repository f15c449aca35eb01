import { randomUUID } from 'node:crypto'
import type { Caller, Gate, Progress, View } from '@toolgate/core'
import {
  callTool,
  checkListParams,
  inSession,
  type ListWatch,
  readCall,
  recordRefusedCall,
  RPC_CODES,
  RpcError,
  errorResult,
  type ToolLists,
  toResult,
  withoutHop,
} from '@toolgate/mcp'
import type { Exchange, McpRequest } from './sdk-context.ts'
import { type HeldServer, holdTools, type SdkServer } from './sdk-server.ts'

/** The members of a gate that a guard uses. */
export type GuardedGate = Pick<Gate, 'apps' | 'catalog' | 'locks' | 'membersOf' | 'subscribe' | 'view'>

/** The parts that all servers of a guard share. */
export interface McpGuarding {
  readonly gate: GuardedGate
  readonly openView: (caller: Caller) => Promise<View>
  readonly lists: ToolLists
  readonly watch: ListWatch
  readonly callerOf: (request: McpRequest) => Promise<Caller>
  readonly onFault: (error: unknown) => void
  readonly listTtlMs: number
}

/** A guarded server and its client. Over HTTP without sessions it lives for one request. */
export class McpConnection {
  readonly #guarding: McpGuarding
  readonly #server: HeldServer
  #id: string | undefined
  #unwatch: (() => void) | undefined

  /**
   * Makes the gate serve a server's tools.
   *
   * @throws {ConfigError} for a server that cannot be guarded
   */
  static open(guarding: McpGuarding, server: SdkServer, options: { readonly listChanged: boolean }): McpConnection {
    return new McpConnection(guarding, server, options)
  }

  private constructor(guarding: McpGuarding, server: SdkServer, options: { readonly listChanged: boolean }) {
    this.#guarding = guarding
    this.#server = holdTools(
      server,
      { 'tools/list': (exchange) => this.#list(exchange), 'tools/call': (exchange) => this.#call(exchange) },
      options,
    )
  }

  async #list(exchange: Exchange): Promise<object> {
    const { openView, lists, listTtlMs } = this.#guarding
    const problem = checkListParams(exchange.params)
    if (problem !== undefined) throw new RpcError(RPC_CODES.invalidParams, problem)
    const { caller, view } = await this.#known(async () => {
      const asking = await this.#callerFor(exchange)
      return { caller: asking, view: await openView(asking) }
    })
    if (exchange.isLasting) this.#watch(caller, lists.of(view).key)
    const tools = this.#server.fitting.fitList(lists.listed(view))
    // Only this caller may reuse the list, even if the server was created with a wider cache scope.
    return exchange.isModern ? { tools, ttlMs: listTtlMs, cacheScope: 'private' } : { tools }
  }

  async #call(exchange: Exchange): Promise<object> {
    const { gate, openView, lists, onFault } = this.#guarding
    const { name, input, progressToken, problem } = readCall(exchange.params)
    const view = await this.#known(
      async () => openView(await this.#callerFor(exchange)),
      () => this.#recordUnknown(name),
    )
    const names = lists.names(view)
    if (problem !== undefined) {
      await recordRefusedCall(view, names, name, problem)
      throw new RpcError(RPC_CODES.invalidParams, problem)
    }
    const onProgress = (progress: Progress) => {
      const params = { ...progress, progressToken }
      exchange.notify({ method: 'notifications/progress', params }).catch(onFault)
    }
    const outcome = await callTool({
      view,
      names,
      name,
      input,
      signal: exchange.signal,
      onProgress: progressToken === undefined ? undefined : onProgress,
      context: exchange.context,
    })
    const outputSchema = gate.catalog.get(names.toId(name) ?? '')?.outputSchema
    const result = withoutHop(await toResult(outcome, { name, outputSchema }))
    if (result['resultType'] === 'input_required' && !exchange.isModern)
      return errorResult(`${name} asks its client for input, which takes a client of MCP 2026-07-28.`)
    return this.#server.fitting.fitResult(result, outputSchema)
  }

  /** Each connection is its own session, so a group opened here is open nowhere else. */
  async #callerFor({ from, isLasting }: Exchange): Promise<Caller> {
    const caller = await this.#guarding.callerOf(from)
    if (!isLasting || caller.session !== undefined) return caller
    return inSession(caller, from.sessionId ?? (this.#id ??= randomUUID()))
  }

  /** Watches the list that the client has, and notifies the client of changes. */
  #watch(caller: Caller, key: string): void {
    const { gate, watch } = this.#guarding
    const connection = this.#server.connection()
    this.#unwatch?.()
    this.#unwatch = watch.add({
      caller,
      key,
      changed: () => this.#server.announceChange(),
      isOpen: () => this.#server.connection() === connection,
      ended: () => gate.locks.forget(caller),
    })
  }

  /**
   * Runs a function that needs the caller. If the caller cannot be found, only the host gets the details.
   *
   * @throws {RpcError} without details
   */
  async #known<T>(find: () => Promise<T>, onUnknown?: () => Promise<void>): Promise<T> {
    try {
      return await find()
    } catch (error) {
      this.#guarding.onFault(error)
      await onUnknown?.()
      throw new RpcError(RPC_CODES.internalError, 'The caller is not known.')
    }
  }

  /** Records a call of an unknown caller. Never rejects, because a failed record must not change the answer. */
  async #recordUnknown(name: string): Promise<void> {
    const { gate, lists, onFault } = this.#guarding
    try {
      await recordRefusedCall(await gate.view({}), lists.names(), name, 'the caller is not known')
    } catch (error) {
      onFault(error)
    }
  }
}
