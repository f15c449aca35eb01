import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '@toolgate/values/json'
import type { RequestId } from '@toolgate/mcp'
import { isLarge } from '../../util/next-turn.ts'
import {
  ACKNOWLEDGE_MS,
  announcedLists,
  changedList,
  RESOURCE_UPDATED,
  createSubscription,
  keepListening,
  LISTEN,
  type Listening,
  listenTo,
  type StreamEnd,
  type Subscription,
  type SubscriptionFilter,
} from './announcements.ts'
import type { Child } from './child.ts'
import {
  abortedError,
  type Connection,
  type ConnectOptions,
  createPending,
  type Handshake,
  type Pending,
  type RequestOptions,
} from './connection.ts'
import { AskedClients, NOBODY } from './asked-clients.ts'
import { clip, notMcp, parseMessages, type RpcMessage, rpcError, toOwnId } from './json-rpc.ts'
import { createFloodGuard, FLOOD, type FloodGuard, LIMITS } from './limits.ts'
import { createLineSplitter, type LongLine, messageTooLarge } from './lines.ts'
import { MessageScan } from './message-scan.ts'
import {
  discover,
  encode,
  encodeRequest,
  handshakeCapabilities,
  initialize,
  joinMeta,
  MODERN_VERSION,
} from './protocol.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** The maximum number of requests whose late answers are recognized. */
const MAX_UNANSWERED = 10_000

/**
 * Connects to a child over its stdin and stdout, with one JSON-RPC message per line.
 *
 * `auto` means `legacy` here, because some servers crash at a request of the other era.
 *
 * @throws {UpstreamError} if the handshake fails
 */
export async function connectStdio(child: Child, options: ConnectOptions): Promise<Connection> {
  const connection = new StdioConnection(child, options)
  const handshake = await connection.open()
  return {
    ...handshake,
    request: (method, params, asked) => connection.request(method, params, asked),
    ...(handshake.era === 'modern' && { watch: (uris: readonly string[]) => connection.watch(uris) }),
    close: () => connection.close(),
  }
}

interface OpenSubscription {
  readonly id: number
  readonly subscription: Subscription
  resolve(end: StreamEnd): void
}

class StdioConnection {
  readonly #child: Child
  readonly #options: ConnectOptions
  readonly #era: 'legacy' | 'modern'
  readonly #waiting = new Map<RequestId, Pending<JsonObject>>()
  /** Requests without an answer, oldest first, including cancelled ones. */
  readonly #unanswered = new Set<RequestId>()
  readonly #clients = new AskedClients((method, why) =>
    this.#options.hooks.log('info', `asked for ${method}, which no client got`, why),
  )
  readonly #flood: FloodGuard = createFloodGuard(() => performance.now())
  readonly #split: (chunk: Buffer) => void
  #nextId = 1
  #isConnected = false
  #ended: UpstreamError | undefined
  /** The first line that was not MCP. */
  #stray: string | undefined
  /** While a line is skipped: the timer that limits it. */
  #skipping: NodeJS.Timeout | undefined
  #strays = 0
  #listening: Listening | undefined
  #announced: ReturnType<typeof announcedLists> = { lists: [], isDeclared: false }
  #subscribed: OpenSubscription | undefined

  constructor(child: Child, options: ConnectOptions) {
    this.#child = child
    this.#options = options
    this.#era = options.era === 'modern' ? 'modern' : 'legacy'
    const onLine = (line: string, bytes: number, isUtf8: boolean) => {
      // A large line is parsed in its own turn of the event loop.
      if (isLarge(line)) setImmediate(() => this.#failing(() => this.#onLine(line, bytes, isUtf8)))
      else this.#onLine(line, bytes, isUtf8)
    }
    this.#split = createLineSplitter(LIMITS.messageBytes, onLine, () => this.#skipLine())
    child.stdout?.on('data', (chunk: Buffer) => this.#onData(chunk))
    void child.gone.then((reason) => this.#fail(new UpstreamError('upstream_down', reason)))
  }

  /** Performs the handshake and subscribes to announcements. */
  async open(): Promise<Handshake> {
    const handshake = await this.#shakeHands()
    this.#isConnected = true
    this.#announced = announcedLists(handshake, this.#options.hooks.offers)
    // Awaited, since a change between the first read of the list and the subscription would be missed.
    if (this.#era === 'modern') await this.#listen([])
    return handshake
  }

  /** Subscribes again, to these resources too. */
  async watch(uris: readonly string[]): Promise<void> {
    await this.#listen(uris)
    // Changes between the two subscriptions were not announced.
    this.#announced.lists.forEach(this.#options.hooks.onListChanged)
  }

  async #listen(uris: readonly string[]): Promise<void> {
    this.#listening?.stop()
    const { lists, isDeclared } = this.#announced
    if (lists.length + uris.length === 0) return
    const isSure = isDeclared || uris.length > 0
    this.#listening = keepListening({
      open: (stopped, onOpen) => this.#subscribe(listenTo(lists, uris), isSure, stopped, onOpen),
      onGap: () => lists.forEach(this.#options.hooks.onListChanged),
    })
    await Promise.race([this.#listening.begun, sleep(ACKNOWLEDGE_MS, undefined, { ref: false })])
  }

  request(method: string, params: JsonObject, asked: RequestOptions): Promise<JsonObject> {
    const { signal, onProgress, trace, meta, client } = asked
    if (signal?.aborted) return Promise.reject(abortedError(signal))
    if (this.#ended)
      return Promise.reject(new UpstreamError('upstream_down', this.#ended.message, { cause: this.#ended }))
    if ((this.#child.stdin?.writableLength ?? 0) > LIMITS.unreadInputBytes)
      return Promise.reject(new UpstreamError('upstream_down', 'does not read its input'))
    const id = this.#nextId++
    const pending = createPending<JsonObject>(asked, (error) => this.#giveUp(id, method, error))
    try {
      const text = encodeRequest(this.#era, id, method, params, {
        progress: onProgress !== undefined,
        meta: joinMeta(trace?.meta, meta),
      })
      this.#child.stdin?.write(`${text}\n`)
      trace?.sentAs(id)
      this.#waiting.set(id, pending)
      this.#expectAnswer(id)
    } catch (error) {
      pending.reject(UpstreamError.from(error))
    }
    if (!client) return pending.promise
    const { remove } = this.#clients.add({ client, hold: pending.hold })
    return pending.promise.finally(remove)
  }

  async close(): Promise<void> {
    this.#isConnected = false
    this.#fail(new UpstreamError('upstream_down', 'was stopped'))
  }

  async #shakeHands(): Promise<Handshake> {
    const { timeoutMs, signal } = this.#options
    const ask = (method: string, params: JsonObject) => this.request(method, params, { timeoutMs, signal })
    try {
      if (this.#era === 'legacy') {
        const handshake = await initialize(ask, handshakeCapabilities(this.#options.may))
        this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' })
        return handshake
      }
      const handshake = await discover(ask)
      if (!handshake) throw new UpstreamError('upstream_protocol', `does not speak MCP ${MODERN_VERSION}`)
      return handshake
    } catch (error) {
      // A line that is not MCP explains more than a timeout.
      throw this.#stray !== undefined && isTimeout(error) ? notMcp(this.#stray) : error
    }
  }

  #giveUp(requestId: number, method: string, { message: reason }: UpstreamError): void {
    this.#waiting.delete(requestId)
    // MCP forbids cancelling the handshake.
    if (method === 'initialize') return
    this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } })
  }

  #expectAnswer(id: number): void {
    this.#unanswered.add(id)
    if (this.#unanswered.size <= MAX_UNANSWERED) return
    for (const oldest of this.#unanswered) {
      this.#unanswered.delete(oldest)
      return
    }
  }

  #subscribe(
    filter: SubscriptionFilter,
    isDeclared: boolean,
    stopped: AbortSignal,
    onOpen: () => void,
  ): Promise<StreamEnd> {
    const { promise, resolve } = Promise.withResolvers<StreamEnd>()
    const id = this.#nextId++
    this.#subscribed = { id, subscription: createSubscription(filter, isDeclared, onOpen), resolve }
    const params = { notifications: filter }
    stopped.addEventListener('abort', () => resolve({ again: false }), { once: true })
    if (!this.#ended) this.#child.stdin?.write(`${encodeRequest('modern', id, LISTEN, params, { progress: false })}\n`)
    return promise
  }

  /** Returns `true` for the answer that ends the subscription. */
  #endsSubscription(id: RequestId | null, code?: number): boolean {
    if (this.#subscribed === undefined || id !== this.#subscribed.id) return false
    this.#subscribed.resolve(this.#subscribed.subscription.end(code))
    this.#subscribed = undefined
    return true
  }

  #send(message: JsonObject): void {
    if (!this.#ended) this.#child.stdin?.write(`${encode(message)}\n`)
  }

  #onData(chunk: Buffer): void {
    if (this.#ended) return
    this.#failing(() => {
      this.#split(chunk)
      if (this.#flood.add(chunk.length) && !this.#maySkip())
        throw new UpstreamError('upstream_too_large', `wrote ${FLOOD} to stdout`)
    })
  }

  /** Whether the bytes may belong to a skipped answer. */
  #maySkip(): boolean {
    return this.#skipping !== undefined && this.#unanswered.size > 0
  }

  /** Skips a line that is too long to keep. Only the call that it answers fails. */
  #skipLine(): LongLine {
    const scan = new MessageScan()
    this.#skipping = setTimeout(() => this.#fail(messageTooLarge()), LIMITS.skippedMs).unref()
    return {
      push: (text, bytes) => {
        if (!scan.push(text) || bytes > LIMITS.skippedBytes) throw messageTooLarge()
      },
      end: (bytes) => {
        clearTimeout(this.#skipping)
        this.#skipping = undefined
        const scanned = scan.end()
        if (scanned?.kind === 'answer' && this.#unanswered.delete(scanned.id)) {
          this.#flood.takeBack(bytes)
          this.#take(scanned.id)?.reject(messageTooLarge())
        } else if (scanned?.kind === 'other') {
          this.#options.hooks.log('warn', 'sent a message that is too large, which was ignored', `${bytes} bytes`)
        } else throw messageTooLarge()
      },
    }
  }

  /** Runs a step whose errors end the connection. */
  #failing(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#fail(UpstreamError.from(error))
    }
  }

  #onLine(line: string, bytes: number, isUtf8: boolean): void {
    if (this.#ended || line === '') return
    let messages: readonly RpcMessage[]
    try {
      messages = parseMessages(line, isUtf8)
    } catch (error) {
      this.#onStray(line, UpstreamError.from(error))
      return
    }
    this.#strays = 0
    if (messages.filter((message) => this.#isAnswer(message)).length > 0) this.#flood.takeBack(bytes)
    for (const message of messages) this.#onMessage(message)
  }

  /** Returns `true` for the first answer to a request. */
  #isAnswer(message: RpcMessage): boolean {
    if (message.kind === 'request' || message.kind === 'notification' || message.id === null) return false
    return this.#unanswered.delete(message.id)
  }

  /** Ignores a line that is not JSON-RPC, up to a limit. Many servers print a banner or debug output on stdout. */
  #onStray(line: string, error: UpstreamError): void {
    if (this.#stray === undefined) this.#options.hooks.log('warn', 'wrote a line to stdout that is not MCP', clip(line))
    this.#stray ??= line
    // The line may be a too large answer, for which a request waits.
    if (error.code === 'upstream_too_large' || ++this.#strays > LIMITS.strayLines) throw error
  }

  #onMessage(message: RpcMessage): void {
    switch (message.kind) {
      case 'request':
        return this.#onRequest(message)
      case 'notification':
        return this.#onNotification(message.method, message.params)
      case 'result':
        if (!this.#endsSubscription(message.id)) this.#take(message.id)?.resolve(message.result)
        return
      case 'error':
        if (!this.#endsSubscription(message.id, message.error.code))
          this.#take(message.id)?.reject(rpcError(message.error))
        return
      case 'unusable':
        this.#take(message.id)?.reject(message.error)
    }
  }

  #take(id: RequestId | null): Pending<JsonObject> | undefined {
    if (id === null) return undefined
    const pending = this.#waiting.get(id)
    this.#waiting.delete(id)
    return pending
  }

  #onNotification(method: string, params: JsonObject): void {
    const progressToken = toOwnId(params['progressToken'])
    const list = changedList(method)
    if (method === 'notifications/message') this.#clients.log(params)
    else if (method === 'notifications/cancelled') this.#clients.cancel(params)
    else if (list !== undefined) this.#options.hooks.onListChanged(list)
    else if (method === RESOURCE_UPDATED) this.#options.hooks.onResourceUpdated(params['uri'])
    else if (method !== 'notifications/progress') this.#subscribed?.subscription.onNotification(method, params)
    else if (typeof progressToken === 'number') this.#waiting.get(progressToken)?.progress(params)
  }

  /** Answers a request of the server. MCP 2026-07-28 has none, so nobody is asked, but a server that waits for an answer gets one. */
  #onRequest(request: RpcMessage & { kind: 'request' }): void {
    const isModern = this.#era === 'modern'
    if (isModern)
      this.#options.hooks.log('warn', 'sent a request to its client, which was refused', clip(request.method))
    void this.#clients.answer(request, isModern ? NOBODY : undefined).then((answer) => this.#send(answer))
  }

  #fail(error: UpstreamError): void {
    if (this.#ended) return
    this.#ended = error
    clearTimeout(this.#skipping)
    this.#listening?.stop()
    // A flood is not read to its end. The owner of the child stops the child.
    this.#child.stdout?.destroy()
    for (const pending of this.#waiting.values()) pending.reject(error)
    this.#waiting.clear()
    if (this.#isConnected) this.#options.hooks.onLost(error)
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof UpstreamError && error.code === 'upstream_timeout'
}
