import type { Approval } from '@toolgate/core'
import type { AuditCounts, AuditOutcome, AuditRecord } from '@toolgate/core/audit'
import type { GroupRow } from './servers.ts'

/**
 * A message of `/api/live`, as JSON text. The first is `groups` with all groups. Later ones have the changed groups only,
 * to be merged by name. After the first message a client misses nothing.
 */
export type LiveMessage =
  | { readonly type: 'groups'; readonly groups: readonly GroupRow[] }
  | { readonly type: 'audit'; readonly record: AuditRecord }
  | { readonly type: 'approval'; readonly approval: Approval }

/**
 * `GET /api/audit?limit=&tool=&user=&session=&event=&outcome=&call=&since=&until=&before=&after=`, newest first.
 * `GET /api/audit/export` takes the same without `limit`, and returns all matches, oldest first, as JSON lines.
 */
export interface AuditBody {
  readonly records: readonly AuditRecord[]
}

/**
 * `GET /api/audit/counts?since=&until=&bucket=&tool=&user=&session=&event=&outcome=&call=`: how many attempts ended in each
 * way, in buckets of `bucket` milliseconds from `since` on. At most 500 buckets.
 */
export type AuditCountsBody = AuditCounts

/**
 * `GET /api/audit/evidence`: the current checkpoints of the audit. `toolgate audit verify` checks the records. A person of
 * a tenant sees the codes of problems, and no paths.
 */
export interface AuditEvidenceBody {
  readonly store: 'postgres' | 'sqlite' | 'jsonl' | 'memory'
  /** Absent without checkpoints. */
  readonly checkpoints?: {
    readonly path?: string
    /** The last record that a checkpoint has signed; 0 for none. */
    readonly signedSeq: number
    readonly signedAt?: string
  }
  readonly problems: readonly { readonly code: string; readonly message: string }[]
}

/** How a call ended, or `running`. */
export type CallOutcome = AuditOutcome | 'running'

/** A call with its records. One attempt: a call that waited for a person is made again, and is another one. */
export interface CallRow {
  /** The `tool_call_id` of its records. */
  readonly id: string
  /** Of its latest record. */
  readonly seq: number
  readonly outcome: CallOutcome
  /** RFC 3339. */
  readonly startedAt: string
  /** RFC 3339. Absent while it runs. */
  readonly endedAt?: string
  /** The oldest first. */
  readonly records: readonly AuditRecord[]
}

/**
 * `GET /api/calls`: newest first. `GET /api/calls/export` takes the same without `limit` and `before`, and returns all matches
 * as JSON lines or CSV.
 */
export interface CallsBody {
  readonly calls: readonly CallRow[]
  /** The `before` of the next page. Absent at the end of the audit. A long search may return it without calls. */
  readonly next?: number
  /** RFC 3339: how far back was searched. */
  readonly searchedTo?: string
}

/** `POST /api/audit/rotate`: the name of the closed file; `null` if there was nothing to close, as in SQLite. */
export interface AuditRotationBody {
  readonly closed: string | null
}

/** `POST /api/audit/rotate`: an empty object, which no page of another origin can send. */
export interface AuditRotationRequestBody {}
