import type { Caller, Gate } from '@toolgate/core'
import type { AuditReader } from '@toolgate/core/audit'
import type { Approvals } from '@toolgate/core/call'
import { clauseText } from '@toolgate/core/policy'
import { runWithDeadline } from '@toolgate/values'
import type { PinnedTool } from '@toolgate/core/pins'
import type { IssuerRow, ListCostRow, ServerRow } from '../../model/rows.ts'
import type { RefusedTokens } from '../../auth/oauth/refusals.ts'
import type { CallCounts } from '../../telemetry/call-counts.ts'
import { callFamilies } from './call-families.ts'
import { counter, type Family, gauge, toExposition } from './exposition.ts'
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
  /** The token cost of the lists of those callers that a person may see. Default: not shown. */
  lists?(person: Caller): Promise<readonly Pick<ListCostRow, 'user' | 'tokens'>[]>
  /** Absent where this gateway is alone. */
  readonly replica?: Parameters<typeof replicaFamilies>[0]
  readonly onFault: (error: unknown) => void
}

/** Of holders: each is asked for at the store. */
const MAX_BUDGETS = 200

type Families = Family | readonly Family[]

/** Of one figure. */
const ANSWER_MS = 3000
/** More are not counted. */
const MAX_APPROVALS = 1000

/**
 * Returns a function that returns the gateway's current metrics as text: for a person, or for everybody, who sees no names of
 * callers.
 *
 * A figure whose store fails, or does not answer within 3 s, is left out: Prometheus waits for 10 s.
 */
export function createMetrics(deps: MetricsDeps): (person?: Caller) => Promise<string> {
  const { counts, servers, onFault } = deps
  const optional = async (read: () => Promise<Families> | Families): Promise<readonly Family[]> => {
    try {
      return [await runWithDeadline(async () => read(), ANSWER_MS)].flat()
    } catch (error) {
      onFault(error)
      return []
    }
  }
  return async (person) => {
    // At once: a store that is silent must not keep the other figures from whoever is to be woken by them.
    const read = await Promise.all([
      optional(async () => budgetFamilies((await deps.gate.budgets?.(MAX_BUDGETS)) ?? [])),
      optional(() => pendingFamilies(deps.approvals)),
      optional(async () => (person && deps.lists ? listFamily(await deps.lists(person)) : [])),
      optional(() => clauseFamily(deps.gate.coverage())),
      optional(() => warningsFamily(deps.warnings().map(({ code }) => code))),
      optional(() => writtenFamily(deps.audit)),
    ])
    return toExposition([
      ...callFamilies(counts),
      ...serverFamilies(servers()),
      ...groupFamilies(deps.groups?.() ?? []),
      ...streamFamilies(deps.streams?.()),
      gauge('toolgate_catalog_tools', 'Tools in the catalog.', deps.gate.catalog.snapshot().size),
      gauge('toolgate_halts', 'Halts in force.', deps.gate.halts.length),
      pinsFamily(deps.pins?.list() ?? []),
      issuersFamily(deps.issuers?.() ?? []),
      ...read.flat(),
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
}

async function pendingFamilies(approvals: MetricsDeps['approvals']): Promise<readonly Family[]> {
  const pending = await approvals.list({ status: 'pending', limit: MAX_APPROVALS })
  const oldest = pending.at(-1)
  const help = 'When the oldest pending approval was asked for, in seconds since 1970.'
  return [
    gauge('toolgate_pending_approvals', `Pending approvals, at most ${MAX_APPROVALS}.`, pending.length),
    ...(oldest ? [gauge('toolgate_oldest_pending_approval_seconds', help, oldest.requestedAt / 1000)] : []),
  ]
}

/** The callers come from the configuration. */
function listFamily(rows: readonly Pick<ListCostRow, 'user' | 'tokens'>[]): Families {
  if (rows.length === 0) return []
  return {
    name: 'toolgate_list_tokens',
    type: 'gauge',
    help: "What a caller's list of tools costs its model: an estimate of 4 bytes a token.",
    samples: rows.map(({ user, tokens }) => ({ labels: { user }, value: tokens })),
  }
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
      labels: { clause: clauseText(ref), path, kind: ref.kind, shadow: shadow ? 'true' : 'false' },
      value: hits,
    })),
  }
}

async function writtenFamily(audit: MetricsDeps['audit']): Promise<Family> {
  const [newest] = await audit.query({ limit: 1 })
  return counter('toolgate_audit_records_total', 'Records in the audit since its start.', newest?.seq ?? 0)
}
