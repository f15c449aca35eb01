import { type Caller, defineCaller } from '../caller.ts'
import { ToolgateError } from '../errors.ts'
import { checkApprovalFilter, checkDecision } from '../memory/approval-rules.ts'
import type { Approval, ApprovalFilter, ApprovalStore, ApprovalVerdict, Clock, MayApprove } from '../ports.ts'
import { checkShape, shapeOf } from '../util/shape.ts'

/** Approvals as people handle them. */
export interface Approvals {
  get(id: string): Promise<Approval | undefined>
  /** Newest first, the history among them. */
  list(filter?: ApprovalFilter): Promise<readonly Approval[]>
  /** Returns whether this person may decide this approval. `decide` asks the same. */
  mayDecide(approver: Caller, approval: Approval): boolean
  /**
   * Approves or rejects a pending approval, or revokes an approved one that was not used yet.
   *
   * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_not_revocable`, `approval_forbidden`
   * @throws {ConfigError} for a verdict that is none of `approve`, `reject` and `revoke`
   */
  decide(approver: Caller, id: string, verdict: Pick<ApprovalVerdict, 'decision' | 'reason'>): Promise<Approval>
}

export interface ApprovalsPorts {
  readonly approvals: Pick<ApprovalStore, 'get' | 'list' | 'decide'>
  readonly clock: Clock
  /** Hears of each verdict. */
  readonly onDecided?: ((approval: Approval) => void) | undefined
}

const PORTS = shapeOf<ApprovalsPorts>({ approvals: true, clock: true, onDecided: true })

/** Gives the desk where people decide, over the store where calls ask. */
export function createApprovals(ports: ApprovalsPorts, mayApprove: MayApprove = mayApproveByDefault): Approvals {
  checkShape('createApprovals', ports, PORTS)
  const { approvals, clock, onDecided } = ports
  // What is not `true`, as a promise is not, has not said yes.
  const isAllowed: MayApprove = (approver, approval) => mayApprove(defineCaller(approver), approval) === true
  return {
    mayDecide(approver, approval) {
      try {
        return isAllowed(approver, approval)
      } catch {
        return false
      }
    },
    get: async (id) => approvals.get(id, clock.wallMs()),
    async list(filter = {}) {
      checkApprovalFilter(filter)
      return approvals.list(filter, clock.wallMs())
    },
    async decide(approver, id, verdict) {
      checkDecision(verdict)
      const { decision, reason } = verdict
      const approval = await approvals.get(id, clock.wallMs())
      if (!approval) throw new ToolgateError('approval_unknown', `No approval has the id "${id}".`)
      if (!isAllowed(approver, approval))
        throw new ToolgateError(
          'approval_forbidden',
          mayApprove === mayApproveByDefault ? WHO_MAY : 'You may not decide this approval.',
        )
      const by = approver.user ?? 'unknown'
      const decided = await approvals.decide(id, { decision, reason, by, atMs: clock.wallMs() })
      onDecided?.(decided)
      return decided
    },
  }
}

const WHO_MAY = 'Only the role "approver" and the person who asked may decide this approval, each within the tenant.'

/** Returns whether a person may decide an approval where the host has no rule of its own: within their tenant, the role `approver` and the requester. */
export function mayApproveByDefault(approver: Caller, approval: Pick<Approval, 'user' | 'tenant'>): boolean {
  if (approver.tenant !== approval.tenant) return false
  const isRequester = approver.user !== undefined && approver.user === approval.user
  return isRequester || (approver.roles ?? []).includes('approver')
}
