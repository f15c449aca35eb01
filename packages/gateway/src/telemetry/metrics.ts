import type { Gate } from '@toolgate/core'
import type { AuditReader } from '@toolgate/core/audit'
import { type Approvals, clauseText } from '@toolgate/core/internal'
import type { PinnedTool } from '@toolgate/core/pins'
import type { IssuerRow, ServerRow } from '../api/wire.ts'
import type { RefusedTokens } from '../auth/oauth/refusals.ts'
import type { CallCount, CallCounts, CallStatus, Durations } from './call-counts.ts'
import { counter, type Family, gauge, type Sample, toExposition } from './exposition.ts'
import { auditFamilies, replicaFamilies, type SharedAuditFigures } from './replica-families.ts'
import {
  budgetFamilies,
  certificateFamilies,
  type Evidence,
  evidenceFamilies,
  type GroupFigures,
  groupFamilies,
  issuersFamily,
  pinsFamily,
  processFamilies,
  refusedTokensFamily,
  serverFamilies,
  streamFamilies,
} from './state-families.ts'

export interface MetricsDeps {
  readonly counts: CallCounts
  readonly gate: Pick<Gate, 'catalog' | 'halts' | 'coverage'> & Partial<Pick<Gate, 'budgets'>>
  /** Absent without pins. */
  readonly pins?: { list(): readonly Pick<PinnedTool, 'status'>[] } | undefined
  /** The current warnings about the configuration. */
  warnings(): readonly { readonly code: string }[]
  readonly approvals: Pick<Approvals, 'list'>
  /** `droppedCount` counts lost records, if the store counts them. */
  readonly audit: AuditReader & { readonly droppedCount?: number } & SharedAuditFigures
  /** Of an audit with checkpoints. */
  readonly evidence?: (() => Evidence) | undefined
  /** Authorization servers. Default: none. */
  issuers?(): readonly IssuerRow[]
  servers(): readonly ServerRow[]
  /** Each configured group, and how often its availability changed. */
  groups?(): readonly GroupFigures[]
  /** Clients with an open list stream, and open console pages. */
  readonly streams?: () => { readonly lists: number; readonly pages: number }
  /** Failed logins with wrong keys. */
  readonly failedLogins?: () => number
  /** Refused tokens of OAuth. Default: none. */
  readonly refusedTokens?: () => readonly RefusedTokens[]
  /** When the certificate ends, in wall-clock milliseconds. `undefined` over HTTP. */
  readonly certificateExpiresAtMs?: () => number | undefined
  /** Absent where this gateway is alone. */
  readonly replica?: Parameters<typeof replicaFamilies>[0]
  readonly onFault: (error: unknown) => void
}

/** Of holders: each is asked for at the store. */
const MAX_BUDGETS = 200

async function budgetsOf({ gate, onFault }: MetricsDeps): Promise<readonly Family[]> {
  try {
    return budgetFamilies((await gate.budgets?.(MAX_BUDGETS)) ?? [])
  } catch (error) {
    onFault(error)
    return []
  }
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
      gauge('toolgate_halts', 'Halts in force.', deps.gate.halts.length),
      pinsFamily(deps.pins?.list() ?? []),
      issuersFamily(deps.issuers?.() ?? []),
      ...(await budgetsOf(deps)),
      ...(await optional(() => pendingFamily(deps.approvals))),
      ...(await optional(() => clauseFamily(deps.gate.coverage()))),
      ...(await optional(() => warningsFamily(deps.warnings().map(({ code }) => code)))),
      ...(await optional(() => writtenFamily(deps.audit))),
      ...evidenceFamilies(deps.evidence?.() ?? { problems: [] }),
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
      refusedTokensFamily(deps.refusedTokens?.() ?? []),
      ...certificateFamilies(deps.certificateExpiresAtMs?.()),
      ...replicaFamilies(deps.replica),
      ...(deps.replica ? auditFamilies(deps.audit) : []),
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
      samples: [...durations].flatMap(([status, taken]) => histogramSamples(status, taken)),
    },
  ]
}

/** An alert compares with the sample before. So these are 0 before they happen for the first time. */
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

function histogramSamples(status: CallStatus, { buckets, sum, count }: Durations): readonly Sample[] {
  const bucket = (le: string, value: number): Sample => ({ suffix: '_bucket', labels: { status, le }, value })
  return [
    ...buckets.map(([bound, value]) => bucket(String(bound), value)),
    bucket('+Inf', count),
    { suffix: '_sum', labels: { status }, value: sum },
    { suffix: '_count', labels: { status }, value: count },
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

/** More would be too many series for most that read metrics. */
const MAX_CLAUSES = 500

function clauseFamily(clauses: ReturnType<Gate['coverage']>): Family {
  return {
    name: 'toolgate_clause_hits_total',
    type: 'counter',
    help: 'Calls for which a clause of the policy held, by clause.',
    samples: clauses.slice(0, MAX_CLAUSES).map(({ ref, path, shadow, hits }) => ({
      labels: { clause: clauseText(ref), path, shadow: shadow ? 'true' : 'false' },
      value: hits,
    })),
  }
}

async function writtenFamily(audit: MetricsDeps['audit']): Promise<Family> {
  const [newest] = await audit.query({ limit: 1 })
  return counter('toolgate_audit_records_total', 'Records in the audit since its start.', newest?.seq ?? 0)
}
