import { callerKey } from '@toolgate/core/internal'
import { type Canceller, createCanceller, LinkedList } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { McpError, relayedError, type RequestId, RPC_CODES } from '@toolgate/mcp'
import { clip, type RpcMessage } from './json-rpc.ts'
import { LIMITS } from './limits.ts'
import type { RequestClient } from '../../model/upstream.ts'

/** A running request whose server may contact its client. */
export interface AskedRequest {
  readonly client: RequestClient
  /**
   * Called while the client is asked, to extend the timeout, since a person needs longer than a server. Returns the
   * function that ends the extension.
   */
  hold(): () => void
  /** The current questions to the client. Most requests have none. */
  asks?: Set<Canceller>
}

/** Stands for a request whose client cannot be reached. */
export const NOBODY: AskedRequest = { client: { caller: {} }, hold: () => () => {} }

const MAX_UNASKED = 10

type ServerRequest = Extract<RpcMessage, { readonly kind: 'request' }>

/** The error for a request of a server that cannot be answered. */
class Unanswerable extends McpError {
  readonly rpc: { readonly code: number; readonly message: string }

  constructor(code: number, message: string) {
    super(message)
    this.rpc = { code, message }
  }
}

/**
 * The clients whose requests run on one connection to a server of an earlier revision.
 *
 * Such a server does not always state which request its own messages belong to: on stdio never, over HTTP only by the
 * stream. If it does not, and several clients have running requests, no client is asked.
 */
export class AskedClients {
  readonly #running = new LinkedList<AskedRequest>()
  readonly #open = new Map<RequestId, Canceller>()
  readonly #onUnasked: (method: string, why: string) => void
  /** The methods that `onUnasked` has received. */
  readonly #unasked = new Set<string>()

  /** `onUnasked` is called once for each method of a request that cannot be passed on to a client. */
  constructor(onUnasked: (method: string, why: string) => void = () => {}) {
    this.#onUnasked = onUnasked
  }

  /** Adds a running request. Returns the function that removes it and withdraws its questions. */
  add(request: Omit<AskedRequest, 'asks'>): { readonly request: AskedRequest; readonly remove: () => void } {
    const asked: AskedRequest = { ...request }
    const link = this.#running.add(asked)
    const remove = () => {
      this.#running.remove(link)
      for (const ask of asked.asks ?? []) ask.abort(new Unanswerable(RPC_CODES.internalError, 'The call has ended.'))
    }
    return { request: asked, remove }
  }

  /** Returns the answer to a request of the server. `of`: the request on whose stream it came. Never rejects. */
  async answer({ id, method, params }: ServerRequest, of?: AskedRequest): Promise<JsonObject> {
    try {
      if (method === 'ping') return { jsonrpc: '2.0', id, result: {} }
      return { jsonrpc: '2.0', id, result: await this.#ask(id, method, params, of ?? this.#onlyOrThrow(method)) }
    } catch (error) {
      const rpc = error instanceof McpError ? error.rpc : undefined
      const failed = { code: RPC_CODES.internalError, message: 'The client failed.' }
      return { jsonrpc: '2.0', id, error: rpc ? relayedError(rpc) : failed }
    }
  }

  /** Called when the server cancels its request. */
  cancel({ requestId }: JsonObject): void {
    if (typeof requestId !== 'string' && typeof requestId !== 'number' && typeof requestId !== 'bigint') return
    this.#open.get(requestId)?.abort(new Unanswerable(RPC_CODES.internalError, 'The server withdrew its request.'))
  }

  /** Passes a log message on if it can belong to only one client. Otherwise it is dropped. */
  log(params: JsonObject, of?: AskedRequest): void {
    const request = of ?? this.#only()
    request?.client.log?.(params)
  }

  async #ask(id: RequestId, method: string, params: JsonObject, request: AskedRequest): Promise<JsonObject> {
    const { client } = request
    if (!client.ask) throw new Unanswerable(RPC_CODES.methodNotFound, `${clip(method, 100)} is not supported`)
    if (this.#open.has(id) || this.#open.size >= LIMITS.openAsks)
      throw new Unanswerable(RPC_CODES.internalError, 'Too many requests are open.')
    const canceller = createCanceller()
    const release = request.hold()
    this.#open.set(id, canceller)
    const asks = (request.asks ??= new Set())
    asks.add(canceller)
    try {
      return await client.ask(method, params, canceller)
    } finally {
      release()
      asks.delete(canceller)
      this.#open.delete(id)
    }
  }

  /** Returns the latest request if there is exactly one caller; otherwise `undefined`. */
  #only(): AskedRequest | undefined {
    const running = this.#running.items()
    const callers = new Set(running.map(({ client }) => callerKey(client.caller)))
    return callers.size === 1 ? running.at(-1) : undefined
  }

  #onlyOrThrow(method: string): AskedRequest {
    const request = this.#only()
    if (request) return request
    const error = this.#running.isEmpty
      ? new Unanswerable(RPC_CODES.methodNotFound, 'No running call has a client that can be asked.')
      : new Unanswerable(RPC_CODES.internalError, 'Calls of several clients are running, and any could be meant.')
    this.#noteUnasked(clip(method, 100), error.message)
    throw error
  }

  /** A server may ask in a loop, with any name of a method. */
  #noteUnasked(method: string, why: string): void {
    if (this.#unasked.size >= MAX_UNASKED || this.#unasked.has(method)) return
    this.#unasked.add(method)
    this.#onUnasked(method, why)
  }
}
