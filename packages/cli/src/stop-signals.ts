import type { EventEmitter } from 'node:events'
import { EXITS } from './exit.ts'

/** The signals that ask a command to stop. */
export interface StopSignals {
  /**
   * Returns a promise of the first signal. `release` stops listening, so that the process can end. With `onHangup`, SIGHUP
   * calls it and does not stop the command.
   */
  once(options?: { readonly onHangup?: () => void }): { readonly stopped: Promise<NodeJS.Signals>; release(): void }
}

interface StopSignalsOptions {
  /** The source of signals: the process. */
  readonly source: Pick<EventEmitter, 'on' | 'off'>
  readonly exit: (code: number) => void
  readonly nowMs: () => number
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** npm forwards a signal that the terminal has already sent to the whole process group. */
const ECHO_MS = 1000

/**
 * Returns the signals. The first asks to stop, and a later one ends the process at once. The same signal again within a
 * second counts as an echo.
 */
export function createStopSignals({ source, exit, nowMs }: StopSignalsOptions): StopSignals {
  return {
    once({ onHangup } = {}) {
      const { promise: stopped, resolve } = Promise.withResolvers<NodeJS.Signals>()
      let first: { signal: NodeJS.Signals; atMs: number } | undefined
      const onSignal = (signal: NodeJS.Signals): void => {
        const atMs = nowMs()
        if (!first) {
          first = { signal, atMs }
          resolve(signal)
        } else if (signal !== first.signal || atMs - first.atMs > ECHO_MS) exit(EXITS.forced.code)
      }
      const listeners = SIGNALS.map(
        (signal) => [signal, signal === 'SIGHUP' && onHangup ? onHangup : onSignal] as const,
      )
      for (const [signal, listener] of listeners) source.on(signal, listener)
      return {
        stopped,
        release() {
          for (const [signal, listener] of listeners) source.off(signal, listener)
        },
      }
    },
  }
}
