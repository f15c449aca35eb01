import type { CallTrace, Telemetry } from '../ports.ts'

/** Gives telemetry whose faults are told to the host and never reach a call. */
export function quietTelemetry(telemetry: Telemetry, onFault: (error: unknown) => void): Telemetry {
  return {
    startCall(call) {
      try {
        const trace = telemetry.startCall(call)
        return trace && new QuietTrace(trace, onFault)
      } catch (error) {
        onFault(error)
        return undefined
      }
    },
  }
}

class QuietTrace implements CallTrace {
  readonly traceId: string | undefined
  readonly #trace: CallTrace
  readonly #onFault: (error: unknown) => void

  constructor(trace: CallTrace, onFault: (error: unknown) => void) {
    this.traceId = trace.traceId
    this.#trace = trace
    this.#onFault = onFault
  }

  /** The work is done once, whatever the tracing does. */
  within<T>(work: () => T): T {
    let done: { readonly value: T } | undefined
    try {
      this.#trace.within(() => {
        done = { value: work() }
        return done.value
      })
    } catch (error) {
      this.#onFault(error)
    }
    return (done ?? { value: work() }).value
  }

  end(result: Parameters<CallTrace['end']>[0]): void {
    try {
      this.#trace.end(result)
    } catch (error) {
      this.#onFault(error)
    }
  }
}
