import type { ParsedClause } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import type { PolicyIndex } from './layers/clauses.ts'

/** The counts of one clause, or of several that say the same at the same place. */
export interface ClauseCounter {
  /** Absent where a view or a fork has added the clause: it is of this process alone. */
  readonly id: string | undefined
  readonly sinceMs: number
  hits: number
  /** Of the hits, those that a store was told of. */
  told: number
  lastMs: number
  /** No store was told of it yet. */
  isNew: boolean
}

/** Calls of one tool by one caller at which the same clauses held: a call adds to one number, however many they are. */
export interface Tally {
  /** Those of the clauses that are about the input and the run. */
  readonly held: readonly ParsedClause[]
  readonly counters: readonly ClauseCounter[]
  /** Those that are not in the counters yet. */
  calls: number
  lastMs: number
}

/** By the position of the tool. */
export type TallyTable = (Tally[] | undefined)[]
export type TallyTables = WeakMap<readonly PolicyIndex[], WeakMap<Caller, TallyTable>>

/** A table, and what it was found by. */
export interface FoundTable {
  readonly tables: TallyTables
  readonly policies: readonly PolicyIndex[]
  readonly caller: Caller
  readonly table: TallyTable
}

export function findTally(tallies: readonly Tally[], clauses: readonly ParsedClause[]): Tally | undefined {
  for (let i = 0; i < tallies.length; i++) {
    const tally = tallies[i] as Tally
    if (isSame(tally.held, clauses)) return tally
  }
  return undefined
}

function isSame(some: readonly ParsedClause[], others: readonly ParsedClause[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false
  return true
}

/** Adds the calls of a tally to its counters. */
export function settleTally(tally: Tally): void {
  for (const counter of tally.counters) {
    counter.hits += tally.calls
    counter.lastMs = Math.max(counter.lastMs, tally.lastMs)
  }
  tally.calls = 0
}
