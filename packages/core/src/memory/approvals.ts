import type { Approval, ApprovalFilter, ApprovalStore } from '../ports/ports.ts'
import { checkShape, shapeOf } from '@toolgate/values'
import {
  approvalAt,
  approvalKeys,
  checkApprovalFilter,
  checkPendingApprovals,
  isEndSeen,
  isLiveAt,
  decidedApproval,
  tooManyApprovals,
} from './approval-rules.ts'
import { toJsonText } from '@toolgate/values/json'

interface MemoryApprovalsOptions {
  /** How long an approval lives from its request. Default 10 minutes. */
  readonly ttlMs?: number
  /** Makes ids that cannot be guessed. Default: random UUIDs. */
  readonly randomId?: () => string
}

const OPTIONS = shapeOf<MemoryApprovalsOptions>({ ttlMs: true, randomId: true })
const MAX_KEPT = 10_000
const DEFAULT_LIMIT = 100

/**
 * Creates a store of approvals in this process.
 *
 * A user of a tenant has at most 100 pending approvals, whose inputs have at most 8 million characters together. The next
 * request throws `approval_too_many`. Finished approvals stay visible for one more `ttlMs`, or until 10,000 are kept.
 */
export function memoryApprovals(options: MemoryApprovalsOptions = {}): ApprovalStore {
  checkShape('memoryApprovals', options, OPTIONS)
  const { ttlMs = 600_000, randomId = () => crypto.randomUUID() } = options
  /** By id, in the order of requests, which is also that of expiry. */
  const kept = new Map<string, Approval>()
  const idByBinding = new Map<string, string>()
  /** The use that consumed each approval, by id. */
  const spendOf = new Map<string, string | undefined>()
  /** The ids of each user's pending ones, with the length of their inputs. */
  const pendingByUser = new Map<string, Map<string, number>>()

  function find(id: string, nowMs: number): Approval | undefined {
    const approval = kept.get(id)
    return approval && see(approval, nowMs)
  }

  function see(approval: Approval, nowMs: number): Approval {
    const now = approvalAt(approval, nowMs)
    return isEndSeen(approval, nowMs) ? keep(now) : now
  }

  function keep(approval: Approval): Approval {
    kept.set(approval.id, Object.freeze(approval))
    return approval
  }

  function forget(approval: Approval): void {
    kept.delete(approval.id)
    spendOf.delete(approval.id)
    const { binding, user } = approvalKeys(approval)
    if (idByBinding.get(binding) === approval.id) idByBinding.delete(binding)
    const pending = pendingByUser.get(user)
    pending?.delete(approval.id)
    if (pending?.size === 0) pendingByUser.delete(user)
  }

  function makeRoom(nowMs: number): void {
    for (const approval of kept.values()) {
      if (approval.expiresAt + ttlMs > nowMs) break
      forget(approval)
    }
    if (kept.size < MAX_KEPT) return
    for (const approval of kept.values()) {
      if (!isLiveAt(approval, nowMs)) return forget(approval)
    }
    throw tooManyApprovals()
  }

  function pendingOf(key: string, nowMs: number): Map<string, number> {
    const pending = pendingByUser.get(key) ?? new Map<string, number>()
    pendingByUser.set(key, pending)
    for (const id of pending.keys()) if (find(id, nowMs)?.status !== 'pending') pending.delete(id)
    return pending
  }

  return {
    request(binding, input, nowMs, { chat, why, trail, asker } = {}) {
      const keys = approvalKeys(binding)
      const current = find(idByBinding.get(keys.binding) ?? '', nowMs)
      if (current && isLiveAt(current, nowMs)) return current
      makeRoom(nowMs)
      const pending = pendingOf(keys.user, nowMs)
      const length = toJsonText(input)?.length ?? 0
      let characters = 0
      for (const other of pending.values()) characters += other
      checkPendingApprovals({ count: pending.size, characters }, length)
      const { tenant, user, tool, definitionHash, inputHash, run, approver, keyMadeBy, behind, asked } = binding
      const approval: Approval = Object.freeze({
        id: randomId(),
        status: 'pending',
        tenant,
        user,
        tool,
        definitionHash,
        inputHash,
        run,
        ...(keyMadeBy !== undefined && { keyMadeBy }),
        ...(behind !== undefined && { behind }),
        ...(approver !== undefined && { approver }),
        ...(asked !== undefined && { asked }),
        ...(chat !== undefined && { chat }),
        ...(why !== undefined && { why }),
        ...(trail !== undefined && { trail }),
        ...(asker !== undefined && { asker }),
        input: structuredClone(input),
        requestedAt: nowMs,
        expiresAt: nowMs + ttlMs,
      })
      pending.set(approval.id, length)
      kept.set(approval.id, approval)
      idByBinding.set(keys.binding, approval.id)
      return approval
    },
    get: find,
    list(filter, nowMs) {
      checkApprovalFilter(filter)
      const { before, limit = DEFAULT_LIMIT } = filter
      const newestFirst = [...kept.values()].toReversed()
      const start = before === undefined ? 0 : newestFirst.findIndex(({ id }) => id === before) + 1
      if (before !== undefined && start === 0) return []
      return newestFirst
        .slice(start)
        .map((approval) => see(approval, nowMs))
        .filter((approval) => matches(approval, filter))
        .slice(0, limit)
    },
    decide: (id, verdict) => keep(decidedApproval(find(id, verdict.atMs), id, verdict)),
    consume(id, nowMs, spend) {
      const approval = find(id, nowMs)
      if (approval?.status !== 'approved')
        return approval?.status === 'consumed' && spend !== undefined && spendOf.get(id) === spend
      keep({ ...approval, status: 'consumed' })
      spendOf.set(id, spend)
      return true
    },
    giveBack(id, spend) {
      const approval = kept.get(id)
      if (approval?.status !== 'consumed' || (spend !== undefined && spendOf.get(id) !== spend)) return
      keep({ ...approval, status: 'approved' })
      spendOf.delete(id)
    },
  }
}

function matches(approval: Approval, { status, tenant, user, tool, chat }: ApprovalFilter): boolean {
  return (
    (status === undefined || approval.status === status) &&
    (tenant === undefined || approval.tenant === tenant) &&
    (user === undefined || approval.user === user) &&
    (tool === undefined || approval.tool === tool) &&
    (chat === undefined || approval.chat === chat)
  )
}
