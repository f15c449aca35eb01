import { AUDIT_OUTCOMES, outcomeOf } from './audit-feed.ts'
import type { AuditOutcome, AuditRecord } from './wire.ts'

/** Outcomes of calls that ran, whose latency means something. */
export const TIMED: readonly AuditOutcome[] = ['done', 'failed', 'abandoned']

export interface Latency {
  readonly median: number | null
  /** The 95th percentile. */
  readonly p95: number | null
}

export interface ChartData {
  /** The beginning of each bucket, in seconds as uPlot has it, oldest first. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly counts: ReadonlyMap<AuditOutcome, readonly number[]>
  readonly medians: ReadonlyMap<AuditOutcome, readonly (number | null)[]>
  readonly p95s: ReadonlyMap<AuditOutcome, readonly (number | null)[]>
  readonly totals: ReadonlyMap<AuditOutcome, number>
  readonly latencies: ReadonlyMap<AuditOutcome, Latency>
}

const BUCKETS = 60

/** Counts ends of calls and their latency, in 60 buckets of the latest `spanMs`. `records` are newest first. */
export function toChartData(records: readonly AuditRecord[], spanMs: number, nowMs: number): ChartData {
  const bucketMs = spanMs / BUCKETS
  // Buckets stand still while time passes, so that a bar never changes its height for having moved.
  const endMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs
  const startMs = endMs - BUCKETS * bucketMs
  const counts = forEach(AUDIT_OUTCOMES, () => Array.from({ length: BUCKETS }, () => 0))
  const durations = forEach(TIMED, () => Array.from({ length: BUCKETS }, (): number[] => []))
  for (const record of records) {
    const atMs = Date.parse(record.ts)
    if (atMs < startMs) break
    const outcome = outcomeOf(record)
    const bucket = Math.min(BUCKETS - 1, Math.floor((atMs - startMs) / bucketMs))
    const count = outcome && counts.get(outcome)
    if (!count) continue
    count[bucket] = (count[bucket] ?? 0) + 1
    if (record.duration_ms !== undefined) durations.get(outcome)?.[bucket]?.push(record.duration_ms)
  }
  for (const buckets of durations.values()) for (const bucket of buckets) bucket.sort((a, b) => a - b)
  return {
    times: Array.from({ length: BUCKETS }, (_, i) => (startMs + i * bucketMs) / 1000),
    bucketMs,
    counts,
    medians: mapValues(durations, (buckets) => buckets.map((sorted) => quantile(sorted, 0.5))),
    p95s: mapValues(durations, (buckets) => buckets.map((sorted) => quantile(sorted, 0.95))),
    totals: mapValues(counts, (buckets) => buckets.reduce((sum, n) => sum + n, 0)),
    latencies: mapValues(durations, (buckets) => {
      const sorted = buckets.flat().toSorted((a, b) => a - b)
      return { median: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) }
    }),
  }
}

/** Nearest rank; `null` of nothing. */
function quantile(sorted: readonly number[], q: number): number | null {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? null
}

function forEach<K, V>(keys: readonly K[], make: () => V): Map<K, V> {
  return new Map(keys.map((key) => [key, make()]))
}

function mapValues<K, V, W>(map: ReadonlyMap<K, V>, change: (value: V) => W): ReadonlyMap<K, W> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}
