import type { Gate } from '@toolgate/core'
import type { AuditReader } from '@toolgate/core/audit'
import type { Approvals } from '@toolgate/core/internal'
import type { ServerRow } from '../api/wire.ts'
import type { CallCounts, CallStatus, Durations } from './call-counts.ts'
import { INSTANCE_STATES } from '../upstream/instances.ts'
import { UPSTREAM_STATUSES } from '../upstream/upstream.ts'
import { VERSION } from '../files.ts'

export interface MetricsDeps {
  readonly counts: CallCounts
  readonly gate: Pick<Gate, 'catalog'>
  /** The current warnings about the configuration. */
  warnings(): readonly { readonly code: string }[]
  readonly approvals: Pick<Approvals, 'list'>
  /** `droppedCount` counts lost records, if the store counts them. */
  readonly audit: AuditReader & { readonly droppedCount?: number }
  servers(): readonly ServerRow[]
  /** Each configured group, and how often its availability changed. */
  groups?(): readonly GroupFigures[]
  /** Clients with an open list stream, and open console pages. */
  readonly streams?: () => { readonly lists: number; readonly pages: number }
  /** Failed logins with wrong keys. */
  readonly failedLogins?: () => number
  /** When the certificate ends, in wall-clock milliseconds. `undefined` over HTTP. */
  readonly certificateExpiresAtMs?: () => number | undefined
  readonly onFault: (error: unknown) => void
}

interface GroupFigures {
  readonly name: string
  readonly available: boolean
  readonly changes: number
}

/** More are not counted. */
const MAX_APPROVALS = 1000

/**
 * Returns a function that returns the gateway's current metrics as text.
 *
 * A figure whose store fails is left out.
 */
export function createMetrics(deps: MetricsDeps): () => Promise<string> {
  const { counts, servers, onFault } = deps
  const optional = async (read: () => Promise<Family> | Family): Promise<readonly Family[]> => {
    try {
      return [await read()]
    } catch (error) {
      onFault(error)
      return []
    }
  }
  return async () =>
    toExposition([
      ...callFamilies(counts),
      ...serverFamilies(servers()),
      ...groupFamilies(deps.groups?.() ?? []),
      ...streamFamilies(deps.streams?.()),
      gauge('toolgate_catalog_tools', 'Tools in the catalog.', deps.gate.catalog.snapshot().size),
      ...(await optional(() => pendingFamily(deps.approvals))),
      ...(await optional(() => warningsFamily(deps.warnings().map(({ code }) => code)))),
      ...(await optional(() => writtenFamily(deps.audit))),
      counter(
        'toolgate_audit_dropped_records_total',
        'Lost audit records. Their calls were refused, unless they had already run.',
        deps.audit.droppedCount ?? 0,
      ),
      counter(
        'toolgate_failed_logins_total',
        'Failed logins with wrong keys, at any endpoint.',
        deps.failedLogins?.() ?? 0,
      ),
      ...certificateFamilies(deps.certificateExpiresAtMs?.()),
      ...processFamilies(),
    ])
}

function callFamilies({ calls, tools, durations, running }: CallCounts): readonly Family[] {
  const count = (wanted: (call: (typeof calls)[number]) => boolean) =>
    calls.filter(wanted).reduce((sum, call) => sum + call.count, 0)
  return [
    {
      name: 'toolgate_calls_total',
      type: 'counter',
      help: 'Ended calls, by status (done, failed, refused, waiting, input_required) and reason.',
      samples: calls.map(({ status, reason, count: value }) => ({ labels: { status, reason }, value })),
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
      samples: [...durations].flatMap(([status, taken]) => histogramSamples(status, taken)),
    },
  ]
}

function histogramSamples(status: CallStatus, { buckets, sum, count }: Durations): readonly Sample[] {
  const bucket = (le: string, value: number): Sample => ({ suffix: '_bucket', labels: { status, le }, value })
  return [
    ...buckets.map(([bound, value]) => bucket(String(bound), value)),
    bucket('+Inf', count),
    { suffix: '_sum', labels: { status }, value: sum },
    { suffix: '_count', labels: { status }, value: count },
  ]
}

/** The names come from the configuration, so the number of series is bounded. */
function serverFamilies(rows: readonly ServerRow[]): readonly Family[] {
  return [
    {
      name: 'toolgate_server_up',
      type: 'gauge',
      help: 'Whether a server is ready: 1, or 0.',
      samples: rows.map(({ name: server, status }) => ({ labels: { server }, value: status === 'ready' ? 1 : 0 })),
    },
    {
      name: 'toolgate_servers',
      type: 'gauge',
      help: 'Servers by status.',
      samples: UPSTREAM_STATUSES.map((status) => ({
        labels: { status },
        value: rows.filter((row) => row.status === status).length,
      })),
    },
    {
      name: 'toolgate_server_restarts_total',
      type: 'counter',
      help: 'How often a server was started again.',
      samples: rows.map(({ name: server, restarts }) => ({ labels: { server }, value: restarts })),
    },
    {
      name: 'toolgate_upstream_instances',
      type: 'gauge',
      help: 'Instances of users, by server and state.',
      samples: rows.flatMap(({ name: server, instances }) =>
        INSTANCE_STATES.flatMap((state) => (instances ? [{ labels: { server, state }, value: instances[state] }] : [])),
      ),
    },
  ]
}

/** The names come from the configuration here, too. */
function groupFamilies(groups: readonly GroupFigures[]): readonly Family[] {
  return [
    {
      name: 'toolgate_group_available',
      type: 'gauge',
      help: 'Whether a group is available: 1, or 0.',
      samples: groups.map(({ name: group, available }) => ({ labels: { group }, value: available ? 1 : 0 })),
    },
    {
      name: 'toolgate_group_changes_total',
      type: 'counter',
      help: 'How often a group became available or unavailable, once a second at most.',
      samples: groups.map(({ name: group, changes }) => ({ labels: { group }, value: changes })),
    },
  ]
}

function streamFamilies({ lists, pages } = { lists: 0, pages: 0 }): readonly Family[] {
  return [
    gauge('toolgate_list_streams', 'Clients that listen for changes of their tool list.', lists),
    gauge('toolgate_live_pages', 'Clients of /api/live.', pages),
  ]
}

async function pendingFamily(approvals: MetricsDeps['approvals']): Promise<Family> {
  const { length } = await approvals.list({ status: 'pending', limit: MAX_APPROVALS })
  return gauge('toolgate_pending_approvals', `Pending approvals, at most ${MAX_APPROVALS}.`, length)
}

/** Shown also when they are 0, as these problems arise silently, for example when a server renames a tool. */
const ALWAYS_SHOWN = ['selector_unmatched', 'tool_unreachable', 'name_confusable']

function warningsFamily(found: readonly string[]): Family {
  const codes = [...new Set([...ALWAYS_SHOWN, ...found])]
  return {
    name: 'toolgate_policy_warnings',
    type: 'gauge',
    help: 'Likely mistakes in the configuration, such as a selector that matches nothing.',
    samples: codes.map((code) => ({ labels: { code }, value: found.filter((one) => one === code).length })),
  }
}

async function writtenFamily(audit: MetricsDeps['audit']): Promise<Family> {
  const [newest] = await audit.query({ limit: 1 })
  return counter('toolgate_audit_records_total', 'Records in the audit since its start.', newest?.seq ?? 0)
}

function certificateFamilies(expiresAtMs: number | undefined): readonly Family[] {
  if (expiresAtMs === undefined) return []
  const help = 'When the certificate of listen.tls ends, in seconds since 1970.'
  return [gauge('toolgate_certificate_expires_seconds', help, expiresAtMs / 1000)]
}

function processFamilies(): readonly Family[] {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  const startedSeconds = Math.round(Date.now() / 1000 - process.uptime())
  return [
    gauge('process_resident_memory_bytes', 'Resident memory.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Used memory of the JavaScript heap.', heapUsed),
    counter('process_cpu_seconds_total', 'CPU time, of the user and the system.', (user + system) / 1e6),
    gauge('process_start_time_seconds', 'When the process began, in seconds since 1970.', startedSeconds),
    {
      name: 'toolgate_build_info',
      type: 'gauge',
      help: 'The version that runs.',
      samples: [{ labels: { version: VERSION }, value: 1 }],
    },
  ]
}

function gauge(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', help, samples: [{ value }] }
}

function counter(name: string, help: string, value: number): Family {
  return { name, type: 'counter', help, samples: [{ value }] }
}

/** A metric with its series. */
interface Family {
  /** Ends in `_total` for a counter, and in its unit for anything that has one. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** For a histogram only. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/

/**
 * Returns metrics in the Prometheus text format 0.0.4, which with these names is also 1.0.0.
 *
 * @throws {RangeError} for an invalid name. Names are ours, but label values may come from anywhere
 */
export function toExposition(families: readonly Family[]): string {
  return families.map(toFamily).join('')
}

function toFamily({ name, type, help, samples }: Family): string {
  checkName(name)
  const lines = samples.map(
    ({ labels = {}, value, suffix = '' }) => `${name}${suffix}${toLabels(labels)} ${toNumber(value)}\n`,
  )
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function toLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    checkName(name)
    return `${name}="${escapeValue(value)}"`
  })
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

/** Replaces lone surrogates, which are not valid UTF-8. */
function escapeValue(value: string): string {
  return value.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function toNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  return String(value)
}

function checkName(name: string): void {
  if (!NAME.test(name)) throw new RangeError(`"${name}" is not the name of a metric or label`)
}
