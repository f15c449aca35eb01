import { type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { addCounted, type Counted, type Denial, type OverviewFigures, keyOf, noneCounted, Sum } from './sum.ts'

const MINUTE = 60_000

/** The periods of an overview: the number of buckets, and the length of each. */
export const PERIODS = {
  '1h': { bucketMs: MINUTE, count: 60 },
  '24h': { bucketMs: 15 * MINUTE, count: 96 },
  '7d': { bucketMs: 120 * MINUTE, count: 84 },
} as const
export type Period = keyof typeof PERIODS

export const LONGEST_MS = PERIODS['7d'].bucketMs * PERIODS['7d'].count

/** The counts of one tool, tenant and bucket. */
interface Cell extends Counted {
  readonly tenant: string | undefined
  /** Absent for names that no tool has, and for tools beyond the limit. */
  readonly tool: string | undefined
}

interface Bucket {
  readonly cells: Map<string, Cell>
  readonly denials: Map<string, Denial>
}

/** The maximum number of tools of tenants with their own counts, over all buckets: about 50 MB. */
const MAX_CELLS = 100_000
const MAX_DENIALS = 500
/** The maximum number of cached sums of periods and tenants. */
const MAX_SUMS = 12

/** Counts attempts by tool and tenant in buckets of time, for all periods at once. */
export class OverviewTally {
  readonly #series = new Map<Period, Map<number, Bucket>>()
  readonly #maxCells: number
  /**
   * The recently requested sums, by period and tenant. Each record is added to them too, so that an answer needs no new
   * addition.
   */
  readonly #sums = new Map<string, Sum>()
  #cells = 0

  constructor({ maxCells = MAX_CELLS }: { readonly maxCells?: number } = {}) {
    this.#maxCells = maxCells
    for (const period of periods()) this.#series.set(period, new Map())
  }

  /** Counts a record. Records that end no attempt or are too old are ignored. */
  add(record: AuditRecord, nowMs: number): void {
    const outcome = outcomeOfRecord(record)
    if (outcome === undefined) return
    const atMs = Date.parse(record.ts)
    for (const period of periods()) {
      const { bucketMs } = PERIODS[period]
      const start = Math.floor(atMs / bucketMs) * bucketMs
      if (start < firstStart(period, nowMs)) continue
      const bucket = this.#bucketAt(period, start, nowMs)
      const cell = this.#cellOf(bucket, record)
      const one = noneCounted()
      one.outcomes[outcome]++
      if (record.duration_ms !== undefined && record.event === 'tool_result') one.latencies.add(record.duration_ms)
      addCounted(cell, one)
      const denial = outcome === 'refused' ? addDenial(bucket, record) : undefined
      for (const sum of this.#sums.values()) {
        if (sum.times.bucketMs !== bucketMs) continue
        sum.add(start, cell, one)
        if (denial) sum.addDenial(start, denial, 1)
      }
    }
  }

  /** Returns the counts of a period up to now, for one tenant, or for all if `undefined`. */
  read(period: Period, tenant: string | undefined, nowMs: number): OverviewFigures {
    const key = keyOf(period, tenant)
    const since = firstStart(period, nowMs)
    const kept = this.#sums.get(key)
    const sum = kept?.times.since === since ? kept : this.#addUp(period, tenant, since)
    this.#sums.delete(key)
    this.#sums.set(key, sum)
    const [oldest] = this.#sums.keys()
    if (this.#sums.size > MAX_SUMS && oldest !== undefined) this.#sums.delete(oldest)
    return sum.read()
  }

  #addUp(period: Period, tenant: string | undefined, since: number): Sum {
    const sum = new Sum({ since, ...PERIODS[period] }, tenant)
    for (const [start, bucket] of this.#series.get(period) ?? []) {
      for (const cell of bucket.cells.values()) sum.add(start, cell, cell)
      for (const denial of bucket.denials.values()) sum.addDenial(start, denial, denial.count)
    }
    return sum
  }

  #bucketAt(period: Period, start: number, nowMs: number): Bucket {
    const series = this.#series.get(period) ?? new Map<number, Bucket>()
    const known = series.get(start)
    if (known) return known
    for (const [old, { cells }] of series) {
      if (old >= firstStart(period, nowMs)) continue
      series.delete(old)
      this.#cells -= cells.size
    }
    const bucket = { cells: new Map(), denials: new Map() }
    series.set(start, bucket)
    return bucket
  }

  #cellOf({ cells }: Bucket, { tenant, tool, reason }: AuditRecord): Cell {
    // Agents can invent any number of names.
    const own = reason === 'tool_not_found' ? undefined : tool
    const key = keyOf(tenant, own)
    const known = cells.get(key)
    if (known) return known
    if (this.#cells >= this.#maxCells && own !== undefined) return this.#restOf(cells, tenant)
    return this.#newCell(cells, key, { tenant, tool: own })
  }

  /**
   * Returns the shared cell of tools beyond the limit. Tenants beyond the limit share one cell, which people of a
   * tenant do not see.
   */
  #restOf(cells: Map<string, Cell>, tenant: string | undefined): Cell {
    const of = this.#cells < this.#maxCells * 1.1 ? tenant : undefined
    const key = keyOf(of, undefined)
    return cells.get(key) ?? this.#newCell(cells, key, { tenant: of, tool: undefined })
  }

  #newCell(cells: Map<string, Cell>, key: string, about: Pick<Cell, 'tenant' | 'tool'>): Cell {
    const cell = { ...about, ...noneCounted() }
    cells.set(key, cell)
    this.#cells++
    return cell
  }
}

/** Adds a refusal and returns its row; `undefined` if the bucket has no room for it. */
function addDenial({ denials }: Bucket, { tenant, tool, user_id: user, reason }: AuditRecord): Denial | undefined {
  const own = reason === 'tool_not_found' ? undefined : tool
  const key = keyOf(tenant, own, user, reason)
  const known = denials.get(key)
  if (known) known.count++
  else if (denials.size >= MAX_DENIALS) return undefined
  const row = known ?? { tenant, tool: own, user, reason, count: 1 }
  denials.set(key, row)
  return row
}

/** Returns the start of the first bucket of a period that ends now. */
function firstStart(period: Period, nowMs: number): number {
  const { bucketMs, count } = PERIODS[period]
  return (Math.floor(nowMs / bucketMs) - count + 1) * bucketMs
}

function periods(): readonly Period[] {
  return Object.keys(PERIODS) as Period[]
}
