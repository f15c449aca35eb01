import { NOBODY, peopleOf } from '@toolgate/core/call'
import { coversApprover, describeApprover, strictestApprover } from '@toolgate/core/policy'
import type { ApproverRule } from '@toolgate/core/stores'
import type { AuditRecord } from '@toolgate/core/audit'
import type { Verdict } from './side.ts'

const MAX_APPROVALS = 100_000

/** The approvers of recorded calls. */
export class RecordedApprovals {
  readonly #approvedBy = new Map<string, string | undefined>()

  /** Notes the decision of an approval. */
  read({ event, approval_id: id, user_id: by }: AuditRecord): void {
    if (event !== 'approval_decided' || id === undefined) return
    for (const oldest of this.#approvedBy.keys()) {
      if (this.#approvedBy.size < MAX_APPROVALS) break
      this.#approvedBy.delete(oldest)
    }
    this.#approvedBy.set(id, by)
  }

  /**
   * Returns what the new rules demand of the approver of a call that ran, if the approval may not satisfy them; otherwise
   * `undefined`. `before` is absent if the demand at that time is unknown.
   */
  judge(
    { event, approval_id: id, user_id: user, key_made_by: maker }: AuditRecord,
    before: Verdict | undefined,
    after: Verdict,
  ): { readonly answer: 'refused' | 'unknown'; readonly demand: string } | undefined {
    if (event !== 'tool_call' || id === undefined) return undefined
    const wanted = demandOf(after)
    const given = before && demandOf(before)
    if (!wanted || coversApprover(given, wanted)) return undefined
    if (before && peopleOf(wanted) > peopleOf(given)) return { answer: 'refused', demand: describeApprover(wanted) }
    const by = this.#approvedBy.get(id)
    const demand = describeApprover(wanted)
    if (wanted.by === 'other' && by !== undefined && [user, maker, NOBODY].includes(by))
      return { answer: 'refused', demand }
    const isOther = wanted.by === undefined || by !== undefined
    // The time of the login is not recorded. Only the demand at that time is known.
    const isFresh = (given?.loginMs ?? Infinity) <= (wanted.loginMs ?? Infinity)
    // The roles of the approvers are not recorded either.
    const { count, roles } = wanted
    const isByThose = coversApprover(given, { ...(count && { count }), ...(roles && { roles }), edit: true })
    return isOther && isFresh && isByThose ? undefined : { answer: 'unknown', demand }
  }
}

function demandOf({ reasons }: Verdict): ApproverRule | undefined {
  return strictestApprover(reasons.filter(({ outcome }) => outcome === 'ask').map(({ approver }) => approver))
}
