import type { CallEnd, CallTrace, Telemetry } from '../ports.ts'
import { runOnce } from './run-once.ts'

/**
 * Gives one telemetry that tells several. Each hears of every call, whatever the others do, and none that throws
 * changes a call.
 *
 * @example
 * createGate({ tools, telemetry: combineTelemetry(openTelemetry(), countCalls) })
 */
export function combineTelemetry(...telemetries: readonly Telemetry[]): Telemetry {
  return {
    startCall(call) {
      let combined: CombinedTrace | undefined
      // From the last to the first, as the first is the outermost.
      for (let i = telemetries.length - 1; i >= 0; i--) {
        const trace = quiet(() => telemetries[i]?.startCall(call))
        if (trace) combined = new CombinedTrace(trace, combined)
      }
      return combined
    },
  }
}

/** A trace around another one. */
class CombinedTrace implements CallTrace {
  readonly traceId: string | undefined
  readonly #own: CallTrace
  readonly #inner: CallTrace | undefined

  constructor(own: CallTrace, inner: CallTrace | undefined) {
    this.#own = own
    this.#inner = inner
    this.traceId = quiet(() => own.traceId) ?? inner?.traceId
  }

  within<T>(work: () => T): T {
    const inner = this.#inner
    return runOnce((step) => this.#own.within(step), inner ? () => inner.within(work) : work, ignore)
  }

  end(result: CallEnd): void {
    quiet(() => this.#own.end(result))
    this.#inner?.end(result)
  }
}

/** Who watches has no say in what is watched. */
function quiet<T>(step: () => T): T | undefined {
  try {
    return step()
  } catch {
    return undefined
  }
}

function ignore(): void {}
