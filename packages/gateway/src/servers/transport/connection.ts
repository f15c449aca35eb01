import type { Progress } from '@toolgate/core'
import { type Cancelling, toCancelling } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { ServerMay } from '../../config/may.ts'
import { type Offer, type RequestClient, UpstreamError } from '../../model/upstream.ts'

export type Era = 'legacy' | 'modern'

/** What a server reports about itself when the connection is made. */
export interface Handshake {
  readonly era: Era
  readonly protocolVersion: string
  readonly serverInfo: { readonly name: string; readonly version: string } | undefined
  readonly capabilities: JsonObject
  /** The server's own instructions for models. */
  readonly instructions: string | undefined
  /** Whether the server keeps a session for the connection. HTTP only. */
  readonly hasSession?: boolean | undefined
}

/** Traces one request. */
interface RequestTrace {
  /** Fields to add to the request's `_meta`. */
  readonly meta: JsonObject | undefined
  sentAs(id: number): void
}

export interface RequestOptions {
  /** The timeout. It starts when the request is sent, and restarts at each progress notification. */
  readonly timeoutMs: number
  /** The maximum timeout with all extensions. Default: `timeoutMs`. */
  readonly maxTimeoutMs?: number | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Called in the turn in which the request is sent. If it throws, the request is not sent. */
  readonly checkStart?: (() => void) | undefined
  /** Returns whether the request may be sent again if it is not certain that it has not run. Default: no. */
  readonly mayRepeat?: (() => boolean) | undefined
  /** `Mcp-Param-*` headers, as alternating names and values. */
  readonly paramHeaders?: readonly string[] | undefined
  readonly trace?: RequestTrace | undefined
  /** Merged into the `_meta` of the request. */
  readonly meta?: JsonObject | undefined
  /** The client that a server of an earlier revision may ask while the request runs. */
  readonly client?: RequestClient | undefined
}

/** A connection to a server that has answered the handshake, over any transport. */
export interface Connection extends Handshake {
  /** @throws {UpstreamError} */
  readonly request: (method: string, params: JsonObject, options: RequestOptions) => Promise<JsonObject>
  /** Subscribes to changes of these resources and no others (2026-07-28). Absent for earlier revisions. */
  readonly watch?: ((uris: readonly string[]) => Promise<void>) | undefined
  close(): Promise<void>
}

export interface ConnectionHooks {
  /** The kinds of lists whose changes to listen to. */
  readonly offers: readonly Offer[]
  onListChanged(offer: Offer): void
  /** Receives the URI of an announcement, unchecked. */
  onResourceUpdated(uri: unknown): void
  /** Called after a new handshake. */
  onRenewed(handshake: Handshake): void
  /** Called once, unless the connection was closed before. Requests are no longer answered. */
  onLost(error: UpstreamError): void
  log(level: LogLevel, message: string, detail?: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface ConnectOptions {
  readonly era: 'auto' | Era
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly hooks: ConnectionHooks
  /** The requests that the server may send to clients. */
  readonly may: ServerMay
}

/** A request that waits for its answer. It settles once: by the answer, the timeout or the abort. */
export interface Pending<T> {
  readonly promise: Promise<T>
  isSettled(): boolean
  resolve(value: T): void
  reject(error: UpstreamError): void
  /** Handles a progress notification: extends the timeout and informs the caller. */
  progress(params: JsonObject): void
  /** Pauses the timeout until the returned function is called. The maximum time still applies. */
  hold(): () => void
}

/**
 * Returns a pending request that ends at its timeout or when its caller aborts.
 *
 * `onGivenUp` is then called, so that the server can be notified. `onSettled` is called before the promise settles.
 */
export function createPending<T>(
  options: RequestOptions,
  onGivenUp: (error: UpstreamError) => void,
  onSettled?: () => void,
): Pending<T> {
  const { timeoutMs, maxTimeoutMs = timeoutMs, signal, onProgress } = options
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const startedMs = performance.now()
  let settled = false
  let holds = 0
  let timer = setTimeout(onTimeout, timeoutMs)
  const unwatch = signal && toCancelling(signal).onAbort(onAbort)

  return {
    promise,
    isSettled: () => settled,
    resolve: (value) => settle(() => resolve(value)),
    reject: (error) => settle(() => reject(error)),
    progress,
    hold,
  }

  function settle(end: () => void): void {
    if (settled) return
    settled = true
    clearTimeout(timer)
    unwatch?.()
    onSettled?.()
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
    extend()
    try {
      onProgress?.(parsed)
    } catch {
      // An error of a listener does not stop the call.
    }
  }

  function hold(): () => void {
    holds++
    extend()
    return () => {
      holds--
      extend()
    }
  }

  function extend(): void {
    if (settled) return
    clearTimeout(timer)
    const leftMs = startedMs + maxTimeoutMs - performance.now()
    timer = setTimeout(onTimeout, holds > 0 ? leftMs : Math.min(timeoutMs, leftMs))
  }
}

export function abortedError(signal: AbortSignal | Cancelling | undefined): UpstreamError {
  return new UpstreamError('aborted', 'was aborted by its caller', { cause: signal?.reason })
}

/** Returns a text such as `10 s` or `0.5 s`. */
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
