import type { Approval } from '@toolgate/core'
import { approvalStatusAt, type DatedApproval, isEndSeen } from '@toolgate/core/call'
import { readOwnJson, toJsonText } from '@toolgate/values/json'
import {
  type ApprovalAbout,
  type ApprovalBinding,
  type ApprovalFilter,
  approvalKeys,
  type ApprovalStatus,
  checkPendingApprovals,
  isLiveAt,
  tooManyApprovals,
} from '@toolgate/core/stores'
import { APPROVAL_STATUSES } from '@toolgate/core/words'
import { numberIn, type Row, textIn } from '../rows.ts'

export interface StoredApprovalsOptions {
  /** The lifetime of an approval from its request, in milliseconds. Default 10 minutes. */
  readonly ttlMs?: number | undefined
  /** How long an ended approval stays visible, in milliseconds. Default 30 days. */
  readonly historyMs?: number | undefined
  /** The maximum number of stored approvals, including live ones. Default 10,000. */
  readonly maxKept?: number | undefined
}

/** The maximum number of characters of JSON in all stored approvals, so that the disk does not fill up. */
const MAX_KEPT_CHARACTERS = 256_000_000
export const DEFAULT_LIMIT = 100

/** Returns the options with their defaults. */
export function withDefaults({
  ttlMs = 600_000,
  historyMs = 30 * 86_400_000,
  maxKept = 10_000,
}: StoredApprovalsOptions) {
  return { ttlMs, historyMs, maxKept }
}

/** The columns that decide whether an approval matches, ends or makes room, without its input. */
export const DATED = 'seq, id, status, requested_at, expires_at, characters'

/** The bound and displayed parts of a request, as stored in one column. */
type BoundRequest = ApprovalBinding &
  Pick<ApprovalAbout, 'why' | 'told' | 'trail' | 'asker' | 'clauses'> & { readonly input: unknown }

/** Returns a new approval as its columns. `keys` are for its binding and its asker. */
export function toNewRow(binding: ApprovalBinding, input: unknown, about: ApprovalAbout) {
  const { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, aliases, approver, asked } = binding
  const { why, told, trail, asker, clauses } = about
  const bound = { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, aliases, approver, asked }
  return {
    keys: approvalKeys(binding),
    id: crypto.randomUUID(),
    texts: [textOf(tenant), textOf(user), JSON.stringify(tool), textOf(about.chat)],
    characters: (toJsonText(input)?.length ?? 0) + (trail ? JSON.stringify(trail).length : 0),
    request: toJsonText({ ...bound, input, why, told, trail, asker, clauses } satisfies BoundRequest),
  }
}

/** Checks that an asker may have one more pending approval. @throws {ToolgateError} `approval_too_many` */
export function checkPending(pending: Iterable<Row>, characters: number, nowMs: number): void {
  const sum = { count: 0, characters: 0 }
  for (const row of pending) {
    if (row['status'] !== 'pending' || !isLiveAt(toDated(row), nowMs)) continue
    sum.count++
    sum.characters += numberIn(row, 'characters')
  }
  checkPendingApprovals(sum, characters)
}

/**
 * Returns a function that checks whether a store is too full for a request. It uses a row with the counts of approvals.
 */
export function fullness(counted: Row, more: number, maxKept: number) {
  const size = { count: numberIn(counted, 'count'), characters: numberIn(counted, 'characters') }
  const isFull = (): boolean => size.count >= maxKept || size.characters + more > MAX_KEPT_CHARACTERS
  return {
    isFull,
    /**
     * Returns the numbers of the oldest rows that must be deleted to make room. Live ones stay.
     * @throws {ToolgateError} `approval_too_many`
     */
    findRemovable(oldest: Iterable<Row>, nowMs: number): readonly unknown[] {
      const removed: unknown[] = []
      for (const row of oldest) {
        if (!isFull()) break
        if (isLiveAt(toDated(row), nowMs)) continue
        removed.push(row['seq'])
        size.count--
        size.characters -= numberIn(row, 'characters')
      }
      if (isFull()) throw tooManyApprovals()
      return removed
    },
  }
}

/**
 * Returns the stored statuses of rows that may match. An expired approval keeps its earlier status until it is read.
 */
export function storedStatuses(status: ApprovalFilter['status']): readonly string[] | undefined {
  return status === undefined ? undefined : status === 'expired' ? ['pending', 'approved', status] : [status]
}

/** Checks whether a row has a status at a time, which SQL cannot compute. */
export function hasStatus(row: Row, status: ApprovalFilter['status'], nowMs: number): boolean {
  return status === undefined || approvalStatusAt(toDated(row), nowMs) === status
}

/** Checks whether an approval has ended but its row does not say so yet. */
export function isEnded(row: Row, nowMs: number): boolean {
  return isEndSeen(toDated(row), nowMs)
}

/** Returns the fields that determine an approval's status. */
function toDated(row: Row): DatedApproval {
  return {
    status: statusIn(row),
    requestedAt: numberIn(row, 'requested_at'),
    expiresAt: numberIn(row, 'expires_at'),
  }
}

function statusIn(row: Row): ApprovalStatus {
  const text = textIn(row, 'status')
  const status = APPROVAL_STATUSES.find((known) => known === text)
  if (status === undefined) throw new Error(`an approval has the unknown status ${text}`)
  return status
}

export function toApproval(row: Row): Approval {
  const request = parseRequest(textIn(row, 'request'))
  const { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, aliases, approver, asked } = request
  const { input, why, told, trail, asker, clauses } = request
  return Object.freeze({
    id: textIn(row, 'id'),
    tenant,
    user,
    tool,
    definitionHash,
    inputHash,
    run,
    ...(keyMadeBy === undefined ? {} : { keyMadeBy }),
    ...(behind === undefined ? {} : { behind }),
    ...(aliases === undefined ? {} : { aliases }),
    ...(approver === undefined ? {} : { approver }),
    ...(asked === undefined ? {} : { asked }),
    ...(why === undefined ? {} : { why }),
    ...(told === undefined ? {} : { told }),
    ...(trail === undefined ? {} : { trail }),
    ...(asker === undefined ? {} : { asker }),
    ...(clauses === undefined ? {} : { clauses }),
    ...(row['chat'] === null ? {} : { chat: String(readOwnJson(textIn(row, 'chat'))) }),
    input,
    ...toDated(row),
    ...(row['decided_at'] === null ? {} : { decidedAt: numberIn(row, 'decided_at') }),
    ...(row['decided_by'] === null ? {} : { decidedBy: textIn(row, 'decided_by') }),
    ...(row['reason'] === null ? {} : { reason: textIn(row, 'reason') }),
    ...(typeof row['votes'] === 'string' ? (readOwnJson(row['votes'], 'exact') as StoredVotes) : {}),
  })
}

/** The parts of an approval that each approver adds to, as stored in one column. */
type StoredVotes = Pick<Approval, 'approvedBy' | 'edit'>

/** Returns the column `votes` of an approval. Nothing else writes it. */
export function votesOf({ approvedBy, edit }: StoredVotes): string | null {
  return approvedBy === undefined && edit === undefined ? null : (toJsonText({ approvedBy, edit }) ?? null)
}

/** Parses a text that `toNewRow` wrote. Nothing else writes this column. */
function parseRequest(text: string): BoundRequest {
  return readOwnJson(text, 'exact') as BoundRequest
}

/** Returns a value as JSON, which distinguishes an absent value from every text and can contain lone surrogates. */
export function textOf(value: string | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
