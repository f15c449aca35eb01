import { type ReactElement, useState } from 'react'
import { AUDIT_OUTCOMES, type RecordFilter } from '../audit-feed.ts'
import { type ChartData, type ChartPeriod, toChartData, toPeriod } from '../chart-data.ts'
import { formatDuration, formatNumber } from '../format.ts'
import { choose, useApi, useLater, useNow } from '../hooks.ts'
import { createLater } from '../later.ts'
import { Segmented } from './filters.tsx'
import type { AuditCountsBody, AuditRecord } from '../wire.ts'

const CHARTS = createLater(async () => (await import('./charts.tsx')).default)

const SPANS: ReadonlyMap<string, { readonly ms: number; readonly label: string }> = new Map([
  ['5m', { ms: 300_000, label: '5 min' }],
  ['1h', { ms: 3_600_000, label: '1 h' }],
  ['1d', { ms: 86_400_000, label: '24 h' }],
])
const DEFAULT_SPAN = '5m'

interface ChartPanelProps {
  readonly records: readonly AuditRecord[]
  /** Whether older records exist that are not loaded. */
  readonly isPart: boolean
  readonly filter: RecordFilter
  readonly span: string
}

/** Shows calls by outcome, as the gateway counts them, and the latency of the loaded calls, as numbers and charts. */
export function ChartPanel({ records, isPart, filter, span }: ChartPanelProps): ReactElement {
  const nowMs = useNow(1000)
  const { Content: Charts, hasFailed } = useLater(CHARTS)
  const { ms } = SPANS.get(span) ?? { ms: 300_000 }
  const period = toPeriod(ms, nowMs)
  const { counted, isComing } = useCounts(filter, period)
  const data = useEverySecond({ records, ms, nowMs, counted }, period)
  const oldest = records.at(-1)
  const isShort = isPart && oldest !== undefined && Date.parse(oldest.ts) > nowMs - ms
  return (
    <section className="card chart-panel" aria-label="Calls over time">
      <div className="chart-head">
        <dl className="legend">
          {AUDIT_OUTCOMES.map((outcome) => {
            const { median = null, p95 = null } = data.latencies.get(outcome) ?? {}
            return (
              <div key={outcome} className={`legend-item ${outcome}`}>
                <dt>{outcome}</dt>
                <dd>
                  <b>{isComing ? '…' : formatNumber(data.totals.get(outcome) ?? 0)}</b>
                  {median !== null && p95 !== null && (
                    <span className="dim">
                      {' '}
                      p50 {formatDuration(median)}, p95 {formatDuration(p95)}
                    </span>
                  )}
                </dd>
              </div>
            )
          })}
        </dl>
        <Segmented
          label="Time span"
          options={[...SPANS].map(([name, { label }]) => [name, label])}
          value={SPANS.has(span) ? span : DEFAULT_SPAN}
          apply={(name) => choose({ span: name === DEFAULT_SPAN ? '' : name })}
        />
      </div>
      {Charts ? <Charts data={data} /> : !hasFailed && <div className="charts-coming" />}
      {hasFailed && (
        <p className="note">
          The charts could not be loaded.{' '}
          <button type="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </p>
      )}
      {isShort && (
        <p className="dim note">
          {counted ? 'Latency of' : 'Of'} the newest {formatNumber(records.length)} records only: older ones are not
          loaded.
        </p>
      )}
    </section>
  )
}

interface CountedCalls {
  /** The gateway's counts. Absent while they load, and if the gateway cannot count. */
  readonly counted: AuditCountsBody | undefined
  readonly isComing: boolean
}

/** The time between fetches of the counts, in milliseconds. New records are added to the counts here meanwhile. */
const COUNT_AGAIN_MS = 15_000

/** Fetches the gateway's counts of a period. */
function useCounts(filter: RecordFilter, { startMs, endMs, bucketMs }: ChartPeriod): CountedCalls {
  const { data, isPlaceholderData, isPending } = useApi<AuditCountsBody>({
    key: ['audit-counts', filter, bucketMs],
    path: '/api/audit/counts',
    // The clock of the gateway may be ahead of the browser's.
    parameters: { ...filter, since: startMs, until: endMs + (endMs - startMs), bucket: bucketMs },
    everyMs: COUNT_AGAIN_MS,
  })
  // Placeholder data belongs to another period or filter.
  return { counted: isPlaceholderData ? undefined : data, isComing: isPending || isPlaceholderData }
}

interface Counting {
  readonly records: readonly AuditRecord[]
  readonly ms: number
  readonly nowMs: number
  readonly counted: AuditCountsBody | undefined
}

/** Computes the chart when the time, the choice or the counts change, but not for each new record. */
function useEverySecond({ records, ms, nowMs, counted }: Counting, period: ChartPeriod): ChartData {
  const [latest, setLatest] = useState(() => ({ ms, nowMs, counted, data: toChartData(records, period, counted) }))
  if (latest.ms === ms && latest.nowMs === nowMs && latest.counted === counted) return latest.data
  const data = toChartData(records, period, counted)
  setLatest({ ms, nowMs, counted, data })
  return data
}
