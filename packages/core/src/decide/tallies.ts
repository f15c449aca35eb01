import type { ParsedClause } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import type { Tool } from '../tools/tool.ts'
import type { PolicyIndex } from './layers/clauses.ts'

/** The counts of one clause, or of equal clauses at the same path. */
export interface ClauseCounter {
  /** Absent if a view or a fork added the clause: only this process counts it. */
  readonly id: string | undefined
  readonly sinceMs: number
  hits: number
  /** How many of the hits a store already has. */
  told: number
  lastMs: number
  /** Whether no store knows the clause yet. */
  isNew: boolean
}

/**
 * Calls of one tool by one caller at which the same clauses held. Counting a call adds to this one number, not to each
 * clause.
 */
interface DecisionTally {
  /** The clauses about the input and the run that held. */
  readonly held: readonly ParsedClause[]
  readonly counters: readonly ClauseCounter[]
  /** Calls that are not in the counters yet. */
  calls: number
  lastMs: number
}

/** Tallies by the position of the tool. */
type TallyTable = (DecisionTally[] | undefined)[]
type TallyTables = WeakMap<readonly PolicyIndex[], WeakMap<Caller, TallyTable>>

/** A table, and the key that it was found by. */
export interface FoundTable {
  readonly tables: TallyTables
  readonly policies: readonly PolicyIndex[]
  readonly caller: Caller
  readonly table: TallyTable
}

/** The parts of a decision that counting needs. */
interface CountedDecision {
  readonly bounds: { readonly caller: Caller; tallies?: FoundTable | undefined }
  readonly today: { readonly policies: readonly PolicyIndex[] }
  readonly tool: Tool | undefined
  readonly now: number
}

/** A limit, because tallies reference the clauses of finished runs. */
const MAX_UNSETTLED = 100
/** The most tallies of one tool and one caller. Any subset of a hundred clauses about the input may hold. */
const MAX_TALLIES = 16

/** Collects calls that are not in the counters of their clauses yet. */
export abstract class Tallies<Decided extends CountedDecision> {
  #tables: TallyTables = new WeakMap()
  /** The tallies that have uncounted calls. */
  #unsettled: DecisionTally[] = []

  /** Returns the counters of the clauses that hold at a call. `held`: the clauses about the input and the run that hold. */
  protected abstract countersOf(decided: Decided, held: readonly ParsedClause[]): readonly ClauseCounter[]

  /** Counts a decision. `held`: the clauses about the input and the run that held. */
  count(decided: Decided, held: readonly ParsedClause[], nowMs: number): void {
    const { bounds, today, tool, now } = decided
    if (tool === undefined) return
    const { caller, tallies: found } = bounds
    const { policies } = today
    const isFound = found?.policies === policies && found.caller === caller && found.tables === this.#tables
    const table = isFound ? found.table : this.#findTable(bounds, policies)
    const tallies = (table[now] ??= [])
    const tally = findTally(tallies, held) ?? this.#open(tallies, decided, held)
    if (tally.calls++ === 0) this.#await(tally)
    tally.lastMs = nowMs
  }

  /** Adds the collected calls to the counters. */
  protected settle(): void {
    for (const { counters, calls, lastMs } of this.#unsettled)
      for (const counter of counters) {
        counter.hits += calls
        counter.lastMs = Math.max(counter.lastMs, lastMs)
      }
    for (const tally of this.#unsettled) tally.calls = 0
    this.#unsettled = []
  }

  /** Adds the collected calls, and looks the counters up again from now on. */
  protected forget(): void {
    this.settle()
    this.#tables = new WeakMap()
  }

  #findTable(bounds: CountedDecision['bounds'], policies: readonly PolicyIndex[]): TallyTable {
    const { caller } = bounds
    const tables = this.#tables
    let callers = tables.get(policies)
    if (!callers) tables.set(policies, (callers = new WeakMap()))
    let table = callers.get(caller)
    if (!table) callers.set(caller, (table = []))
    bounds.tallies = { tables, policies, caller, table }
    return table
  }

  #open(tallies: DecisionTally[], decided: Decided, held: readonly ParsedClause[]): DecisionTally {
    const tally = { held: [...held], counters: this.countersOf(decided, held), calls: 0, lastMs: 0 }
    if (tallies.length >= MAX_TALLIES) tallies.length = 0
    tallies.push(tally)
    return tally
  }

  #await(tally: DecisionTally): void {
    if (this.#unsettled.length >= MAX_UNSETTLED) this.settle()
    this.#unsettled.push(tally)
  }
}

function findTally(tallies: readonly DecisionTally[], clauses: readonly ParsedClause[]): DecisionTally | undefined {
  for (let i = 0; i < tallies.length; i++) {
    const tally = tallies[i] as DecisionTally
    if (isSame(tally.held, clauses)) return tally
  }
  return undefined
}

function isSame(some: readonly ParsedClause[], others: readonly ParsedClause[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false
  return true
}
