import { type AuditCounts, type AuditOutcome, type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import { Latencies } from './latency.ts'

export type OutcomeCounts = AuditCounts['buckets'][number]

const MINUTE = 60_000

/** The periods of an overview: of how many buckets, and how long each is. */
export const PERIODS = {
  '1h': { bucketMs: MINUTE, count: 60 },
  '24h': { bucketMs: 15 * MINUTE, count: 96 },
  '7d': { bucketMs: 120 * MINUTE, count: 84 },
} as const
export type Period = keyof typeof PERIODS

export const LONGEST_MS = PERIODS['7d'].bucketMs * PERIODS['7d'].count

/** What is counted of one tool of one tenant in one bucket. */
interface Cell {
  readonly tenant: string | undefined
  /** Absent: of names that no tool has, and of tools beyond the bound. */
  readonly tool: string | undefined
  readonly outcomes: Record<AuditOutcome, number>
  readonly latencies: Latencies
}

interface Denial {
  readonly tenant: string | undefined
  readonly tool: string | undefined
  readonly user: string | undefined
  readonly reason: string | undefined
  count: number
}

interface Bucket {
  readonly cells: Map<string, Cell>
  readonly denials: Map<string, Denial>
}

/** How many tools of tenants are kept apart, over all buckets: about 50 MB. */
const MAX_CELLS = 100_000
const MAX_DENIALS = 500

/** What happened in a period. */
export interface Figures {
  readonly since: number
  readonly bucketMs: number
  readonly buckets: readonly OutcomeCounts[]
  /** By tool; `undefined` for those that are not kept apart. */
  readonly tools: ReadonlyMap<string | undefined, Pick<Cell, 'outcomes' | 'latencies'>>
  readonly denials: readonly Readonly<Denial>[]
}

/** Counts attempts by tool and tenant in buckets of time, for all periods at once. */
export class Tally {
  readonly #series = new Map<Period, Map<number, Bucket>>()
  readonly #maxCells: number
  #cells = 0

  constructor({ maxCells = MAX_CELLS }: { readonly maxCells?: number } = {}) {
    this.#maxCells = maxCells
    for (const period of periods()) this.#series.set(period, new Map())
  }

  /** Counts a record. Those that end no attempt, or are too old, change nothing. */
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
      cell.outcomes[outcome]++
      if (record.duration_ms !== undefined && record.event === 'tool_result') cell.latencies.add(record.duration_ms)
      if (outcome === 'refused') addDenial(bucket, record)
    }
  }

  /** Returns the figures of a period up to now; of one tenant, or of all for `undefined`. */
  read(period: Period, tenant: string | undefined, nowMs: number): Figures {
    const { bucketMs, count } = PERIODS[period]
    const since = firstStart(period, nowMs)
    const buckets = Array.from({ length: count }, noOutcomes)
    const tools = new Map<string | undefined, Pick<Cell, 'outcomes' | 'latencies'>>()
    const denials = new Map<string, Denial>()
    for (const [start, bucket] of this.#series.get(period) ?? []) {
      const outcomes = buckets[(start - since) / bucketMs]
      if (!outcomes) continue
      for (const cell of bucket.cells.values()) {
        if (tenant !== undefined && cell.tenant !== tenant) continue
        const sum = tools.get(cell.tool) ?? { outcomes: noOutcomes(), latencies: new Latencies() }
        tools.set(cell.tool, sum)
        addOutcomes(sum.outcomes, cell.outcomes)
        addOutcomes(outcomes, cell.outcomes)
        sum.latencies.merge(cell.latencies)
      }
      for (const [key, denial] of bucket.denials) {
        if (tenant !== undefined && denial.tenant !== tenant) continue
        const sum = denials.get(key)
        if (sum) sum.count += denial.count
        else denials.set(key, { ...denial })
      }
    }
    return { since, bucketMs, buckets, tools, denials: [...denials.values()].toSorted((a, b) => b.count - a.count) }
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
    // Agents can make up any number of names.
    const own = reason === 'tool_not_found' ? undefined : tool
    const key = keyOf(tenant, own)
    const known = cells.get(key)
    if (known) return known
    if (this.#cells >= this.#maxCells && own !== undefined) return this.#restOf(cells, tenant)
    return this.#newCell(cells, key, { tenant, tool: own })
  }

  /** The cell of tools beyond the bound. Of tenants beyond it, there is one for all, which people of a tenant do not see. */
  #restOf(cells: Map<string, Cell>, tenant: string | undefined): Cell {
    const of = this.#cells < this.#maxCells * 1.1 ? tenant : undefined
    const key = keyOf(of, undefined)
    return cells.get(key) ?? this.#newCell(cells, key, { tenant: of, tool: undefined })
  }

  #newCell(cells: Map<string, Cell>, key: string, about: Pick<Cell, 'tenant' | 'tool'>): Cell {
    const cell = { ...about, outcomes: noOutcomes(), latencies: new Latencies() }
    cells.set(key, cell)
    this.#cells++
    return cell
  }
}

function addDenial({ denials }: Bucket, { tenant, tool, user_id: user, reason }: AuditRecord): void {
  const own = reason === 'tool_not_found' ? undefined : tool
  const key = keyOf(tenant, own, user, reason)
  const known = denials.get(key)
  if (known) known.count++
  else if (denials.size < MAX_DENIALS) denials.set(key, { tenant, tool: own, user, reason, count: 1 })
}

/** The start of the first bucket of a period that ends now. */
function firstStart(period: Period, nowMs: number): number {
  const { bucketMs, count } = PERIODS[period]
  return (Math.floor(nowMs / bucketMs) - count + 1) * bucketMs
}

function periods(): readonly Period[] {
  return Object.keys(PERIODS) as Period[]
}

/** An absent part is another than an empty one. */
function keyOf(...parts: readonly (string | undefined)[]): string {
  return parts.map((part) => (part === undefined ? '' : `=${part}`)).join('\0')
}

export function noOutcomes(): Record<AuditOutcome, number> {
  return { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 }
}

export function addOutcomes(to: Record<AuditOutcome, number>, more: OutcomeCounts): void {
  for (const outcome of AUDIT_OUTCOMES) to[outcome] += more[outcome]
}
