import { type ComponentType, type ReactElement, useEffect, useState } from 'react'
import { AUDIT_OUTCOMES } from '../audit-feed.ts'
import { type ChartData, toChartData } from '../chart-data.ts'
import { formatDuration, formatNumber } from '../format.ts'
import { type Choose, useNow } from '../hooks.ts'
import type { AuditRecord } from '../wire.ts'

type Charts = ComponentType<{ data: ChartData }>

/** Fetched when a chart is looked at: nobody waits for it who does not. A browser does not fetch a module twice. */
function useCharts(): { readonly Charts?: Charts; readonly hasFailed?: true } {
  const [found, setFound] = useState<{ readonly Charts?: Charts; readonly hasFailed?: true }>({})
  useEffect(() => {
    import('./charts.tsx').then(
      ({ default: Charts }) => setFound({ Charts }),
      () => setFound({ hasFailed: true }),
    )
  }, [])
  return found
}

const SPANS: ReadonlyMap<string, { readonly ms: number; readonly label: string }> = new Map([
  ['5m', { ms: 300_000, label: '5 min' }],
  ['1h', { ms: 3_600_000, label: '1 h' }],
  ['1d', { ms: 86_400_000, label: '24 h' }],
])
const DEFAULT_SPAN = '5m'

export interface ChartPanelProps {
  readonly records: readonly AuditRecord[]
  /** Whether older records exist that are not held here. */
  readonly isPart: boolean
  readonly span: string
  readonly choose: Choose
}

/** How calls end and how long they take, of the records that are held. The numbers stand beside the picture. */
export function ChartPanel({ records, isPart, span, choose }: ChartPanelProps): ReactElement {
  const nowMs = useNow(1000)
  const { Charts, hasFailed } = useCharts()
  const { ms } = SPANS.get(span) ?? { ms: 300_000 }
  const data = useEverySecond(records, ms, nowMs)
  const oldest = records.at(-1)
  const isShort = isPart && oldest !== undefined && Date.parse(oldest.ts) > nowMs - ms
  return (
    <section className="chart-panel" aria-label="Calls over time">
      <div className="chart-head">
        <dl className="legend">
          {AUDIT_OUTCOMES.map((outcome) => {
            const { median = null, p95 = null } = data.latencies.get(outcome) ?? {}
            return (
              <div key={outcome} className={`legend-item ${outcome}`}>
                <dt>{outcome}</dt>
                <dd>
                  <b>{formatNumber(data.totals.get(outcome) ?? 0)}</b>
                  {median !== null && p95 !== null && (
                    <span className="dim">
                      {' '}
                      {formatDuration(median)} / {formatDuration(p95)}
                    </span>
                  )}
                </dd>
              </div>
            )
          })}
        </dl>
        <div className="segmented" role="group" aria-label="Time span">
          {[...SPANS].map(([name, { label }]) => (
            <button
              key={name}
              type="button"
              aria-pressed={(SPANS.has(span) ? span : DEFAULT_SPAN) === name}
              onClick={() => choose({ span: name === DEFAULT_SPAN ? '' : name })}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      {Charts ? <Charts data={data} /> : !hasFailed && <div className="charts-coming" />}
      {hasFailed && (
        <p className="note">
          The charts could not be fetched.{' '}
          <button type="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        </p>
      )}
      {isShort && (
        <p className="dim note">
          Of the newest {formatNumber(records.length)} records only: older ones are not loaded.
        </p>
      )}
    </section>
  )
}

/** Counts anew when time or the choice has moved on, not for each record of many that come at once. */
function useEverySecond(records: readonly AuditRecord[], ms: number, nowMs: number): ChartData {
  const [counted, setCounted] = useState(() => ({ ms, nowMs, data: toChartData(records, ms, nowMs) }))
  if (counted.ms === ms && counted.nowMs === nowMs) return counted.data
  const data = toChartData(records, ms, nowMs)
  setCounted({ ms, nowMs, data })
  return data
}
