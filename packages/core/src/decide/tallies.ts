import type { ParsedClause } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import type { Tool } from '../tools/tool.ts'
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
interface Tally {
  /** Those of the clauses that are about the input and the run. */
  readonly held: readonly ParsedClause[]
  readonly counters: readonly ClauseCounter[]
  /** Those that are not in the counters yet. */
  calls: number
  lastMs: number
}

/** By the position of the tool. */
type TallyTable = (Tally[] | undefined)[]
type TallyTables = WeakMap<readonly PolicyIndex[], WeakMap<Caller, TallyTable>>

/** A table, and what it was found by. */
export interface FoundTable {
  readonly tables: TallyTables
  readonly policies: readonly PolicyIndex[]
  readonly caller: Caller
  readonly table: TallyTable
}

/** A decision, as it is counted. */
interface Counted {
  readonly bounds: { readonly caller: Caller; tallies?: FoundTable | undefined }
  readonly today: { readonly policies: readonly PolicyIndex[] }
  readonly tool: Tool | undefined
  readonly now: number
}

/** Tallies keep clauses of runs that are over. */
const MAX_UNSETTLED = 100
/** Of one tool and one caller. Inputs that a hundred clauses are about can make any set of them hold. */
const MAX_TALLIES = 16

/** The calls that are not in the counters of their clauses yet. */
export abstract class Tallies<Decided extends Counted> {
  #tables: TallyTables = new WeakMap()
  /** The tallies with calls. */
  #unsettled: Tally[] = []

  /** Returns the counters of the clauses that hold at a call. `held`: those about the input and the run. */
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

  /** Adds the calls to the counters. */
  protected settle(): void {
    for (const { counters, calls, lastMs } of this.#unsettled)
      for (const counter of counters) {
        counter.hits += calls
        counter.lastMs = Math.max(counter.lastMs, lastMs)
      }
    for (const tally of this.#unsettled) tally.calls = 0
    this.#unsettled = []
  }

  /** Adds them, and asks for the counters again from now on. */
  protected forget(): void {
    this.settle()
    this.#tables = new WeakMap()
  }

  #findTable(bounds: Counted['bounds'], policies: readonly PolicyIndex[]): TallyTable {
    const { caller } = bounds
    const tables = this.#tables
    let callers = tables.get(policies)
    if (!callers) tables.set(policies, (callers = new WeakMap()))
    let table = callers.get(caller)
    if (!table) callers.set(caller, (table = []))
    bounds.tallies = { tables, policies, caller, table }
    return table
  }

  #open(tallies: Tally[], decided: Decided, held: readonly ParsedClause[]): Tally {
    const tally = { held: [...held], counters: this.countersOf(decided, held), calls: 0, lastMs: 0 }
    if (tallies.length >= MAX_TALLIES) tallies.length = 0
    tallies.push(tally)
    return tally
  }

  #await(tally: Tally): void {
    if (this.#unsettled.length >= MAX_UNSETTLED) this.settle()
    this.#unsettled.push(tally)
  }
}

function findTally(tallies: readonly Tally[], clauses: readonly ParsedClause[]): Tally | undefined {
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
