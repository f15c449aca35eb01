import { randomUUID } from 'node:crypto'
import type { Gate } from '@toolgate/core'
import { type ClauseCoverage, unjudgedId } from '@toolgate/core/decide'
import { countsOf } from '@toolgate/core/call'
import { endsWithin, runWithDeadline } from '@toolgate/values'
import type { ClauseCount, ClauseCountStore, Clock } from '@toolgate/core/stores'

export interface ClauseHitsDeps {
  readonly gate: Gate
  /** Absent: only this process counts. */
  readonly store: ClauseCountStore | undefined
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly onFault: (error: unknown) => void
  /** How often new hits are written. Default 3 s. */
  readonly everyMs?: number
}

/** The clauses of the current policies, with their counts. */
export interface CountedClauses {
  readonly clauses: readonly ClauseCoverage[]
  /** Set if the store did not answer, so the counts are those of this process since its start. */
  readonly isOwn?: true
}

const EVERY_MS = 3_000
const ANSWER_MS = 2_000
/** How often clauses without hits are written, so that the store does not remove them. */
const NAME_MS = 24 * 60 * 60_000

/**
 * Counts how often each clause matched, across restarts and replicas. Calls are counted in memory and added to the
 * store every few seconds, so a crash loses the counts of a few seconds at most.
 */
export class ClauseHits {
  readonly #deps: ClauseHitsDeps
  readonly #writer = randomUUID()
  readonly #timer: NodeJS.Timeout | undefined
  /** The batch that is sent until the store has answered. The store adds it only once. */
  #batch: { readonly number: number; readonly counts: readonly ClauseCount[] } = { number: 0, counts: [] }
  #namedAtMs: number
  #turn: Promise<unknown> = Promise.resolve()

  constructor(deps: ClauseHitsDeps) {
    const { store, clock, everyMs = EVERY_MS } = deps
    this.#deps = deps
    this.#namedAtMs = clock.monotonicMs()
    if (store) this.#timer = setInterval(() => void this.#write(), everyMs).unref()
  }

  /**
   * Returns the counts of all processes that share the store, for all clauses or for those at some paths. Never
   * rejects.
   */
  async read(paths?: ReadonlySet<string>): Promise<CountedClauses> {
    const { store, onFault } = this.#deps
    if (!store) return { clauses: this.#own(paths) }
    try {
      return { clauses: await runWithDeadline(() => this.#inTurn(() => this.#sums(store, paths)), ANSWER_MS) }
    } catch (error) {
      onFault(error)
      return { clauses: this.#own(paths), isOwn: true }
    }
  }

  #own(paths: ReadonlySet<string> | undefined): readonly ClauseCoverage[] {
    const all = this.#deps.gate.coverage()
    return paths ? all.filter(({ path }) => paths.has(path)) : all
  }

  /** Writes the new counts. The store must still be open. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await endsWithin(this.#write(), ANSWER_MS)
  }

  async #write(): Promise<void> {
    const { store, onFault } = this.#deps
    if (store) await this.#inTurn(() => this.#send(store)).catch(onFault)
  }

  async #sums(store: ClauseCountStore, paths: ReadonlySet<string> | undefined): Promise<readonly ClauseCoverage[]> {
    // If a batch had no answer, it is unknown whether the store added it, so it is sent again.
    if (this.#batch.counts.length > 0) await this.#send(store)
    const clauses = this.#own(paths)
    const ids = clauses.flatMap(({ id, shadow }) => (shadow ? [id, unjudgedId(id)] : [id]))
    const sums = new Map((await store.read(ids)).map((sum) => [sum.id, sum]))
    const untold = new Map(
      countsOf(this.#deps.gate)
        ?.untold()
        .map((count) => [count.id, count]),
    )
    return clauses.map((clause) => {
      const { hits: _, lastHitAt: __, unjudged: ___, ...rest } = clause
      const id = unjudgedId(clause.id)
      const unjudged = (sums.get(id)?.hits ?? 0) + (untold.get(id)?.hits ?? 0)
      return {
        ...rest,
        ...joined(sums.get(clause.id), untold.get(clause.id), clause),
        ...(unjudged > 0 && { unjudged }),
      }
    })
  }

  async #send(store: ClauseCountStore): Promise<void> {
    const counts = countsOf(this.#deps.gate)
    if (this.#batch.counts.length === 0) {
      const untold = counts?.untold() ?? []
      this.#batch = { number: this.#batch.number + 1, counts: this.#isToName() ? this.#withUnhit(untold) : untold }
      counts?.told(untold)
    }
    const { number, counts: sent } = this.#batch
    if (sent.length > 0) await store.add(sent, { writer: this.#writer, number })
    this.#batch = { number, counts: [] }
  }

  #isToName(): boolean {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#namedAtMs < NAME_MS) return false
    this.#namedAtMs = nowMs
    return true
  }

  #withUnhit(untold: readonly ClauseCount[]): readonly ClauseCount[] {
    const hit = new Set(untold.map(({ id }) => id))
    const rest = this.#deps.gate.coverage().filter(({ id }) => !hit.has(id))
    return [...untold, ...rest.map(({ id, countedSince }) => ({ id, hits: 0, countedSince }))]
  }

  /** Runs reads and writes of the store one at a time, so that no hit is missed or counted twice. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }
}

/** Returns the total count. `own`: the count of this process, of which the store has everything except for `untold`. */
function joined(sum: ClauseCount | undefined, untold: ClauseCount | undefined, own: ClauseCount) {
  const last = Math.max(...[sum, untold, own].map((count) => count?.lastHitAt ?? 0))
  return {
    hits: (sum?.hits ?? 0) + (untold?.hits ?? 0),
    ...(last > 0 && { lastHitAt: last }),
    countedSince: Math.min(sum?.countedSince ?? Number.POSITIVE_INFINITY, own.countedSince),
  }
}
