import type { ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/core/internal'
import { LIST_CHANGED, type ListWatch, META, type RequestId } from '@toolgate/mcp'
import { RpcFault, toEvent } from './protocol.ts'

export interface ChangeStreamsOptions {
  readonly serverInfo: { readonly name: string; readonly version: string }
  readonly onFault: (error: unknown) => void
  /** Default 15,000 ms. */
  readonly keepAliveMs?: number
  /** Default 1,024. */
  readonly maxStreams?: number
  /** Per key. Default 64. */
  readonly maxOfOne?: number
}

type Watch = Pick<ListWatch, 'watch'>

const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const

/** The event streams that notify clients of changes to their list of tools. All apps share the limits. */
export class ChangeStreams {
  readonly #options: ChangeStreamsOptions
  /** Each stream with the caller whose limit it counts towards. */
  readonly #streams = new Map<EventStream, Caller>()
  #keepAlive: NodeJS.Timeout | undefined

  constructor(options: ChangeStreamsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#streams.size
  }

  /**
   * Serves `subscriptions/listen` (MCP 2026-07-28).
   *
   * @throws {RpcFault} `params_invalid`, `streams_full`
   */
  async listen(
    watch: Watch,
    params: JsonObject,
    id: RequestId,
    caller: Caller,
    response: ServerResponse,
  ): Promise<void> {
    const isAsked = asksForTools(params)
    const meta = { [META.subscriptionId]: id }
    const { serverInfo } = this.#options
    this.#checkRoom(caller, 'streams_full')
    const stream = new EventStream(response, {
      jsonrpc: '2.0',
      id,
      result: { resultType: 'complete', _meta: { ...meta, [META.serverInfo]: serverInfo } },
    })
    await this.#serve(watch, stream, caller, caller, {
      greeting: notification('notifications/subscriptions/acknowledged', {
        notifications: isAsked ? { toolsListChanged: true } : {},
        _meta: meta,
      }),
      changed: notification(LIST_CHANGED, { _meta: meta }),
    })
    // The client asked only for notifications that this server never sends.
    if (!isAsked) stream.end()
  }

  /**
   * Serves the stream that a client of an earlier revision opens with GET, on its session.
   *
   * @throws {RpcFault} `session_streams_full`
   */
  async open(watch: Watch, caller: Caller, owner: Caller, response: ServerResponse): Promise<void> {
    this.#checkRoom(owner, 'session_streams_full')
    await this.#serve(watch, new EventStream(response, undefined, caller.session), caller, owner, {
      changed: notification(LIST_CHANGED),
    })
  }

  /** Sends a notification on the streams that the clients of one session have opened. It may be lost. */
  notify(session: string, method: string, params: JsonObject): void {
    for (const stream of this.#streams.keys()) if (stream.session === session) stream.send(notification(method, params))
  }

  /** Ends every stream with its last message. */
  close(): void {
    for (const stream of this.#streams.keys()) stream.end()
  }

  /** The limit is per key, over all of its sessions. */
  #checkRoom(owner: Caller, rule: 'streams_full' | 'session_streams_full'): void {
    const { maxStreams = 1024, maxOfOne = 64 } = this.#options
    const ofOne = [...this.#streams.values()].filter((one) => one === owner).length
    if (this.#streams.size >= maxStreams || ofOne >= maxOfOne)
      throw new RpcFault(rule, 'Subscription limit reached: too many streams are open already.')
  }

  async #serve(
    watch: Watch,
    stream: EventStream,
    caller: Caller,
    owner: Caller,
    { greeting, changed }: { greeting?: object; changed: object },
  ): Promise<void> {
    const { onFault, keepAliveMs = 15_000 } = this.#options
    this.#streams.set(stream, owner)
    this.#keepAlive ??= setInterval(() => {
      for (const one of this.#streams.keys()) one.keepAlive()
    }, keepAliveMs).unref()
    const watching = watch.watch(caller, () => stream.send(changed))
    stream.onClose(() => {
      this.#streams.delete(stream)
      watching.then((end) => end()).catch(onFault)
      if (this.#streams.size > 0) return
      clearInterval(this.#keepAlive)
      this.#keepAlive = undefined
    })
    try {
      // Every change after the greeting is announced.
      await watching
      stream.begin(greeting)
    } catch (error) {
      onFault(error)
      stream.end()
    }
  }
}

/** @throws {RpcFault} `params_invalid` */
function asksForTools(params: JsonObject): boolean {
  const filter = params['notifications']
  const refuse = (problem: string) => new RpcFault('params_invalid', `params.notifications ${problem}.`)
  if (!isObject(filter)) throw refuse('must be an object')
  for (const flag of FLAGS)
    if (filter[flag] !== undefined && typeof filter[flag] !== 'boolean') throw refuse(`must have a boolean ${flag}`)
  const uris = filter['resourceSubscriptions']
  if (uris !== undefined && !(Array.isArray(uris) && uris.every((uri) => typeof uri === 'string')))
    throw refuse('must have a list of URIs as resourceSubscriptions')
  return filter['toolsListChanged'] === true
}

function notification(method: string, params?: object): object {
  return { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }
}

/** Events are small, so a client with so many unread ones has stopped reading. */
const MAX_UNREAD_BYTES = 64 * 1024

class EventStream {
  readonly #response: ServerResponse
  readonly #last: object | undefined
  /** The session that it was opened in. */
  readonly session: string | undefined

  /** `last` is sent before the stream ends. */
  constructor(response: ServerResponse, last?: object, session?: string) {
    this.#response = response
    this.#last = last
    this.session = session
  }

  begin(greeting: object | undefined): void {
    const response = this.#response
    if (response.destroyed || response.writableEnded) return
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    response.flushHeaders()
    if (greeting) this.send(greeting)
  }

  send(message: object): void {
    this.#write(toEvent(JSON.stringify(message)))
  }

  keepAlive(): void {
    this.#write(': keepalive\n\n')
  }

  end(): void {
    if (this.#last) this.send(this.#last)
    this.#response.end()
  }

  onClose(listener: () => void): void {
    if (this.#response.destroyed) listener()
    else this.#response.once('close', listener)
  }

  #write(text: string): void {
    const response = this.#response
    if (!response.headersSent || response.destroyed || response.writableEnded) return
    // Unread events must not use up memory.
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
    else response.write(text)
  }
}
