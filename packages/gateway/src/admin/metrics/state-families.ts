import type { RefusedTokens } from '../../auth/oauth/refusals.ts'
import { readOwnJson } from '@toolgate/values/json'
import type { Budget } from '@toolgate/core/call'
import { PIN_STATUSES, type PinnedTool } from '@toolgate/core/pins'
import type { AuditEvidenceBody, IssuerRow, ServerRow } from '../../model/rows.ts'
import { VERSION } from '../../files.ts'
import { INSTANCE_STATES } from '../../servers/instances/instances.ts'
import { UPSTREAM_STATUSES } from '../../model/upstream.ts'
import { counter, type Family, gauge } from './exposition.ts'

/** The checkpoints that sign the audit. */
export type Evidence = Pick<AuditEvidenceBody, 'checkpoints' | 'problems'>

/** A configured group. */
export interface GroupFigures {
  readonly name: string
  readonly available: boolean
  readonly changes: number
}

/** The names come from the configuration, so the number of series is bounded. */
export function serverFamilies(rows: readonly ServerRow[]): readonly Family[] {
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
export function groupFamilies(groups: readonly GroupFigures[]): readonly Family[] {
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

export function streamFamilies({ lists, pages } = { lists: 0, pages: 0 }): readonly Family[] {
  return [
    gauge('toolgate_list_streams', 'Clients that listen for changes of their tool list.', lists),
    gauge('toolgate_live_pages', 'Clients of /api/live.', pages),
  ]
}

/** The rules come from the configuration; their holders do not, and are no labels. */
export function budgetFamilies(
  budgets: readonly Pick<Budget, 'rule' | 'limit' | 'max' | 'used' | 'remaining'>[],
): readonly Family[] {
  const byRule = Map.groupBy(budgets, ({ rule, limit }) => JSON.stringify({ rule, limit }))
  const samples = (value: (of: typeof budgets) => number) =>
    [...byRule].map(([labels, of]) => ({ labels: readOwnJson(labels) as Record<string, string>, value: value(of) }))
  return [
    {
      name: 'toolgate_budget_used_ratio',
      type: 'gauge',
      help: 'The used part of the budget of a limit with a cost, from 0 to 1: of the holder with the least left.',
      samples: samples((of) => Math.max(...of.map(({ used, max }) => used / max))),
    },
    {
      name: 'toolgate_budgets_spent',
      type: 'gauge',
      help: 'Holders with nothing left of their budget, by limit.',
      samples: samples((of) => of.filter(({ remaining }) => remaining === 0).length),
    },
  ]
}

export function pinsFamily(pins: readonly Pick<PinnedTool, 'status'>[]): Family {
  return {
    name: 'toolgate_pins',
    type: 'gauge',
    help: 'Tools by the state of their pinned definition.',
    samples: PIN_STATUSES.map((status) => ({
      labels: { status },
      value: pins.filter((pin) => pin.status === status).length,
    })),
  }
}

export function refusedTokensFamily(refused: readonly RefusedTokens[]): Family {
  return {
    name: 'toolgate_refused_tokens_total',
    type: 'counter',
    help: 'Refused tokens of OAuth, by issuer and reason.',
    samples: refused.map(({ issuer, reason, count }) => ({ labels: { issuer, reason }, value: count })),
  }
}

export function issuersFamily(issuers: readonly IssuerRow[]): Family {
  return {
    name: 'toolgate_issuer_up',
    type: 'gauge',
    help: 'Whether the keys of an authorization server can be read: 1, also before the first token, or 0.',
    samples: issuers.map(({ name, status }) => ({ labels: { issuer: name }, value: status === 'down' ? 0 : 1 })),
  }
}

/** Shown also when they are 0, for alerts. */
const EVIDENCE_ALARMS = ['checkpoints_missing', 'checkpoints_failing', 'witness_failing']

export function evidenceFamilies({ checkpoints, problems }: Evidence): readonly Family[] {
  const codes = [...new Set([...EVIDENCE_ALARMS, ...problems.map(({ code }) => code)])]
  const found = (wanted: string) => problems.filter(({ code }) => code === wanted).length
  return [
    {
      name: 'toolgate_audit_problems',
      type: 'gauge',
      help: 'Problems of the checkpoints that sign the audit.',
      samples: codes.map((code) => ({ labels: { code }, value: found(code) })),
    },
    ...(checkpoints
      ? [gauge('toolgate_audit_signed_records', 'The last record that a checkpoint has signed.', checkpoints.signedSeq)]
      : []),
    ...(checkpoints?.signedAt
      ? [
          gauge(
            'toolgate_audit_signed_seconds',
            'When the last checkpoint was signed, in seconds since 1970.',
            Date.parse(checkpoints.signedAt) / 1000,
          ),
        ]
      : []),
  ]
}

export function certificateFamilies(expiresAtMs: number | undefined): readonly Family[] {
  if (expiresAtMs === undefined) return []
  const help = 'When the certificate of listen.tls ends, in seconds since 1970.'
  return [gauge('toolgate_certificate_expires_seconds', help, expiresAtMs / 1000)]
}

export function processFamilies(): readonly Family[] {
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
