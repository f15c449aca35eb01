import type { MayApprove } from './deps.ts'

/**
 * Says who may decide an approval: the role `approver`, or the person who asked.
 *
 * An approver of a tenant decides for that tenant only; one without a tenant decides for all.
 * That the approver holds a console key, and not an agent's, was checked before.
 */
export const mayApprove: MayApprove = (approver, approval) => {
  const sameTenant = approver.tenant === approval.tenant
  const isApprover = approver.roles?.includes('approver') === true
  const isRequester = approver.user !== undefined && approver.user === approval.user
  return (isApprover && (sameTenant || approver.tenant === undefined)) || (isRequester && sameTenant)
}
