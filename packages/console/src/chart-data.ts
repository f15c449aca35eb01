import { AUDIT_OUTCOMES, outcomeOf } from './audit-feed.ts'
import type { AuditCountsBody, AuditOutcome, AuditRecord } from './wire.ts'

/** Outcomes of calls that ran and therefore have a latency. */
export const TIMED: readonly AuditOutcome[] = ['done', 'failed', 'abandoned']

interface Latency {
  readonly median: number | null
  /** The 95th percentile of the latencies, in milliseconds. */
  readonly p95: number | null
}

export interface ChartData {
  /** The start of each bucket, oldest first, in seconds as uPlot requires. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly counts: ReadonlyMap<AuditOutcome, readonly number[]>
  readonly medians: ReadonlyMap<AuditOutcome, readonly (number | null)[]>
  readonly p95s: ReadonlyMap<AuditOutcome, readonly (number | null)[]>
  readonly totals: ReadonlyMap<AuditOutcome, number>
  readonly latencies: ReadonlyMap<AuditOutcome, Latency>
}

const BUCKETS = 60

/** The period of a chart: 60 buckets at fixed times, so that a bar's height does not change as time passes. */
export interface ChartPeriod {
  readonly startMs: number
  readonly endMs: number
  readonly bucketMs: number
}

/** Returns the period of the latest `spanMs`. Its last bucket contains `nowMs`. */
export function toPeriod(spanMs: number, nowMs: number): ChartPeriod {
  const bucketMs = spanMs / BUCKETS
  const endMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs
  return { startMs: endMs - BUCKETS * bucketMs, endMs, bucketMs }
}

/**
 * Returns the outcomes of calls, and the latencies of the loaded calls. `records` are newest first.
 *
 * `counted` are the gateway's counts; later records are added to them. Without them, only the loaded records are
 * counted.
 */
export function toChartData(
  records: readonly AuditRecord[],
  { startMs, bucketMs }: ChartPeriod,
  counted?: AuditCountsBody,
): ChartData {
  const counts = placeCounts(counted, startMs, bucketMs)
  const countedSeq = counted?.newestSeq ?? 0
  const durations = forEach(TIMED, () => Array.from({ length: BUCKETS }, (): number[] => []))
  // RFC 3339 times of one form compare as texts. Records are newest first, so the bucket changes rarely.
  const starts = Array.from({ length: BUCKETS }, (_, i) => new Date(startMs + i * bucketMs).toISOString())
  let bucket = BUCKETS - 1
  for (const record of records) {
    while (bucket >= 0 && record.ts < (starts[bucket] ?? '')) bucket--
    if (bucket < 0) break
    while (bucket < BUCKETS - 1 && record.ts >= (starts[bucket + 1] ?? '')) bucket++
    const outcome = outcomeOf(record)
    const count = outcome && counts.get(outcome)
    if (!count) continue
    if (record.seq > countedSeq) count[bucket] = (count[bucket] ?? 0) + 1
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

/** Adds counts to the buckets of a period. The counts may be of an earlier period. */
function placeCounts(
  counted: AuditCountsBody | undefined,
  startMs: number,
  bucketMs: number,
): Map<AuditOutcome, number[]> {
  const counts = forEach(AUDIT_OUTCOMES, () => Array.from({ length: BUCKETS }, () => 0))
  for (const [i, outcomes] of (counted?.buckets ?? []).entries()) {
    const startsAtMs = (counted?.since ?? 0) + i * bucketMs
    // If the gateway's clock is ahead of the browser's, later counts are added to the last bucket.
    const bucket = Math.min(BUCKETS - 1, Math.round((startsAtMs - startMs) / bucketMs))
    if (bucket < 0) continue
    for (const [outcome, buckets] of counts) buckets[bucket] = (buckets[bucket] ?? 0) + outcomes[outcome]
  }
  return counts
}

/** Returns the quantile by nearest rank, or `null` without values. */
function quantile(sorted: Float64Array, q: number): number | null {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? null
}

function forEach<K, V>(keys: readonly K[], make: () => V): Map<K, V> {
  return new Map(keys.map((key) => [key, make()]))
}

function mapValues<K, V, W>(map: ReadonlyMap<K, V>, change: (value: V) => W): ReadonlyMap<K, W> {
  return new Map([...map].map(([key, value]) => [key, change(value)]))
}
