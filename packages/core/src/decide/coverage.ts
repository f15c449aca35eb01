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
import { sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'
import type { Decided } from './decide.ts'
import { placesOf, unjudged } from './layers/at-call.ts'
import { answerOf, type ClauseIndex, isAtCall, type PolicyIndex } from './layers/clauses.ts'
import { type ClauseCounter, Tallies } from './tallies.ts'

/** How often a clause held when a call was decided. Lists do not count. */
export interface ClauseCoverage extends ClauseCount {
  readonly ref: ClauseRef
  /** The path of the clause, such as `policy[0].deny[1]`. */
  readonly path: string
  /** The clause is a shadow: it is evaluated but not enforced. */
  readonly shadow?: true
  /** For a shadow: the number of calls that it could not judge because the history of the run was unknown. Absent: none. */
  readonly unjudged?: number
  /** How many items of the catalog its selectors match. */
  readonly matches: number
}

/** The maximum number of clauses that a gate counts, because reloads may add clauses without end. */
const MAX_CLAUSES = 100_000
/** Longer clauses are stored as a hash, because whoever starts a run chooses its clauses. */
const MAX_CONTENT = 256

/**
 * Counts the clauses that hold when calls are decided: all in `deny` and `ask`, and the first in an `allow` list. A clause
 * that a reload does not change keeps its count.
 */
export class Coverage extends Tallies<Decided> {
  #counters = new Map<string, ClauseCounter>()
  #counterOf = new WeakMap<ParsedClause, ClauseCounter>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    super()
    this.#nowMs = nowMs
  }

  /** Starts to count the clauses of policies. */
  follow(policies: readonly ParsedPolicy[]): void {
    if (policies.every((policy) => clausesOf(policy).every((clause) => this.#counterOf.has(clause)))) return
    const count = policies.reduce((sum, policy) => sum + clausesOf(policy).length, 0)
    if (this.#counters.size + count > MAX_CLAUSES) this.#forget()
    const same = new Map<string, number>()
    for (const policy of policies)
      for (const clause of clausesOf(policy)) {
        const content = contentOf(policy, clause)
        const copy = same.get(content) ?? 0
        same.set(content, copy + 1)
        if (this.#counterOf.has(clause)) continue
        const text = `${content}#${copy}`
        const id = isKept(policy) ? idOf(text) : undefined
        this.#counterOf.set(clause, this.#counterFor(text, id))
        if (clause.run && isShadow(policy, clause))
          this.#counterOf.set(unjudged(clause), this.#counterFor(unjudgedId(text), id && unjudgedId(id)))
      }
  }

  #counterFor(content: string, id: string | undefined): ClauseCounter {
    const key = content.length > MAX_CONTENT ? sha256Hex(content) : content
    let counter = this.#counters.get(key)
    if (!counter) {
      counter = { id, sinceMs: this.#nowMs(), hits: 0, told: 0, lastMs: 0, isNew: id !== undefined }
      this.#counters.set(key, counter)
    }
    return counter
  }

  /** Removes the counters that views and forks added; removes all if the gate's own clauses leave little room. */
  #forget(): void {
    this.forget()
    const own = [...this.#counters].filter(([, { id }]) => id !== undefined)
    this.#counters = new Map(own.length > MAX_CLAUSES / 2 ? [] : own)
    this.#counterOf = new WeakMap()
  }

  /** Returns the hits that no store has yet, of clauses that have hits or are new. */
  untold(): readonly ClauseCount[] {
    this.settle()
    return [...this.#counters.values()].flatMap((counter) => {
      const { id, isNew } = counter
      const hits = counter.hits - counter.told
      return id !== undefined && (hits > 0 || isNew) ? [{ id, ...countOf(counter, hits) }] : []
    })
  }

  /** Marks hits as stored. */
  told(counts: readonly ClauseCount[]): void {
    const counterOf = new Map([...this.#counters.values()].map((counter) => [counter.id, counter]))
    for (const { id, hits } of counts) {
      const counter = counterOf.get(id)
      if (!counter) continue
      counter.told += hits
      counter.isNew = false
    }
  }

  /** Returns the counters of the clauses of a decision: clauses that hold for any input, and `held`. */
  protected override countersOf(
    { bounds, today, tool, now }: Decided,
    held: readonly ParsedClause[],
  ): readonly ClauseCounter[] {
    const { policies } = today
    this.follow(policies.map(({ whole }) => whole))
    const fixed = policies
      .flatMap((index) => [index, ...(index.shadow ? [index.shadow] : [])])
      .flatMap((one) => (tool ? clausesAt(one, bounds.caller, tool, now) : []))
    const counters = [...fixed, ...held].flatMap((clause) => this.#counterOf.get(clause) ?? [])
    // Two clauses with equal content share a counter, and count as one hit.
    return [...new Set(counters)]
  }

  #unjudgedBy(clause: ParsedClause): Pick<ClauseCoverage, 'unjudged'> {
    const { hits = 0 } = (clause.run && this.#counterOf.get(unjudged(clause))) ?? {}
    return hits > 0 ? { unjudged: hits } : {}
  }

  /** Returns the counts of the clauses of policies, in their order. */
  of(policies: readonly ParsedPolicy[], items: readonly Toolset[]): readonly ClauseCoverage[] {
    this.follow(policies)
    this.settle()
    return policies.flatMap((policy) =>
      clausesOf(policy).map((clause): ClauseCoverage => {
        const counter = this.#counterOf.get(clause) as ClauseCounter
        return {
          id: counter.id ?? idOf(contentOf(policy, clause)),
          ref: toClauseRef(policy.name, clause),
          path: clause.path,
          ...(isShadow(policy, clause) ? { shadow: true } : {}),
          ...countOf(counter, counter.hits),
          ...this.#unjudgedBy(clause),
          matches: items.reduce((count, set) => count + matchesIn(clause, set), 0),
        }
      }),
    )
  }
}

function countOf({ lastMs, sinceMs }: ClauseCounter, hits: number): Omit<ClauseCount, 'id'> {
  return { hits, ...(hits > 0 ? { lastHitAt: lastMs } : {}), countedSince: sinceMs }
}

function isShadow(policy: ParsedPolicy, clause: ParsedClause): boolean {
  return policy.isShadow || clause.isShadow
}

/** Returns the id that counts the calls which a shadow could not judge. */
export function unjudgedId(id: string): string {
  return `${id}?`
}

/** Long enough that nobody can find two texts with the same id. */
function idOf(content: string): string {
  return sha256Hex(content).slice(0, 32)
}

/** Returns whether a policy belongs to the gate or an app. Policies of views and forks come and go. */
function isKept({ path }: ParsedPolicy): boolean {
  return /^(policy|apps)\b/.test(path)
}

/** Returns a clause's content and where it applies. The name of an unnamed policy is its position, which an edit can move. */
function contentOf({ path, name, isShadow: mode }: ParsedPolicy, clause: ParsedClause): string {
  const [, root, position] = /^(.*)\[(\d+)\]$/.exec(path) ?? []
  const isNamed = name !== `policy ${Number(position) + 1}`
  return canonicalize({ root, ...(isNamed && { policy: name }), mode, kind: clause.kind, ...clauseData(clause) })
}

/** Returns the clauses that hold for a tool and a caller, leaving out those that read the input or the run. */
function clausesAt(index: PolicyIndex, caller: Caller, tool: Tool, at: number): readonly ParsedClause[] {
  const places = placesOf(index, at)
  const isAbout = ({ bits }: ClauseIndex) => places.some((place) => hasBit(bits, place))
  const holds = (indexed: ClauseIndex) => isAbout(indexed) && answerOf(indexed.clause, { caller, tool }) !== false
  const found = [...index.deny, ...index.ask].filter((indexed) => !isAtCall(indexed) && holds(indexed))
  // If clauses about the call match the tool, its allow list is decided with them.
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
