import type { Approval } from '@toolgate/core'
import type { ApprovalDecision, Grant, GrantRequest } from '@toolgate/core/stores'

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
  /** Whether this person may decide it now. */
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
  /** The grant that this verdict made. */
  readonly grant?: Grant
  /** Whether this person may also grant equal calls, and within which bounds. Absent if they may not. */
  readonly mayGrant?: MayGrant
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

/** The bounds of a grant that a person may make with an approval. */
export interface MayGrant {
  /** The longest life of the grant, in milliseconds. */
  readonly maxMs: number
  /** The most calls besides the approved one. */
  readonly maxUses: number
  /** What it may cover. Of a masked or very long input, only `tool`. */
  readonly covers: readonly GrantRequest['covers'][]
  /** The fields of the input that may be left free, by name or RFC 6901 pointer. At most 100. */
  readonly fields: readonly GrantableField[]
  /** The grant is for this run, unless the person chooses any run of the user. Absent if the call has no run. */
  readonly run?: string
}

/** A field of an input, and what a grant may let it be. */
export interface GrantableField {
  /** The name of the field, or a pointer such as `/order/amount`, as `fields` of a grant takes it. */
  readonly name: string
  /** The approved value, if it is a text, a number or a boolean. */
  readonly value?: unknown
  /** The type that the schema states, if it is one. Fields that are absent from the input have only this. */
  readonly type?: string
  /** Whether an upper bound can be given: it is a number. The bound is at least `value`. */
  readonly mayBound?: true
}

/** A grant for one person. `DELETE /api/grants/<id>?reason=` ends it at once, and returns its row. */
export interface GrantRow extends Grant {
  /** Whether this person may revoke it now. */
  readonly mayRevoke: boolean
}

/** `GET /api/grants?status=&user=&tool=&tenant=&before=&limit=`, newest first */
export interface GrantsBody {
  readonly grants: readonly GrantRow[]
  /** The bounds that the file sets. Absent while grants are switched off: no grant covers anything then. */
  readonly bounds?: { readonly maxMs: number; readonly maxUses: number; readonly by?: 'other' }
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
  /** Only with `approve`: also grants further calls like this one. */
  readonly grant?: GrantRequest
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
