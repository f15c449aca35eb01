import type { AuditCounts } from '@toolgate/core/audit'
import type { ServerRow } from './servers.ts'

/** The period of an overview, up to now. */
export type OverviewPeriod = '1h' | '24h' | '7d'

/** How long calls took, in milliseconds. The error is at most 3 %. */
export interface LatencyRow {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** How the attempts to call something ended. An MCP result with `isError` is `failed`. */
export interface AttemptsRow {
  /** The number of all attempts. */
  readonly attempts: number
  readonly outcomes: AuditCounts['buckets'][number]
  /** The latency of the calls that ran to their end. Absent if none did. */
  readonly latency?: LatencyRow
}

/**
 * `GET /api/overview?period=`: what happened in a period, for all calls that this person may see. It covers all
 * replicas that share the audit.
 */
export interface OverviewBody extends AttemptsRow {
  readonly period: OverviewPeriod
  /** Wall-clock milliseconds. */
  readonly since: number
  readonly until: number
  /** If `false`, the audit is still being counted, and the figures will grow. Ask again. */
  readonly isComplete: boolean
  /** The time up to which calls are counted, while they still are. Wall-clock milliseconds. */
  readonly countedTo?: number
  readonly bucketMs: number
  /** Oldest first, from `since` on. */
  readonly buckets: AuditCounts['buckets']
  /** The most called first, at most 200. */
  readonly tools: readonly OverviewToolRow[]
  /** The number of other tools that were called. */
  readonly moreTools: number
  readonly servers: readonly OverviewServerRow[]
  /** The most frequent refusals, at most 20. */
  readonly denied: readonly DeniedRow[]
  readonly waiting: {
    readonly count: number
    /** Wall-clock milliseconds. Absent if nothing waits. */
    readonly oldestAt?: number
  }
  /** The token cost of agents' tool lists, the most expensive first, at most 100. */
  readonly lists: readonly ListCostRow[]
  /** The number of other configured agents. */
  readonly moreLists: number
}

export interface OverviewToolRow extends AttemptsRow {
  /** Absent in the row that sums unknown names and the tools without counts of their own. */
  readonly tool?: string
}

export interface OverviewServerRow extends AttemptsRow {
  readonly name: string
  /** Absent for tools that belong to no server, such as the gateway's own. */
  readonly status?: ServerRow['status']
  readonly reason?: string
  readonly since?: number
  readonly restarts?: number
  /** The last lines of its stderr. For operators and approvers without a tenant. */
  readonly stderr?: readonly string[]
}

/** Calls that were refused for one reason. */
export interface DeniedRow {
  readonly tool?: string
  readonly user?: string
  readonly tenant?: string
  readonly reason?: string
  readonly count: number
}

/** The token cost of an agent's tool list, estimated at 4 bytes a token. */
export interface ListCostRow {
  readonly user: string
  readonly tenant?: string
  readonly tools: number
  readonly tokens: number
}
