import { type Cancelling, type Progress, toCancelling } from '@toolgate/core'

import type { RequestOptions } from './connection.ts'
import type { JsonObject } from './json-rpc.ts'
import { UpstreamError } from './upstream.ts'

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
