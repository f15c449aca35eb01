/** What ends a run before its time: its host's signal, its own budget of time, or whoever reads its stream. */
export interface Stopping {
  readonly signal: AbortSignal
  /** Whether it was the time. */
  readonly isLate: boolean
  abort(reason: unknown): void
  /** Lets go of the host's signal and of the timer. */
  close(): void
}

/** A timer takes no more. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createStopping(given: AbortSignal | undefined): Stopping & { endAfter(ms: number): void } {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isLate = false
  // Not `AbortSignal.any`: a host's signal may outlive any number of runs, and keeps what follows it.
  const follow = () => controller.abort(given?.reason)
  given?.addEventListener('abort', follow, { once: true })
  if (given?.aborted) follow()
  return {
    signal: controller.signal,
    get isLate() {
      return isLate
    },
    abort: (reason) => controller.abort(reason),
    endAfter(ms) {
      if (ms > MAX_TIMER_MS) return
      timer = setTimeout(() => {
        isLate = !controller.signal.aborted
        controller.abort(new DOMException('the time that the run may take is over', 'TimeoutError'))
      }, ms)
    },
    close() {
      clearTimeout(timer)
      given?.removeEventListener('abort', follow)
    },
  }
}
