import type { AuditCounts } from '@toolgate/core/audit'
import type { ServerRow } from './servers.ts'

/** The period of an overview, up to now. */
export type OverviewPeriod = '1h' | '24h' | '7d'

/** How long calls took, in milliseconds; at most 3 % off. */
export interface LatencyRow {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** How the attempts to call something ended. An MCP result with `isError` is `failed`. */
export interface AttemptsRow {
  /** All of them. */
  readonly attempts: number
  readonly outcomes: AuditCounts['buckets'][number]
  /** Of those that ran to their end. Absent if none did. */
  readonly latency?: LatencyRow
}

/**
 * `GET /api/overview?period=`: what happened in a period, for all calls that this person may see. Not of one replica: of all
 * that share the audit.
 */
export interface OverviewBody extends AttemptsRow {
  readonly period: OverviewPeriod
  /** Wall-clock milliseconds. */
  readonly since: number
  readonly until: number
  /** `false`: the audit is still being counted, so that the figures grow. Ask again. */
  readonly isComplete: boolean
  readonly bucketMs: number
  /** Oldest first, from `since` on. */
  readonly buckets: AuditCounts['buckets']
  /** The most called first, at most 200. */
  readonly tools: readonly OverviewToolRow[]
  /** How many other tools were called. */
  readonly moreTools: number
  readonly servers: readonly OverviewServerRow[]
  /** What was refused most, at most 20. */
  readonly denied: readonly DeniedRow[]
  readonly waiting: {
    readonly count: number
    /** Wall-clock milliseconds. Absent if nothing waits. */
    readonly oldestAt?: number
  }
  /** What the lists of agents cost, the most expensive first, at most 100. */
  readonly lists: readonly ListCostRow[]
  /** How many other agents are configured. */
  readonly moreLists: number
}

export interface OverviewToolRow extends AttemptsRow {
  /** Absent: names that no tool has, and tools beyond those that are counted apart. */
  readonly tool?: string
}

export interface OverviewServerRow extends AttemptsRow {
  readonly name: string
  /** Absent for tools of no server, such as the gateway's own. */
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

/** What the list of tools of an agent costs its model: an estimate of 4 bytes a token. */
export interface ListCostRow {
  readonly user: string
  readonly tenant?: string
  readonly tools: number
  readonly tokens: number
}
