import { type ClauseRef, toClauseRef } from '../policy/clause-ref.ts'
import { clauseData } from '../policy/document.ts'
import { clausesOf } from '../policy/history-use.ts'
import type { ParsedClause, ParsedPolicy } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import type { ClauseCount } from '../ports/clause-counts.ts'
import { bitsWhere, hasBit, membersOf } from '../tools/bits.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { sha256Hex } from '../util/hash.ts'
import { canonicalize } from '../util/json.ts'
import type { Decided, RunBounds } from './decide.ts'
import { placesOf } from './layers/at-call.ts'
import { answerOf, type ClauseIndex, isAtCall, type PolicyIndex } from './layers/clauses.ts'

/** How often a clause held when a call was decided. Lists do not count. */
export interface ClauseCoverage extends ClauseCount {
  readonly ref: ClauseRef
  /** Where it is written, such as `policy[0].deny[1]`. */
  readonly path: string
  /** It only shows what it would do. */
  readonly shadow?: true
  /** How many items of the catalog its selectors match. */
  readonly matches: number
}

/** All clauses that a gate has had, in a process that reloads for ever. */
const MAX_CLAUSES = 100_000
/** Of longer clauses the hash is kept: whoever starts a run says what its clauses are. */
const MAX_CONTENT = 256

type Table = (Int32Array | undefined)[]

/**
 * Counts the clauses that hold when calls are decided: of `deny` and `ask` each, of an `allow` list the first. A clause that
 * a reload leaves as it is goes on counting.
 */
export class Coverage {
  #slots = new Map<string, number>()
  /** By slot. Absent where a view or a fork has added the clause: it is of this process alone. */
  #ids: (string | undefined)[] = []
  /** Of the hits, those that `told` was called with. */
  #told = new Float64Array(64)
  #isNew = new Set<number>()
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
    if (policies.every((policy) => clausesOf(policy).every((clause) => this.#slotOf.has(clause)))) return
    const count = policies.reduce((sum, policy) => sum + clausesOf(policy).length, 0)
    if (this.#slots.size + count > MAX_CLAUSES) this.#forget()
    const same = new Map<string, number>()
    for (const policy of policies)
      for (const clause of clausesOf(policy)) {
        const content = contentOf(policy, clause)
        const copy = same.get(content) ?? 0
        same.set(content, copy + 1)
        if (!this.#slotOf.has(clause)) this.#slotOf.set(clause, this.#slotFor(`${content}#${copy}`, isKept(policy)))
      }
  }

  #slotFor(content: string, kept: boolean): number {
    const key = content.length > MAX_CONTENT ? sha256Hex(content) : content
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    const slot = this.#slots.size
    if (slot >= this.#hits.length) this.#grow()
    this.#slots.set(key, slot)
    this.#sinceMs[slot] = this.#nowMs()
    this.#ids[slot] = kept ? idOf(content) : undefined
    if (kept) this.#isNew.add(slot)
    return slot
  }

  #grow(): void {
    const longer = (array: Float64Array) => {
      const grown = new Float64Array(array.length * 2)
      grown.set(array)
      return grown
    }
    this.#hits = longer(this.#hits)
    this.#told = longer(this.#told)
    this.#lastMs = longer(this.#lastMs)
    this.#sinceMs = longer(this.#sinceMs)
  }

  /** Forgets what views and forks have added, and everything where the gate's own clauses leave little room. */
  #forget(): void {
    const own = [...this.#slots].filter(([, slot]) => this.#ids[slot] !== undefined)
    const kept = own.length > MAX_CLAUSES / 2 ? [] : own
    const movedOf = (array: Float64Array) => {
      const moved = new Float64Array(array.length)
      for (const [now, [, before]] of kept.entries()) moved[now] = array[before] as number
      return moved
    }
    this.#hits = movedOf(this.#hits)
    this.#told = movedOf(this.#told)
    this.#lastMs = movedOf(this.#lastMs)
    this.#sinceMs = movedOf(this.#sinceMs)
    this.#isNew = new Set(kept.flatMap(([, before], now) => (this.#isNew.has(before) ? [now] : [])))
    this.#ids = kept.map(([, before]) => this.#ids[before])
    this.#slots = new Map(kept.map(([key], now) => [key, now]))
    this.#slotOf = new WeakMap()
    this.#tables = new WeakMap()
    this.#latest = new WeakMap()
  }

  /** Returns the hits that `told` was not called with, of clauses that have some or are new. */
  untold(): readonly ClauseCount[] {
    return this.#ids.flatMap((id, slot) => {
      const hits = (this.#hits[slot] as number) - (this.#told[slot] as number)
      return id !== undefined && (hits > 0 || this.#isNew.has(slot)) ? [{ id, ...this.#countOf(slot, hits) }] : []
    })
  }

  /** Notes that hits were added elsewhere, and are no longer untold. */
  told(counts: readonly ClauseCount[]): void {
    const slotOf = new Map(this.#ids.flatMap((id, slot) => (id === undefined ? [] : [[id, slot] as const])))
    for (const { id, hits } of counts) {
      const slot = slotOf.get(id)
      if (slot === undefined) continue
      this.#told[slot] = (this.#told[slot] as number) + hits
      this.#isNew.delete(slot)
    }
  }

  #countOf(slot: number, hits: number): Omit<ClauseCount, 'id'> {
    return {
      hits,
      ...(hits > 0 ? { lastHitAt: this.#lastMs[slot] as number } : {}),
      countedSince: this.#sinceMs[slot] as number,
    }
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
    for (let i = 0; i < held.length; i++) this.#hitOnce(held, i, nowMs)
  }

  /** Two clauses of one content share a slot, and are one hit. A call has few, so no set is made. */
  #hitOnce(held: readonly ParsedClause[], i: number, nowMs: number): void {
    const slot = this.#slotOf.get(held[i] as ParsedClause)
    for (let j = 0; j < i; j++) if (this.#slotOf.get(held[j] as ParsedClause) === slot) return
    this.#hit(slot, nowMs)
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
        return {
          id: this.#ids[slot] ?? idOf(contentOf(policy, clause)),
          ref: toClauseRef(policy.name, clause),
          path: clause.path,
          ...(policy.isShadow || clause.isShadow ? { shadow: true } : {}),
          ...this.#countOf(slot, this.#hits[slot] as number),
          matches: items.reduce((count, set) => count + matchesIn(clause, set), 0),
        }
      }),
    )
  }
}

/** As many bits as nobody finds two texts with. */
function idOf(content: string): string {
  return sha256Hex(content).slice(0, 32)
}

/** Whether a policy is of the gate or of an app. Those that views and forks add come and go. */
function isKept({ path }: ParsedPolicy): boolean {
  return /^(policy|apps)\b/.test(path)
}

/** Returns what a clause says and where it applies. The name of a policy without one is its position, which an edit moves. */
function contentOf({ path, name, isShadow: mode }: ParsedPolicy, clause: ParsedClause): string {
  const [, root, position] = /^(.*)\[(\d+)\]$/.exec(path) ?? []
  const isNamed = name !== `policy ${Number(position) + 1}`
  return canonicalize({ root, ...(isNamed && { policy: name }), mode, kind: clause.kind, ...clauseData(clause) })
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
