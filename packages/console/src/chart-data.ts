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
  // Times are RFC 3339 of one form, so they compare as text, and records are newest first, so the bucket hardly moves.
  const starts = Array.from({ length: BUCKETS }, (_, i) => new Date(startMs + i * bucketMs).toISOString())
  let bucket = BUCKETS - 1
  for (const record of records) {
    while (bucket >= 0 && record.ts < (starts[bucket] ?? '')) bucket--
    if (bucket < 0) break
    while (bucket < BUCKETS - 1 && record.ts >= (starts[bucket + 1] ?? '')) bucket++
    const outcome = outcomeOf(record)
    const count = outcome && counts.get(outcome)
    if (!count) continue
    count[bucket] = (count[bucket] ?? 0) + 1
    if (record.duration_ms !== undefined) durations.get(outcome)?.[bucket]?.push(record.duration_ms)
  }
  const sorted = mapValues(durations, (buckets) => buckets.map((one) => Float64Array.from(one).toSorted()))
  return {
    times: Array.from({ length: BUCKETS }, (_, i) => (startMs + i * bucketMs) / 1000),
    bucketMs,
    counts,
    medians: mapValues(sorted, (buckets) => buckets.map((one) => quantile(one, 0.5))),
    p95s: mapValues(sorted, (buckets) => buckets.map((one) => quantile(one, 0.95))),
    totals: mapValues(counts, (buckets) => buckets.reduce((sum, n) => sum + n, 0)),
    latencies: mapValues(durations, (buckets) => {
      const all = Float64Array.from(buckets.flat()).toSorted()
      return { median: quantile(all, 0.5), p95: quantile(all, 0.95) }
    }),
  }
}

/** Nearest rank; `null` of nothing. */
function quantile(sorted: Float64Array, q: number): number | null {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? null
}

function forEach<K, V>(keys: readonly K[], make: () => V): Map<K, V> {
  return new Map(keys.map((key) => [key, make()]))
}

function mapValues<K, V, W>(map: ReadonlyMap<K, V>, change: (value: V) => W): ReadonlyMap<K, W> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}
