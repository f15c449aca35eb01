import type { Approval, Caller } from '@toolgate/core'
import { toName } from './callers.ts'
import type { ApiDeps } from './deps.ts'
import { maySee } from './tenant.ts'
import type { ApprovalRow } from './wire.ts'

const MAX_DECIDERS = 20

/** Returns an approval as this person has it: whether they may decide it, and whose console keys can. */
export function toApprovalRow(
  approval: Approval,
  person: Caller,
  { approvals, callers }: Pick<ApiDeps, 'approvals' | 'callers'>,
): ApprovalRow {
  const { status } = approval
  if (status !== 'pending' && status !== 'approved') return { ...approval, mayDecide: false, deciders: [] }
  const able = callers.filter(
    (one) => one.for === 'console' && maySee(person, one.caller) && approvals.mayDecide(one.caller, approval),
  )
  const names = new Set(able.map(({ caller }) => toName(caller)))
  return {
    ...approval,
    mayDecide: approvals.mayDecide(person, approval),
    deciders: [...names].toSorted().slice(0, MAX_DECIDERS),
  }
}
