import type { MaybePromise } from './ports.ts'

/** How often a clause has held when a call was decided. Times are wall-clock milliseconds. */
export interface ClauseCount {
  /** A hash of what the clause says and of the policy that it is in: an edit elsewhere leaves it as it is. */
  readonly id: string
  readonly hits: number
  /** Absent: none since `countedSince`. */
  readonly lastHitAt?: number
  readonly countedSince: number
}

/** Names an addition: one writer's are numbered from 1. */
export interface ClauseBatch {
  readonly writer: string
  readonly number: number
}

/** Adds up the hits of clauses, over restarts and over all processes that share it. */
export interface ClauseCountStore {
  /**
   * Adds hits, keeps the latest `lastHitAt` and the earliest `countedSince`, all or nothing. A batch of a writer is added once,
   * however often it is sent: the next one has a greater number. Clauses that nobody has named for 90 days are forgotten.
   */
  add(counts: readonly ClauseCount[], batch: ClauseBatch): MaybePromise<void>
  /** Returns the sums of the clauses that are known, in any order. */
  read(ids: readonly string[]): MaybePromise<readonly ClauseCount[]>
}
