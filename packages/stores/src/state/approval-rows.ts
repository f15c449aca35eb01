import type { Approval } from '@toolgate/core'
import { type DatedApproval, readOwnJson } from '@toolgate/core/internal'
import type { ApprovalAbout, ApprovalBinding, ApprovalStatus } from '@toolgate/core/stores'
import { APPROVAL_STATUSES } from '@toolgate/core/words'
import { numberIn, type Row, textIn } from '../rows.ts'

export interface StoredApprovalsOptions {
  /** How long an approval lives from its request. Default 10 minutes. */
  readonly ttlMs?: number | undefined
  /** How long one that is over is kept for people to see. Default 30 days. */
  readonly historyMs?: number | undefined
  /** How many are kept at most, live ones among them. Default 10,000. */
  readonly maxKept?: number | undefined
}

/** Over all that are kept, of JSON: what a disk can bear. */
export const MAX_KEPT_CHARACTERS = 256_000_000
export const DEFAULT_LIMIT = 100
export const HISTORY_MS = 30 * 24 * 60 * 60 * 1000

/** What is bound and shown, as a column keeps it. */
type Request = ApprovalBinding & Pick<ApprovalAbout, 'why' | 'trail' | 'asker'> & { readonly input: unknown }

export function toRequest(binding: ApprovalBinding, input: unknown, { why, trail, asker }: ApprovalAbout): Request {
  const { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, approver, asked } = binding
  const about = { input, why, trail, asker }
  return { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, approver, asked, ...about }
}

/** Returns the fields that decide an approval's status. */
export function toDated(row: Row): DatedApproval {
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
  const { tenant, user, tool, definitionHash, inputHash, run, keyMadeBy, behind, approver, asked } = request
  const { input, why, trail, asker } = request
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
    ...(approver === undefined ? {} : { approver }),
    ...(asked === undefined ? {} : { asked }),
    ...(why === undefined ? {} : { why }),
    ...(trail === undefined ? {} : { trail }),
    ...(asker === undefined ? {} : { asker }),
    ...(row['chat'] === null ? {} : { chat: String(readOwnJson(textIn(row, 'chat'))) }),
    input,
    ...toDated(row),
    ...(row['decided_at'] === null ? {} : { decidedAt: numberIn(row, 'decided_at') }),
    ...(row['decided_by'] === null ? {} : { decidedBy: textIn(row, 'decided_by') }),
    ...(row['reason'] === null ? {} : { reason: textIn(row, 'reason') }),
  })
}

/** Parses a text that `toRequest` made: no one else writes this column. */
function parseRequest(text: string): Request {
  return readOwnJson(text, 'exact') as Request
}

/** Returns a value as JSON, which keeps an absent one apart from every text and can write lone surrogates. */
export function textOf(value: string | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
