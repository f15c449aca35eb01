import type { Policy } from '../policy/policy.ts'
import type { Caller } from '../ports/caller.ts'
import type { RunOfCall } from '../ports/ports.ts'

/** The runs of callers with a token for one run. */
export interface RunSource {
  /** Returns the same object each time; `undefined` for a finished run, whose callers see nothing. */
  of(caller: Caller): RunScope | undefined
}

export interface RunScope {
  readonly run: RunOfCall
  /** Combined with the policies of the gate, so it can only narrow. */
  readonly policy: readonly Policy[]
}
