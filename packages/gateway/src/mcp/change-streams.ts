import type { ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { LIST_NAMES, type ListName, type ListWatch, META, type RequestId } from '@toolgate/mcp'
import { RpcFault, toEvent } from '../model/protocol.ts'
import { RESOURCE_UPDATED } from '../servers/transport/announcements.ts'
import type { ResourceSubscriptions } from './resources/subscriptions.ts'

interface ChangeStreamsOptions {
  readonly serverInfo: { readonly name: string; readonly version: string }
  readonly onFault: (error: unknown) => void
  /** The lists that at least one server offers. Default: tools. */
  readonly offers?: () => readonly ListName[]
  /** Default 15,000 ms. */
  readonly keepAliveMs?: number
  /** The maximum number of streams. Default 1,024. */
  readonly maxStreams?: number
  /** The maximum for one key. Default 64. */
  readonly maxOfOne?: number
}

type Watch = Pick<ListWatch, 'watch'>

/** The subscription of a stream. */
interface StreamSubscription {
  readonly watch: Watch
  readonly subscriptions?: Pick<ResourceSubscriptions, 'subscribe'> | undefined
  /**
   * Whether the credential that opened the stream is still valid: a token may expire or be revoked. Default: always.
   */
  readonly holds?: (() => boolean) | undefined
  /** Whether changes before the stream went unannounced, so that it begins with one for each list. Default: false. */
  readonly hasGap?: boolean
}

/** The event streams that notify clients of changes to their lists. All apps share the limits. */
export class ChangeStreams {
  readonly #options: ChangeStreamsOptions
  /** The open streams. Each counts towards the limit of its caller. */
  readonly #streams = new Map<ChangeStream, Caller>()
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
    { watch, subscriptions, holds }: StreamSubscription,
    params: JsonObject,
    id: RequestId,
    caller: Caller,
    response: ServerResponse,
  ): Promise<void> {
    const lists = listsAskedFor(params).filter((list) => this.#offers.includes(list))
    const meta = { [META.subscriptionId]: id }
    const { serverInfo } = this.#options
    this.#checkRoom(caller, 'streams_full')
    const result = { resultType: 'complete', _meta: { ...meta, [META.serverInfo]: serverInfo } }
    const stream = new ChangeStream(response, { last: { jsonrpc: '2.0', id, result }, holds })
    const asked = urisAskedFor(params)
    this.#enter(stream, caller)
    const uris = await this.#subscribe(subscriptions, stream, asked, caller, meta)
    await this.#serve(watch, stream, caller, {
      greetings: [
        notification('notifications/subscriptions/acknowledged', {
          notifications: {
            ...Object.fromEntries(lists.map((list) => [flagOf(list), true])),
            ...(uris.length > 0 && { resourceSubscriptions: uris }),
          },
          _meta: meta,
        }),
      ],
      lists,
      params: { _meta: meta },
    })
    // The client asked only for notifications that this server never sends.
    if (lists.length + uris.length === 0) stream.end()
  }

  /** Returns the URIs whose changes will be sent. Refused URIs are left out without a reason. */
  async #subscribe(
    subscriptions: StreamSubscription['subscriptions'],
    stream: ChangeStream,
    uris: readonly string[],
    caller: Caller,
    meta: object,
  ): Promise<readonly string[]> {
    if (!subscriptions) return []
    const asked = await Promise.allSettled(
      uris.map((uri) => {
        const message = notification(RESOURCE_UPDATED, { uri, _meta: meta })
        const updated = () => stream.send(message)
        return subscriptions.subscribe({ uri, caller, owner: caller, era: 'modern', updated })
      }),
    )
    const ends = asked.flatMap((one) => (one.status === 'fulfilled' && 'end' in one.value ? [one.value.end] : []))
    stream.onClose(() => ends.forEach((end) => end()))
    const failed = asked.find((one) => one.status === 'rejected')
    if (failed) {
      for (const end of ends) end()
      throw failed.reason
    }
    return uris.filter((_, i) => {
      const one = asked[i]
      return one?.status === 'fulfilled' && 'end' in one.value
    })
  }

  /**
   * Serves the stream that a client of an earlier revision opens with GET, on its session.
   *
   * @throws {RpcFault} `session_streams_full`
   */
  async open(
    { watch, holds, hasGap = false }: StreamSubscription,
    caller: Caller,
    owner: Caller,
    response: ServerResponse,
  ): Promise<void> {
    this.#checkRoom(owner, 'session_streams_full')
    const stream = new ChangeStream(response, { session: caller.session, holds })
    this.#enter(stream, owner)
    const lists = this.#offers
    const greetings = hasGap ? lists.map((list) => listChanged(list)) : []
    await this.#serve(watch, stream, caller, { greetings, lists })
  }

  /** Sends a notification on the open streams of one session's clients. It may be lost. */
  notify(session: string, method: string, params: JsonObject): void {
    for (const stream of this.#streams.keys()) if (stream.session === session) stream.send(notification(method, params))
  }

  /** Ends the streams of these callers. */
  endOf(callers: { has(caller: Caller): boolean }): void {
    for (const [stream, owner] of this.#streams) if (callers.has(owner)) stream.end()
  }

  /** Ends every stream with its last message. */
  close(): void {
    for (const stream of this.#streams.keys()) stream.end()
  }

  get #offers(): readonly ListName[] {
    return this.#options.offers?.() ?? ['tools']
  }

  /** Checks the limit per key, which counts all sessions of the key. */
  #checkRoom(owner: Caller, rule: 'streams_full' | 'session_streams_full'): void {
    const { maxStreams = 1024, maxOfOne = 64 } = this.#options
    const ofOne = [...this.#streams.values()].filter((one) => one === owner).length
    if (this.#streams.size >= maxStreams || ofOne >= maxOfOne)
      throw new RpcFault(rule, 'Subscription limit reached: too many streams are open already.')
  }

  /** Counts the stream at once, before anything is awaited, until it closes. */
  #enter(stream: ChangeStream, owner: Caller): void {
    const { keepAliveMs = 15_000 } = this.#options
    this.#streams.set(stream, owner)
    this.#keepAlive ??= setInterval(() => {
      for (const one of this.#streams.keys()) one.keepAlive()
    }, keepAliveMs).unref()
    stream.onClose(() => {
      this.#streams.delete(stream)
      if (this.#streams.size > 0) return
      clearInterval(this.#keepAlive)
      this.#keepAlive = undefined
    })
  }

  async #serve(
    watch: Watch,
    stream: ChangeStream,
    caller: Caller,
    { greetings, lists, params }: Greeting,
  ): Promise<void> {
    const { onFault } = this.#options
    const watching = Promise.all(
      lists.map((list) => {
        const changed = listChanged(list, params)
        return watch.watch(caller, () => stream.send(changed), list)
      }),
    )
    stream.onClose(() => {
      watching.then((ends) => ends.forEach((end) => end())).catch(onFault)
    })
    try {
      // Every change after the first event is announced.
      await watching
      stream.begin(greetings)
    } catch (error) {
      onFault(error)
      stream.end()
    }
  }
}

interface Greeting {
  /** The messages with which the stream begins. */
  readonly greetings: readonly object[]
  readonly lists: readonly ListName[]
  /** The parameters of each notification. */
  readonly params?: object
}

/** @throws {RpcFault} `params_invalid` */
function listsAskedFor(params: JsonObject): readonly ListName[] {
  const filter = params['notifications']
  const refuse = (problem: string) => new RpcFault('params_invalid', `params.notifications ${problem}.`)
  if (!isObject(filter)) throw refuse('must be an object')
  for (const flag of LIST_NAMES.map(flagOf))
    if (filter[flag] !== undefined && typeof filter[flag] !== 'boolean') throw refuse(`must have a boolean ${flag}`)
  return LIST_NAMES.filter((list) => filter[flagOf(list)] === true)
}

/** @throws {RpcFault} `params_invalid` */
function urisAskedFor({ notifications }: JsonObject): readonly string[] {
  const uris = isObject(notifications) ? notifications['resourceSubscriptions'] : undefined
  if (uris === undefined) return []
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string'))
    throw new RpcFault('params_invalid', 'params.notifications must have a list of URIs as resourceSubscriptions.')
  return [...new Set<string>(uris)]
}

function flagOf(list: ListName): `${ListName}ListChanged` {
  return `${list}ListChanged`
}

function listChanged(list: ListName, params?: object): object {
  return notification(`notifications/${list}/list_changed`, params)
}

function notification(method: string, params?: object): object {
  return { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }
}

/** Events are small, so a client with more unread bytes than this has stopped reading. */
const MAX_UNREAD_BYTES = 64 * 1024

interface EventStreamOptions extends Pick<StreamSubscription, 'holds'> {
  /** The message to send before the stream ends. */
  readonly last?: object
  readonly session?: string | undefined
}

class ChangeStream {
  readonly #response: ServerResponse
  readonly #last: object | undefined
  readonly #holds: () => boolean
  /** The session in which the stream was opened. */
  readonly session: string | undefined

  constructor(response: ServerResponse, { last, session, holds = () => true }: EventStreamOptions) {
    this.#response = response
    this.#last = last
    this.#holds = holds
    this.session = session
  }

  begin(greetings: readonly object[]): void {
    const response = this.#response
    if (response.destroyed || response.writableEnded) return
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    response.flushHeaders()
    for (const greeting of greetings) this.send(greeting)
  }

  /** Sends a message. If the credential is no longer accepted, it ends the stream instead. */
  send(message: object): void {
    if (this.#holds()) this.#write(toEvent(toJsonText(message)))
    else this.end()
  }

  keepAlive(): void {
    if (this.#holds()) this.#write(': keepalive\n\n')
    else this.end()
  }

  end(): void {
    if (this.#last) this.#write(toEvent(toJsonText(this.#last)))
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
