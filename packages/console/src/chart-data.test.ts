import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toChartData, toPeriod } from './chart-data.ts'
import type { AuditRecord } from './wire.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 30)

describe('toChartData', () => {
  it('counts calls by outcome, in buckets at fixed times', () => {
    const records = [
      record(9, 'tool_call', 500),
      record(8, 'tool_result', 1000),
      record(7, 'tool_blocked', 61_000),
      record(6, 'tool_result', 62_000),
      record(5, 'tool_result', 3_700_000),
    ]
    const { times, counts, totals } = toChartData(records, toPeriod(3_600_000, NOW))
    assert.equal(times.length, 60)
    assert.deepEqual(counts.get('done')?.slice(-2), [1, 1])
    assert.deepEqual(counts.get('refused')?.slice(-2), [1, 0])
    assert.deepEqual([totals.get('done'), totals.get('refused'), totals.get('waiting')], [2, 1, 0])
    assert.deepEqual(toChartData(records, toPeriod(3_600_000, NOW + 20_000)).times, times)
  })

  it('adds later records to the counts of the gateway', () => {
    const { startMs, bucketMs } = toPeriod(3_600_000, NOW)
    const none = { done: 0, failed: 0, refused: 0, limited: 0, waiting: 0, input_required: 0, abandoned: 0 }
    const buckets = Array.from({ length: 120 }, (_, i) => ({ ...none, done: i < 60 ? 100 : 1, refused: 2 }))
    const records = [record(9, 'tool_result', 1000), record(8, 'tool_result', 1000)]
    const counted = { since: startMs, bucketMs, buckets, newestSeq: 8 }
    const { totals, counts } = toChartData(records, { startMs, endMs: NOW, bucketMs }, counted)
    assert.deepEqual([totals.get('done'), totals.get('refused')], [60 * 100 + 60 + 1, 240])
    assert.deepEqual(counts.get('done')?.slice(-2), [100, 100 + 60 + 1])
    const later = toChartData(records, toPeriod(3_600_000, NOW + 2 * bucketMs), counted)
    assert.deepEqual(later.counts.get('refused')?.slice(-2), [2, 2 * 59])
    assert.equal(later.counts.get('done')?.[57], 101)
  })

  it('returns the median and the 95th percentile of calls that ran, and null without any', () => {
    const records = Array.from({ length: 100 }, (_, i) => ({
      ...record(100 - i, 'tool_result', 0),
      duration_ms: i + 1,
    }))
    const { medians, p95s, latencies } = toChartData(records, toPeriod(300_000, NOW))
    assert.deepEqual(latencies.get('done'), { median: 50, p95: 95 })
    assert.deepEqual(latencies.get('failed'), { median: null, p95: null })
    assert.deepEqual([medians.get('done')?.at(-1), medians.get('done')?.at(0)], [50, null])
    assert.equal(p95s.get('done')?.at(-1), 95)
  })
})

function record(seq: number, event: AuditRecord['event'], agoMs: number): AuditRecord {
  return { seq, event, ts: new Date(NOW - agoMs).toISOString(), policy_revision: 1, catalog_revision: 1 }
}
