import type { OutcomeWord, Reason } from '@toolgate/core'
import type { DependsOn } from '@toolgate/core/decide'
import type { ConfigPlace } from './config-place.ts'

/** A reason, with the place of its rule in the configuration and the number of calls that its clause has matched. */
export interface PlacedReason extends Reason {
  readonly place?: ConfigPlace
  readonly hits?: number
  /** Wall-clock milliseconds. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince?: number
}

/** A reason that does not hide an item from the list but may refuse a call of it. */
export interface PlacedMayStill extends PlacedReason {
  readonly on: DependsOn
  /** An input that the reason refuses. Absent if none was found, and for a person with a tenant. */
  readonly example?: unknown
}

/** A stricter outcome that a call may still get, and what it depends on. */
export interface MayStillRow {
  readonly outcome: OutcomeWord
  readonly on: DependsOn
}
