import type { OutcomeWord, Reason } from '@toolgate/core'
import type { DependsOn } from '@toolgate/core/decide'
import type { ConfigPlace } from './config-place.ts'

/** A reason with the place of its rule in the configuration, and how often its clause has held for calls. */
export interface PlacedReason extends Reason {
  readonly place?: ConfigPlace
  readonly hits?: number
  /** Wall-clock milliseconds. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince?: number
}

/** A reason that is not against an item in a list, and that may be against a call of it. */
export interface PlacedMayStill extends PlacedReason {
  readonly on: DependsOn
  /** An input for which it is. Absent where none was found, and for a person of a tenant. */
  readonly example?: unknown
}

/** A stricter outcome that a call may still get, and what it depends on. */
export interface MayStillRow {
  readonly outcome: OutcomeWord
  readonly on: DependsOn
}
