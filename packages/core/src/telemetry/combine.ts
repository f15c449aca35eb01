import type { CallEnd, CallTrace, Telemetry } from '../ports/ports.ts'
import { catchRejection } from '@toolgate/values'
import { runOnce } from './run-once.ts'

/**
 * Returns one telemetry for several. Each receives every call, even if another throws, and none can change a call.
 *
 * @example
 * createGate({ tools, telemetry: combineTelemetry(openTelemetry(), countCalls) })
 */
export function combineTelemetry(...telemetries: readonly Telemetry[]): Telemetry {
  return guardTelemetry(telemetries, () => {})
}

/** Returns one telemetry for several. Their faults go to `onFault` and do not change a call. */
export function guardTelemetry(telemetries: readonly Telemetry[], onFault: (error: unknown) => void): Telemetry {
  const guard: RunGuarded = (step) => {
    try {
      return step()
    } catch (error) {
      onFault(error)
      return undefined
    }
  }
  return {
    startCall(call) {
      let combined: GuardedTrace | undefined
      // From last to first, because the first is the outermost.
      for (let i = telemetries.length - 1; i >= 0; i--) {
        const trace = guard(() => telemetries[i]?.startCall(call))
        catchRejection(trace, onFault)
        if (trace && !(trace instanceof Promise)) combined = new GuardedTrace(trace, combined, guard, onFault)
      }
      return combined
    },
  }
}

type RunGuarded = <T>(step: () => T) => T | undefined

/** A trace around another one. */
class GuardedTrace implements CallTrace {
  readonly traceId: string | undefined
  readonly within: CallTrace['within']
  readonly #own: CallTrace
  readonly #inner: CallTrace | undefined
  readonly #guard: RunGuarded
  readonly #onFault: (error: unknown) => void

  constructor(own: CallTrace, inner: CallTrace | undefined, guard: RunGuarded, onFault: (error: unknown) => void) {
    this.#own = own
    this.#inner = inner
    this.#guard = guard
    this.#onFault = onFault
    this.traceId = guard(() => own.traceId) ?? inner?.traceId
    const outer = guard(() => own.within)
    const inside = inner?.within
    this.within = outer
      ? (work) => runOnce((step) => outer.call(own, step), inside ? () => inside(work) : work, onFault)
      : inside
  }

  end(result: CallEnd): void {
    this.#guard(() => catchRejection(this.#own.end(result), this.#onFault))
    this.#inner?.end(result)
  }
}
