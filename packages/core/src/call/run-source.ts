import type { Policy } from '../policy/policy.ts'
import type { Caller } from '../ports/caller.ts'
import type { RunOfCall } from '../ports/ports.ts'

/** The runs of callers whose token is for one run. */
export interface RunSource {
  /** Returns the same object each time; `undefined` for a run that is over, which sees nothing. */
  of(caller: Caller): RunScope | undefined
}

export interface RunScope {
  readonly run: RunOfCall
  /** Met with those of the gate: it can only narrow. */
  readonly policy: readonly Policy[]
}
