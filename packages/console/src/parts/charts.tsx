import { memo, type ReactElement, useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { AUDIT_OUTCOMES } from '../audit-feed.ts'
import { type ChartData, TIMED } from '../chart-data.ts'
import { formatClock, formatDuration } from '../format.ts'
import { useMedia } from '../hooks.ts'
import type { AuditOutcome } from '../wire.ts'

const COUNT_HEIGHT = 132
const AXIS_FONT = '11px system-ui, sans-serif'

/**
 * Shows two charts over the same time: calls by outcome, stacked, and the latency of the calls that ran. They are drawn
 * only for new data.
 */
export default memo(Charts)

function Charts({ data }: { data: ChartData }): ReactElement {
  const isDark = useMedia('(prefers-color-scheme: dark)')
  const key = `${isDark} ${data.bucketMs}`
  return (
    <div className="charts">
      <figure>
        <figcaption>Calls by outcome</figcaption>
        <Plot key={`counts ${key}`} data={toStacks(data)} options={countOptions} label={describeCounts(data)} />
      </figure>
      <figure>
        <figcaption>Latency, median (line) and 95th percentile (dashes)</figcaption>
        <Plot key={`latency ${key}`} data={toLatencies(data)} options={latencyOptions} label={describeLatency(data)} />
      </figure>
    </div>
  )
}

interface PlotProps {
  readonly data: uPlot.AlignedData
  readonly options: (width: number) => uPlot.Options
  /** A text alternative of the chart. */
  readonly label: string
}

function Plot({ data, options, label }: PlotProps): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const latest = useRef(data)
  useEffect(() => {
    const element = box.current
    if (!element) return
    const drawn = new uPlot(options(element.clientWidth), latest.current, element)
    plot.current = drawn
    const observer = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: COUNT_HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      drawn.destroy()
      plot.current = null
    }
  }, [options])
  useEffect(() => {
    latest.current = data
    plot.current?.setData(data)
  }, [data])
  return <div ref={box} className="plot" role="img" aria-label={label} />
}

/** The outcomes, drawn from the highest stack down. Each covers the previous one except for its own part. */
const STACKED: readonly AuditOutcome[] = AUDIT_OUTCOMES.toReversed()

function toStacks({ times, counts }: ChartData): uPlot.AlignedData {
  const sums = times.map(() => 0)
  const stacks = AUDIT_OUTCOMES.map((outcome) => {
    counts.get(outcome)?.forEach((n, i) => (sums[i] = (sums[i] ?? 0) + n))
    return [...sums]
  })
  return [[...times], ...stacks.toReversed()]
}

function toLatencies({ times, medians, p95s }: ChartData): uPlot.AlignedData {
  return [
    [...times],
    ...TIMED.flatMap((outcome) => [[...(medians.get(outcome) ?? [])], [...(p95s.get(outcome) ?? [])]]),
  ]
}

function countOptions(width: number): uPlot.Options {
  const bars = uPlot.paths.bars?.({ size: [0.85, 24], align: 1, gap: 0 })
  return {
    ...common(width),
    scales: {
      x: { time: true, range: toLastEnd },
      y: { range: (_plot, _min, max) => [0, Math.max(4, Math.ceil(max * 1.1))] },
    },
    series: [
      {},
      ...STACKED.map((outcome) => ({
        label: outcome,
        fill: colour(outcome),
        width: 0,
        points: { show: false },
        ...(bars ? { paths: bars } : {}),
      })),
    ],
    axes: axes((value) => (Number.isInteger(value) ? String(value) : '')),
  }
}

function latencyOptions(width: number): uPlot.Options {
  return {
    ...common(width),
    scales: {
      x: { time: true, range: toLastEnd },
      y: {
        distr: 3,
        range: (_plot, min, max) => [
          10 ** Math.floor(Math.log10(Math.max(1, min))),
          10 ** Math.ceil(Math.log10(Math.max(10, max))),
        ],
      },
    },
    series: [
      {},
      ...TIMED.flatMap((outcome) => [
        {
          label: outcome,
          stroke: colour(outcome),
          width: 1.5,
          spanGaps: true,
          points: { show: true, size: 4, fill: colour(outcome) },
        },
        {
          label: `${outcome} p95`,
          stroke: colour(outcome),
          width: 1,
          dash: [4, 4],
          spanGaps: true,
          points: { show: false },
        },
      ]),
    ],
    axes: axes(formatDuration, powersOfTen),
  }
}

function common(width: number): Pick<uPlot.Options, 'width' | 'height' | 'legend' | 'cursor' | 'padding'> {
  return { width, height: COUNT_HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0] }
}

function axes(format: (value: number) => string, splits?: uPlot.Axis.Splits): uPlot.Axis[] {
  const shared: uPlot.Axis = {
    stroke: token('--dim'),
    font: AXIS_FONT,
    grid: { stroke: token('--line'), width: 1 },
    ticks: { show: false },
  }
  return [
    { ...shared, size: 24, grid: { show: false }, space: 70, values: (_plot, at) => at.map(toAxisTime) },
    { ...shared, size: 52, space: 24, ...(splits ? { splits } : {}), values: (_plot, at) => at.map(format) },
  ]
}

/** Extends the time axis to the end of the last bucket, because times are the starts of buckets. */
const toLastEnd: uPlot.Range.Function = ({ data: [times] }, min, max) => [
  min,
  max + (max - min) / Math.max(1, times.length - 1),
]

/** Returns the lines of a logarithmic axis at powers of ten only. */
const powersOfTen: uPlot.Axis.Splits = (_plot, _axis, min, max) => {
  const from = Math.round(Math.log10(min))
  return Array.from({ length: Math.round(Math.log10(max)) - from + 1 }, (_, i) => 10 ** (from + i))
}

function toAxisTime(seconds: number): string {
  const time = formatClock(seconds * 1000)
  return time.endsWith(':00') ? time.slice(0, -3) : time
}

function colour(outcome: AuditOutcome): string {
  return token(`--chart-${outcome}`)
}

function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

function describeCounts({ totals }: ChartData): string {
  return `Calls over time: ${AUDIT_OUTCOMES.map((outcome) => `${totals.get(outcome) ?? 0} ${outcome}`).join(', ')}`
}

function describeLatency({ latencies }: ChartData): string {
  const parts = TIMED.flatMap((outcome) => {
    const { median = null, p95 = null } = latencies.get(outcome) ?? {}
    if (median === null || p95 === null) return []
    return [`${outcome}: median ${formatDuration(median)}, 95th percentile ${formatDuration(p95)}`]
  })
  return parts.length === 0 ? 'Latency: no call ran' : `Latency, ${parts.join('; ')}`
}
