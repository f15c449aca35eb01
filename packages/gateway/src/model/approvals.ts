import type { Approval } from '@toolgate/core'
import type { ApprovalDecision } from '@toolgate/core/stores'

/** `GET /api/approvals?status=&user=&tool=&before=&limit=`, newest first */
export interface ApprovalsBody {
  readonly approvals: readonly ApprovalRow[]
}

/** `GET /api/approvals/waiting`: at most 1,000, newest first */
export interface WaitingApprovalsBody {
  readonly approvals: readonly WaitingApprovalRow[]
}

/** A call that waits, without its input. */
export interface WaitingApprovalRow {
  readonly id: string
  readonly tool: string
  readonly user?: string
  readonly tenant?: string
  /** Whether it waits for this person: they may decide it, and have not approved it yet. */
  readonly mayDecide: boolean
}

/** An approval for one person. `/api/live` sends the same text to everybody, so it leaves out these two fields. */
export interface ApprovalRow extends Approval {
  /** Whether this person may decide it now: approve or reject a pending one, revoke an approved one. */
  readonly mayDecide: boolean
  /** The users whose console keys may approve it, as far as this person may see them. Empty if it is already decided. */
  readonly deciders: readonly string[]
  /** Whether this person can compare the proposed text with the present one. */
  readonly mayCompare?: true
  /** Present if the approval needs several people, or people with given roles. */
  readonly needs?: ApprovalNeeds
  /** Whether this person may approve it with a changed `input`. */
  readonly mayEdit?: true
}

/** The people that an approval needs, and those who have approved so far. */
export interface ApprovalNeeds {
  /** The number of different people that must approve. */
  readonly count: number
  /** How many of them must have each role. Absent: any approver counts. */
  readonly roles?: Readonly<Record<string, number>>
  readonly approvedBy: readonly ApprovalYes[]
  /** Whether this person has approved, and may take that back with `revoke`. */
  readonly mayTakeBack?: true
}

/** One person's yes, oldest first. */
export interface ApprovalYes {
  readonly by: string
  /** Wall-clock milliseconds. */
  readonly atMs: number
  readonly reason?: string
}

/** `POST /api/approvals/<id>/compare`: the present and the proposed text. The present one may still change. */
export interface ApprovalComparisonBody {
  readonly approval: string
  /** When the present text was read, in wall-clock milliseconds. */
  readonly atMs: number
  /** The tool that read the present text. */
  readonly reader?: string
  /** The field of the call with the proposed text, such as `input.content`. */
  readonly field?: string
  readonly present?: string
  readonly proposed?: string
  /** Secrets in the present text are masked. */
  readonly masked?: true
  /** Why nothing is shown. */
  readonly notShown?: string
}

/**
 * The body of `POST /api/approvals/<id>`, which returns the row of the approval. `revoke` is for an approved one that
 * was not used yet, and for one's own yes to one that waits for others.
 */
export interface ApprovalVerdictBody {
  readonly decision: ApprovalDecision
  /**
   * With `approve`, if `mayEdit`: the changed fields of the input, as a JSON merge patch (RFC 7396). Who approves an
   * approval that has an `edit` sends the same `input` as `edit.input`.
   */
  readonly input?: Readonly<Record<string, unknown>>
  /**
   * At most 500 characters. The model sees it when its call is refused.
   *
   * @maxLength 500
   */
  readonly reason?: string
}
