import type { CallCount, CallCounts, Durations } from '../../telemetry/call-counts.ts'
import { counter, type Family, gauge, type Sample } from '../../telemetry/exposition.ts'

type SampleLabels = NonNullable<Sample['labels']>

/** Returns the metrics of this process's calls. */
export function callFamilies(counts: CallCounts): readonly Family[] {
  const { calls, tools, durations, running } = counts
  const count = (wanted: (call: (typeof calls)[number]) => boolean) =>
    calls.filter(wanted).reduce((sum, call) => sum + call.count, 0)
  return [
    {
      name: 'toolgate_calls_total',
      type: 'counter',
      help: 'Ended calls, by status (done, failed, refused, waiting, input_required) and reason.',
      samples: withAlarms(calls).map(({ status, reason, count: value }) => ({ labels: { status, reason }, value })),
    },
    {
      name: 'toolgate_tool_calls_total',
      type: 'counter',
      help: 'Ended calls, by tool. Tools that the catalog does not have count as _unknown.',
      samples: tools.map(({ tool, status, count: value }) => ({ labels: { tool, status }, value })),
    },
    counter(
      'toolgate_refused_calls_total',
      'Refused calls.',
      count(({ status }) => status === 'refused'),
    ),
    counter(
      'toolgate_rate_limited_calls_total',
      'Calls refused by a rate limit.',
      count(({ reason }) => reason === 'rate_limited'),
    ),
    gauge('toolgate_running_calls', 'Calls in the gate or in a tool.', running),
    {
      name: 'toolgate_call_duration_seconds',
      type: 'histogram',
      help: 'Duration of calls that ran, including the gate.',
      samples: [...durations].flatMap(([status, taken]) => histogramSamples({ status }, taken)),
    },
    ...figuresByServer(counts),
  ]
}

/** Returns the metrics by server and tool, which the console's overview shows. */
function figuresByServer({ servers, denied, serverDurations, toolDurations }: CallCounts): readonly Family[] {
  return [
    {
      name: 'toolgate_server_calls_total',
      type: 'counter',
      help: 'Ended calls, by server and status.',
      samples: servers.map(({ server, status, count: value }) => ({ labels: { server, status }, value })),
    },
    {
      name: 'toolgate_denied_calls_total',
      type: 'counter',
      help: 'Refused calls, other than by limits, by tool and reason.',
      samples: denied.map(({ tool, reason, count: value }) => ({ labels: { tool, reason }, value })),
    },
    {
      name: 'toolgate_server_call_duration_seconds',
      type: 'histogram',
      help: 'Duration of calls that ran, including the gate, by server.',
      samples: [...serverDurations].flatMap(([server, taken]) => histogramSamples({ server }, taken)),
    },
    {
      name: 'toolgate_tool_call_duration_seconds',
      type: 'histogram',
      help: 'Duration of calls that ran, including the gate, by tool.',
      samples: [...toolDurations].flatMap(([tool, taken]) => histogramSamples({ tool }, taken)),
    },
  ]
}

/** Series that start at 0 before the first event, since an alert compares with the previous sample. */
const ALARMS: readonly Pick<CallCount, 'status' | 'reason'>[] = [
  { status: 'done', reason: '' },
  { status: 'failed', reason: '' },
  { status: 'refused', reason: 'store_failed' },
  { status: 'refused', reason: 'audit_failed' },
  { status: 'refused', reason: 'policy_error' },
]

function withAlarms(calls: readonly CallCount[]): readonly CallCount[] {
  const missing = ALARMS.filter(
    (alarm) => !calls.some(({ status, reason }) => status === alarm.status && reason === alarm.reason),
  )
  return [...calls, ...missing.map((alarm) => ({ ...alarm, count: 0 }))]
}

function histogramSamples(labels: SampleLabels, { buckets, sum, count }: Durations): readonly Sample[] {
  const bucket = (le: string, value: number): Sample => ({ suffix: '_bucket', labels: { ...labels, le }, value })
  return [
    ...buckets.map(([bound, value]) => bucket(String(bound), value)),
    bucket('+Inf', count),
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count },
  ]
}
