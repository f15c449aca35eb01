import type { MaybePromise } from './ports.ts'

/** How often a clause has held when a call was decided. Times are wall-clock milliseconds. */
export interface ClauseCount {
  /** A hash of the clause's content and of its policy. Changes to other clauses do not affect it. */
  readonly id: string
  readonly hits: number
  /** Absent if the clause has not held since `countedSince`. */
  readonly lastHitAt?: number
  readonly countedSince: number
}

/** Identifies one addition. Each writer numbers its additions from 1. */
export interface ClauseBatch {
  readonly writer: string
  readonly number: number
}

/** Adds up the hits of clauses, across restarts and across all processes that share the store. */
export interface ClauseCountStore {
  /**
   * Adds hits and keeps the latest `lastHitAt` and the earliest `countedSince`, all or nothing. A batch that a writer sends
   * again is added once; each new batch has a greater number. Clauses that no writer has named for 90 days are deleted.
   */
  add(counts: readonly ClauseCount[], batch: ClauseBatch): MaybePromise<void>
  /** Returns the sums of the clauses that are known, in any order. */
  read(ids: readonly string[]): MaybePromise<readonly ClauseCount[]>
}
