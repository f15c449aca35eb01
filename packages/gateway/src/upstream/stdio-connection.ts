import { setTimeout as sleep } from 'node:timers/promises'

import type { Child } from './child.ts'
import type { ConnectOptions, Connection, Handshake, RequestOptions } from './connection.ts'
import { createFloodGuard, FLOOD } from './flood.ts'
import { discover, initialize } from './handshake.ts'
import { clip, type JsonObject, METHOD_NOT_FOUND, notMcp, parseMessages, type RpcMessage } from './json-rpc.ts'
import { isLarge } from '../next-turn.ts'
import { LIMITS } from './limits.ts'
import { createLineSplitter } from './lines.ts'
import { keepListening, type Listening, type StreamEnd } from './listening.ts'
import { abortedError, createPending, type Pending } from './pending.ts'
import { encode, encodeRequest, MODERN_VERSION } from './protocol.ts'
import { rpcError } from './rpc-error.ts'
import {
  ACKNOWLEDGE_MS,
  announcesChanges,
  createSubscription,
  LISTEN,
  LISTEN_PARAMS,
  type Subscription,
} from './subscription.ts'
import { UpstreamError } from './upstream.ts'

/** Requests whose late answers are still known as answers. */
const MAX_UNANSWERED = 10_000

interface OpenSubscription {
  readonly id: number
  readonly subscription: Subscription
  resolve(end: StreamEnd): void
}

/**
 * Speaks MCP with a child over its stdin and stdout: one JSON-RPC message a line.
 *
 * `auto` is `legacy` here: there is no way to ask a child for its era that all of them survive.
 *
 * @throws {UpstreamError} when the child does not shake hands
 */
export async function connectStdio(child: Child, options: ConnectOptions): Promise<Connection> {
  const { hooks, signal, timeoutMs } = options
  const era = options.era === 'modern' ? 'modern' : 'legacy'
  const waiting = new Map<number, Pending<JsonObject>>()
  /** What was asked and not answered yet, also where nobody waits any longer: the oldest first. */
  const unanswered = new Set<number>()
  const flood = createFloodGuard(() => performance.now())
  let nextId = 1
  let ended: UpstreamError | undefined
  let connected = false
  let stray: string | undefined
  let strays = 0
  let listening: Listening | undefined
  let subscribed: OpenSubscription | undefined

  const split = createLineSplitter(LIMITS.messageBytes, (line, bytes) =>
    isLarge(line) ? setImmediate(onLargeLine, line, bytes) : onLine(line, bytes),
  )
  child.stdout?.on('data', onData)
  void child.gone.then((reason) => fail(new UpstreamError('upstream_down', reason)))

  const handshake = await shakeHands()
  connected = true
  if (era === 'modern' && announcesChanges(handshake)) {
    listening = keepListening({ open: subscribe, onGap: hooks.onListChanged })
    // A change between the reading of the list and the subscription would be missed.
    await Promise.race([listening.begun, sleep(ACKNOWLEDGE_MS, undefined, { ref: false })])
  }
  return { ...handshake, request, close }

  async function shakeHands(): Promise<Handshake> {
    const ask = (method: string, params: JsonObject) => request(method, params, { timeoutMs, signal })
    try {
      if (era === 'legacy') {
        const made = await initialize(ask)
        send({ jsonrpc: '2.0', method: 'notifications/initialized' })
        return made
      }
      const made = await discover(ask)
      if (!made) throw new UpstreamError('upstream_protocol', `does not speak MCP ${MODERN_VERSION}`)
      return made
    } catch (error) {
      // Silence after something else was said: what was said explains more.
      throw stray !== undefined && isTimeout(error) ? notMcp(stray) : error
    }
  }

  function request(method: string, params: JsonObject, requestOptions: RequestOptions): Promise<JsonObject> {
    const { signal: caller, onProgress, trace } = requestOptions
    if (caller?.aborted) return Promise.reject(abortedError(caller))
    if (ended) return Promise.reject(new UpstreamError('upstream_down', ended.message, { cause: ended }))
    if ((child.stdin?.writableLength ?? 0) > LIMITS.unreadInputBytes) {
      return Promise.reject(new UpstreamError('upstream_down', 'does not read what it is sent'))
    }
    const id = nextId++
    const pending = createPending<JsonObject>(requestOptions, (error) => {
      waiting.delete(id)
      // MCP forbids to cancel the handshake.
      if (method !== 'initialize') cancel(id, error.message)
    })
    try {
      const text = encodeRequest(era, id, method, params, { progress: onProgress !== undefined, meta: trace?.meta })
      child.stdin?.write(`${text}\n`)
      trace?.sentAs(id)
      waiting.set(id, pending)
      expectAnswer(id)
    } catch (error) {
      pending.reject(error as UpstreamError)
    }
    return pending.promise
  }

  function expectAnswer(id: number): void {
    unanswered.add(id)
    if (unanswered.size > MAX_UNANSWERED) unanswered.delete(unanswered.values().next().value as number)
  }

  function subscribe(stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    const { promise, resolve } = Promise.withResolvers<StreamEnd>()
    const id = nextId++
    subscribed = { id, subscription: createSubscription(onOpen), resolve }
    stopped.addEventListener('abort', () => resolve({ again: false }), { once: true })
    if (!ended) child.stdin?.write(`${encodeRequest('modern', id, LISTEN, LISTEN_PARAMS, { progress: false })}\n`)
    return promise
  }

  /** Returns `true` for the answer that ends the subscription. */
  function endsSubscription(id: unknown, code?: number): boolean {
    if (subscribed === undefined || id !== subscribed.id) return false
    subscribed.resolve(subscribed.subscription.end(code))
    subscribed = undefined
    return true
  }

  function send(message: JsonObject): void {
    if (!ended) child.stdin?.write(`${encode(message)}\n`)
  }

  function cancel(requestId: number, reason: string): void {
    send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } })
  }

  function onData(chunk: Buffer): void {
    if (ended) return
    try {
      split(chunk)
      if (flood.add(chunk.length)) throw new UpstreamError('upstream_too_large', `wrote ${FLOOD} to stdout`)
    } catch (error) {
      fail(error as UpstreamError)
    }
  }

  /** In a turn of its own: what it took to receive it is not added to what it takes to parse it. */
  function onLargeLine(line: string, bytes: number): void {
    try {
      onLine(line, bytes)
    } catch (error) {
      fail(error as UpstreamError)
    }
  }

  function onLine(line: string, bytes: number): void {
    if (ended || line === '') return
    let messages: readonly RpcMessage[]
    try {
      messages = parseMessages(line)
    } catch (error) {
      onStray(line, error as UpstreamError)
      return
    }
    strays = 0
    if (messages.filter(isAnswer).length > 0) flood.takeBack(bytes)
    for (const message of messages) onMessage(message)
  }

  /** Returns `true` for the first answer to a request. */
  function isAnswer(message: RpcMessage): boolean {
    return message.kind !== 'request' && message.kind !== 'notification' && unanswered.delete(message.id as number)
  }

  /** Many servers print a banner, or debug, on stdout. That is borne until it is all they do. */
  function onStray(line: string, error: UpstreamError): void {
    if (stray === undefined) hooks.log('warn', 'wrote a line to stdout that is not MCP', clip(line))
    stray ??= line
    // Somebody may wait for what was too large to be looked at.
    if (error.code === 'upstream_too_large' || ++strays > LIMITS.strayLines) throw error
  }

  function onMessage(message: RpcMessage): void {
    switch (message.kind) {
      case 'request':
        return refuse(message)
      case 'notification':
        return onNotification(message.method, message.params)
      case 'result':
        return endsSubscription(message.id) ? undefined : take(message.id)?.resolve(message.result)
      case 'error':
        if (endsSubscription(message.id, message.error.code)) return undefined
        return take(message.id)?.reject(rpcError(message.error))
      case 'unusable':
        return take(message.id)?.reject(message.error)
    }
  }

  function take(id: unknown): Pending<JsonObject> | undefined {
    const pending = waiting.get(id as number)
    waiting.delete(id as number)
    return pending
  }

  function onNotification(method: string, params: JsonObject): void {
    if (method === 'notifications/progress') waiting.get(params['progressToken'] as number)?.progress(params)
    else if (method === 'notifications/tools/list_changed') hooks.onListChanged()
    else subscribed?.subscription.onNotification(method, params)
  }

  /** MCP 2026-07-28 has no requests from server to client, and clients must not answer one there. */
  function refuse({ id, method }: { id: unknown; method: string }): void {
    hooks.log('warn', 'sent a request to its client, which was refused', clip(method))
    if (era === 'modern') return
    const error = { code: METHOD_NOT_FOUND, message: `${clip(method, 100)} is not supported` }
    send({ jsonrpc: '2.0', id, error })
  }

  function fail(error: UpstreamError): void {
    if (ended) return
    ended = error
    listening?.stop()
    // A flood is not read to its end; the child itself is stopped by whoever started it.
    child.stdout?.destroy()
    for (const pending of waiting.values()) pending.reject(error)
    waiting.clear()
    if (connected) hooks.onLost(error)
  }

  async function close(): Promise<void> {
    connected = false
    fail(new UpstreamError('upstream_down', 'was stopped'))
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof UpstreamError && error.code === 'upstream_timeout'
}
