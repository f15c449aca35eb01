import type { Progress } from '@toolgate/core'
import { type Cancelling, type JsonObject, toCancelling } from '@toolgate/core/internal'
import { UpstreamError } from './upstream.ts'

export type Era = 'legacy' | 'modern'

/** What a server said of itself when the connection was made. */
export interface Handshake {
  readonly era: Era
  readonly protocolVersion: string
  readonly serverInfo: { readonly name: string; readonly version: string } | undefined
  readonly capabilities: JsonObject
}

/** What follows a request on its way. */
interface RequestTrace {
  /** Goes into the request's `_meta`. */
  readonly meta: JsonObject | undefined
  sentAs(id: number): void
}

export interface RequestOptions {
  /** From the sending, and again from each progress notification. */
  readonly timeoutMs: number
  /** The longest that progress can put the timeout off. Default: `timeoutMs`. */
  readonly maxTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** `Mcp-Param-*` headers, as names and values in turn. */
  readonly paramHeaders?: readonly string[] | undefined
  readonly trace?: RequestTrace | undefined
}

/** A server that has answered its handshake, over whatever transport. */
export interface Connection extends Handshake {
  /** @throws {UpstreamError} */
  request(method: string, params: JsonObject, options: RequestOptions): Promise<JsonObject>
  close(): Promise<void>
}

export interface ConnectionHooks {
  onListChanged(): void
  /** The server was shaken hands with again. */
  onRenewed(handshake: Handshake): void
  /** Once, unless it was closed before: nothing will be answered any more. */
  onLost(error: UpstreamError): void
  log(level: LogLevel, message: string, detail?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface ConnectOptions {
  readonly era: 'auto' | Era
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly hooks: ConnectionHooks
}

/** A request that was sent and waits for its answer. What comes first counts. */
export interface Pending<T> {
  readonly promise: Promise<T>
  isSettled(): boolean
  resolve(value: T): void
  reject(error: UpstreamError): void
  /** Takes the params of a progress notification: puts the timeout off and tells the caller. */
  progress(params: JsonObject): void
}

/**
 * Gives a pending request that ends by itself at its timeout and when its caller goes away.
 *
 * `onGivenUp` is then called, to tell the server.
 */
export function createPending<T>(options: RequestOptions, onGivenUp: (error: UpstreamError) => void): Pending<T> {
  const { timeoutMs, maxTimeoutMs = timeoutMs, signal, onProgress } = options
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const startedMs = performance.now()
  let settled = false
  let timer = setTimeout(onTimeout, timeoutMs)
  const unwatch = signal && toCancelling(signal).onAbort(onAbort)

  return {
    promise,
    isSettled: () => settled,
    resolve: (value) => settle(() => resolve(value)),
    reject: (error) => settle(() => reject(error)),
    progress,
  }

  function settle(end: () => void): void {
    if (settled) return
    settled = true
    clearTimeout(timer)
    unwatch?.()
    end()
  }

  function giveUp(error: UpstreamError): void {
    settle(() => reject(error))
    onGivenUp(error)
  }

  function onAbort(): void {
    giveUp(abortedError(signal))
  }

  function onTimeout(): void {
    giveUp(new UpstreamError('upstream_timeout', `did not answer in ${seconds(performance.now() - startedMs)}`))
  }

  function progress(params: JsonObject): void {
    const parsed = parseProgress(params)
    if (settled || !parsed) return
    clearTimeout(timer)
    timer = setTimeout(onTimeout, Math.min(timeoutMs, startedMs + maxTimeoutMs - performance.now()))
    try {
      onProgress?.(parsed)
    } catch {
      // A listener that throws loses its notification; the call goes on.
    }
  }
}

export function abortedError(signal: AbortSignal | Cancelling | undefined): UpstreamError {
  return new UpstreamError('aborted', 'was aborted by its caller', { cause: signal?.reason })
}

/** `10 s`, `0.5 s`. */
export function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}

function parseProgress({ progress, total, message }: JsonObject): Progress | undefined {
  if (typeof progress !== 'number') return undefined
  return {
    progress,
    ...(typeof total === 'number' ? { total } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  }
}
