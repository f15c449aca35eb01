import type { Approval, Caller } from '@toolgate/core'
import { hasApproved, missingRoles, needsVotes, peopleOf, voterOf } from '@toolgate/core/call'
import type { ApprovalNeeds } from '../../model/rows.ts'

/**
 * Returns the people that an approval needs and has, for a person; `undefined` if any one approver is enough.
 *
 * `shown`: who has approved, as the person may see it.
 */
export function needsOf(
  approval: Approval,
  person: Caller,
  shown: ApprovalNeeds['approvedBy'] = [],
): ApprovalNeeds | undefined {
  const { approver, status } = approval
  if (!needsVotes(approver)) return undefined
  return {
    count: peopleOf(approver),
    ...(approver?.roles && { roles: approver.roles }),
    approvedBy: shown,
    ...(status === 'pending' && hasApproved(approval, voterOf(person)) && { mayTakeBack: true as const }),
  }
}

/** Returns the roles for which somebody must still approve. */
export function rolesMissing({ approver, approvedBy = [] }: Approval): readonly string[] {
  return [...new Set(missingRoles(approver, approvedBy))]
}

/** Whether a person may approve with a changed input. Who approves after another approves the same input. */
export function mayEdit({ approver, approvedBy, status }: Approval): boolean {
  return approver?.edit === true && status === 'pending' && approvedBy === undefined
}
