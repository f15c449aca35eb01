import type { ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import { isObject } from '../upstream/json-rpc.ts'
import type { Params } from './envelope.ts'
import type { ListWatch } from './list-watch.ts'
import { META, type RequestId, RpcFault } from './protocol.ts'

export interface ChangeStreamsDeps {
  readonly watch: Pick<ListWatch, 'watch'>
  readonly serverInfo: { readonly name: string; readonly version: string }
  readonly onFault: (error: unknown) => void
  /** Default 15,000 ms. */
  readonly keepAliveMs?: number
  /** Default 1,024. */
  readonly maxStreams?: number
  /** Of one key. Default 64. */
  readonly maxOfOne?: number
}

/** Tells clients that their list of tools has changed, on event streams that stay open. */
export interface ChangeStreams extends Streams {
  /** The same, of lists that another watch knows: they count together. */
  over(watch: ChangeStreamsDeps['watch']): Streams
  readonly count: number
  /** Ends every stream in order. */
  close(): void
}

export interface Streams {
  /**
   * Serves `subscriptions/listen` (MCP 2026-07-28).
   *
   * @throws {RpcFault} `params_invalid`, `streams_full`
   */
  listen(params: Params, id: RequestId, caller: Caller, response: ServerResponse): Promise<void>
  /**
   * Serves the stream that a client of an earlier revision opens with GET, on its session.
   *
   * @throws {RpcFault} `session_streams_full`
   */
  open(caller: Caller, owner: Caller, response: ServerResponse): Promise<void>
}

/** Frames are small, so a client with so many unread ones has stopped reading. */
const MAX_UNREAD_BYTES = 64 * 1024
const CHANGED = 'notifications/tools/list_changed'
const FLAGS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const

export function createChangeStreams(deps: ChangeStreamsDeps): ChangeStreams {
  const { serverInfo, keepAliveMs = 15_000, maxStreams = 1024, maxOfOne = 64 } = deps
  const streams = new Map<EventStream, Caller>()
  let heart: NodeJS.Timeout | undefined

  const over = (watch: ChangeStreamsDeps['watch']): Streams => ({
    async listen(params, id, caller, response) {
      const isAsked = parseFilter(params).toolsListChanged
      const meta = { [META.subscriptionId]: id }
      const end = {
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', _meta: { ...meta, [META.serverInfo]: serverInfo } },
      }
      checkRoom(caller, 'streams_full')
      const stream = createEventStream(response, () => end)
      await follow(watch, stream, caller, caller, {
        greeting: notification('notifications/subscriptions/acknowledged', {
          notifications: isAsked ? { toolsListChanged: true } : {},
          _meta: meta,
        }),
        changed: notification(CHANGED, { _meta: meta }),
      })
      // Nothing that was asked for comes ever.
      if (!isAsked) stream.end()
    },
    async open(caller, owner, response) {
      checkRoom(owner, 'session_streams_full')
      await follow(watch, createEventStream(response), caller, owner, { changed: notification(CHANGED) })
    },
  })

  return {
    ...over(deps.watch),
    over,
    get count() {
      return streams.size
    },
    close() {
      for (const stream of streams.keys()) stream.end()
    },
  }

  /** Whoever has one key has one share, whatever sessions it names. */
  function checkRoom(owner: Caller, rule: 'streams_full' | 'session_streams_full'): void {
    const ofOne = [...streams.values()].filter((one) => one === owner).length
    if (streams.size >= maxStreams || ofOne >= maxOfOne)
      throw new RpcFault(rule, 'Subscription limit reached: too many streams are open already.')
  }

  async function follow(
    watch: ChangeStreamsDeps['watch'],
    stream: EventStream,
    caller: Caller,
    owner: Caller,
    { greeting, changed }: { greeting?: object; changed: object },
  ): Promise<void> {
    streams.set(stream, owner)
    heart ??= setInterval(() => {
      for (const one of streams.keys()) one.keepAlive()
    }, keepAliveMs).unref()
    const leave = watch.watch(caller, () => stream.send(changed))
    stream.onClose(() => {
      streams.delete(stream)
      leave.then((off) => off()).catch(deps.onFault)
      if (streams.size > 0) return
      clearInterval(heart)
      heart = undefined
    })
    try {
      // What changes from here on is told.
      await leave
      stream.begin(greeting)
    } catch (error) {
      deps.onFault(error)
      stream.end()
    }
  }
}

function parseFilter(params: Params): { readonly toolsListChanged: boolean } {
  const filter = params['notifications']
  const refuse = (problem: string) => new RpcFault('params_invalid', `params.notifications ${problem}.`)
  if (!isObject(filter)) throw refuse('must be an object')
  for (const flag of FLAGS)
    if (filter[flag] !== undefined && typeof filter[flag] !== 'boolean') throw refuse(`must have a boolean ${flag}`)
  const uris = filter['resourceSubscriptions']
  if (uris !== undefined && !(Array.isArray(uris) && uris.every((uri) => typeof uri === 'string')))
    throw refuse('must have a list of URIs as resourceSubscriptions')
  return { toolsListChanged: filter['toolsListChanged'] === true }
}

function notification(method: string, params?: object): object {
  return { jsonrpc: '2.0', method, ...(params === undefined ? {} : { params }) }
}

interface EventStream {
  begin(greeting: object | undefined): void
  send(message: object): void
  keepAlive(): void
  end(): void
  onClose(listener: () => void): void
}

function createEventStream(response: ServerResponse, last?: () => object): EventStream {
  const write = (text: string) => {
    if (!response.headersSent || response.destroyed || response.writableEnded) return
    // Memory for a client that does not read is not to be had.
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
    else response.write(text)
  }
  return {
    begin(greeting) {
      if (response.destroyed || response.writableEnded) return
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store, no-transform',
        'x-accel-buffering': 'no',
      })
      response.flushHeaders()
      if (greeting) write(toEvent(greeting))
    },
    send: (message) => write(toEvent(message)),
    keepAlive: () => write(': keepalive\n\n'),
    end() {
      if (last) write(toEvent(last()))
      response.end()
    },
    onClose(listener) {
      if (response.destroyed) listener()
      else response.once('close', listener)
    },
  }
}

function toEvent(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`
}
