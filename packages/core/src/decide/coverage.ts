import { type ClauseRef, toClauseRef } from '../policy/clause-ref.ts'
import { clauseData } from '../policy/document.ts'
import { clausesOf } from '../policy/history-use.ts'
import type { ParsedClause, ParsedPolicy } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import { bitsWhere, hasBit, membersOf } from '../tools/bits.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { canonicalize } from '../util/json.ts'
import type { Decided, RunBounds } from './decide.ts'
import { placesOf } from './layers/at-call.ts'
import { answerOf, type ClauseIndex, isAtCall, type PolicyIndex } from './layers/clauses.ts'

/** How often a clause held when a call was decided. Lists do not count. */
export interface ClauseCoverage {
  readonly ref: ClauseRef
  /** Where it is written, such as `policy[0].deny[1]`. */
  readonly path: string
  /** It only shows what it would do. */
  readonly shadow?: true
  readonly hits: number
  /** Wall-clock milliseconds. Absent: none since `countedSince`. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds: when this process first had a clause with this content. */
  readonly countedSince: number
  /** How many items of the catalog its selectors match. */
  readonly matches: number
}

/** All clauses that a gate has had, in a process that reloads for ever. */
const MAX_CLAUSES = 100_000

type Table = (Int32Array | undefined)[]

/**
 * Counts the clauses that hold when calls are decided: of `deny` and `ask` each, of an `allow` list the first. A clause that
 * a reload leaves as it is goes on counting.
 */
export class Coverage {
  readonly #slots = new Map<string, number>()
  #slotOf = new WeakMap<ParsedClause, number>()
  #hits = new Float64Array(64)
  #lastMs = new Float64Array(64)
  #sinceMs = new Float64Array(64)
  /** The clauses that hold for each tool whatever its input is. */
  #tables = new WeakMap<readonly PolicyIndex[], WeakMap<Caller, Table>>()
  #latest = new WeakMap<RunBounds, { readonly policies: readonly PolicyIndex[]; readonly table: Table }>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Counts the clauses of policies from now on. */
  follow(policies: readonly ParsedPolicy[]): void {
    for (const policy of policies) {
      const root = policy.path.replace(/\[\d+\]$/, '')
      for (const clause of clausesOf(policy)) {
        if (this.#slotOf.has(clause)) continue
        const content = { root, policy: policy.name, mode: policy.isShadow, kind: clause.kind, ...clauseData(clause) }
        this.#slotOf.set(clause, this.#slotFor(canonicalize(content)))
      }
    }
  }

  #slotFor(content: string): number {
    const known = this.#slots.get(content)
    if (known !== undefined) return known
    if (this.#slots.size >= MAX_CLAUSES) this.#forget()
    const slot = this.#slots.size
    if (slot >= this.#hits.length) this.#grow()
    this.#slots.set(content, slot)
    this.#sinceMs[slot] = this.#nowMs()
    return slot
  }

  #grow(): void {
    const longer = (array: Float64Array) => {
      const grown = new Float64Array(array.length * 2)
      grown.set(array)
      return grown
    }
    this.#hits = longer(this.#hits)
    this.#lastMs = longer(this.#lastMs)
    this.#sinceMs = longer(this.#sinceMs)
  }

  #forget(): void {
    this.#slots.clear()
    this.#slotOf = new WeakMap()
    this.#tables = new WeakMap()
    this.#latest = new WeakMap()
    this.#hits.fill(0)
    this.#lastMs.fill(0)
  }

  /** Counts a decision. `held`: the clauses about the input and the run that held. */
  count({ bounds, today, tool, now }: Decided, held: readonly ParsedClause[], nowMs: number): void {
    if (tool === undefined) return
    const { policies } = today
    let latest = this.#latest.get(bounds)
    if (latest?.policies !== policies) {
      latest = { policies, table: this.#tableOf(policies, bounds.caller) }
      this.#latest.set(bounds, latest)
    }
    const slots = (latest.table[now] ??= this.#slotsAt(policies, bounds.caller, tool, now))
    for (let i = 0; i < slots.length; i++) this.#hit(slots[i], nowMs)
    if (held.length > 0)
      for (const slot of new Set(held.map((clause) => this.#slotOf.get(clause)))) this.#hit(slot, nowMs)
  }

  #hit(slot: number | undefined, nowMs: number): void {
    if (slot === undefined) return
    this.#hits[slot] = (this.#hits[slot] as number) + 1
    this.#lastMs[slot] = nowMs
  }

  #tableOf(policies: readonly PolicyIndex[], caller: Caller): Table {
    let callers = this.#tables.get(policies)
    if (!callers) this.#tables.set(policies, (callers = new WeakMap()))
    let table = callers.get(caller)
    if (!table) callers.set(caller, (table = []))
    return table
  }

  #slotsAt(policies: readonly PolicyIndex[], caller: Caller, tool: Tool, at: number): Int32Array {
    this.follow(policies.map(({ whole }) => whole))
    const holding = policies.flatMap((index) =>
      [index, ...(index.shadow ? [index.shadow] : [])].flatMap((one) => clausesAt(one, caller, tool, at)),
    )
    return Int32Array.from(new Set(holding.flatMap((clause) => this.#slotOf.get(clause) ?? [])))
  }

  /** Returns the counts of the clauses of policies, in their order. */
  of(policies: readonly ParsedPolicy[], items: readonly Toolset[]): readonly ClauseCoverage[] {
    this.follow(policies)
    return policies.flatMap((policy) =>
      clausesOf(policy).map((clause): ClauseCoverage => {
        const slot = this.#slotOf.get(clause) as number
        const hits = this.#hits[slot] as number
        return {
          ref: toClauseRef(policy.name, clause),
          path: clause.path,
          ...(policy.isShadow || clause.isShadow ? { shadow: true } : {}),
          hits,
          ...(hits > 0 ? { lastHitAt: this.#lastMs[slot] as number } : {}),
          countedSince: this.#sinceMs[slot] as number,
          matches: items.reduce((count, set) => count + matchesIn(clause, set), 0),
        }
      }),
    )
  }
}

/** Returns the clauses that hold for a tool and a caller, as far as neither input nor run is read. */
function clausesAt(index: PolicyIndex, caller: Caller, tool: Tool, at: number): readonly ParsedClause[] {
  const places = placesOf(index, at)
  const isAbout = ({ bits }: ClauseIndex) => places.some((place) => hasBit(bits, place))
  const holds = (indexed: ClauseIndex) => isAbout(indexed) && answerOf(indexed.clause, { caller, tool }) !== false
  const found = [...index.deny, ...index.ask].filter((indexed) => !isAtCall(indexed) && holds(indexed))
  // Where clauses about the call are about the tool, its allow list is decided with them.
  const allowing = hasBit(index.atCall, at) ? undefined : index.allow?.find((indexed) => holds(indexed))
  return [...found, ...(allowing ? [allowing] : [])].map(({ clause }) => clause)
}

const matched = new WeakMap<ParsedClause, WeakMap<Toolset, number>>()

function matchesIn(clause: ParsedClause, items: Toolset): number {
  let known = matched.get(clause)
  if (!known) matched.set(clause, (known = new WeakMap()))
  let count = known.get(items)
  if (count === undefined) {
    const reading = clause.kind === 'allow' ? 'certain' : 'possible'
    const isAbout = (tool: Tool) => clause.selectors.some((selector) => matchesSelector(selector, tool, reading))
    known.set(items, (count = membersOf(bitsWhere(items.size, (i) => isAbout(items.tools[i] as Tool))).length))
  }
  return count
}
