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
  const kept = new KeptApprovals(ttlMs)
  return {
    request(binding, input, nowMs, about = {}) {
      const keys = approvalKeys(binding)
      const current = kept.findByBinding(keys.binding, nowMs)
      if (current && isLiveAt(current, nowMs)) return current
      kept.makeRoom(nowMs)
      const length = toJsonText(input)?.length ?? 0
      checkPendingApprovals(kept.pendingOf(keys.user, nowMs), length)
      return kept.add(newApproval(randomId(), binding, input, about, nowMs, nowMs + ttlMs), length)
    },
    get: (id, nowMs) => kept.find(id, nowMs),
    list: (filter, nowMs) => kept.list(filter, nowMs),
    decide: (id, verdict) => kept.keep(decidedApproval(kept.find(id, verdict.atMs), id, verdict)),
    consume: (id, nowMs, spend) => kept.consume(id, nowMs, spend),
    giveBack: (id, spend) => kept.giveBack(id, spend),
  }
}

type ApprovalRequest = Parameters<ApprovalStore['request']>

function newApproval(
  id: string,
  {
    tenant,
    user,
    tool,
    definitionHash,
    inputHash,
    run,
    approver,
    keyMadeBy,
    behind,
    aliases,
    asked,
  }: ApprovalRequest[0],
  input: unknown,
  { chat, why, told, trail, asker, clauses }: NonNullable<ApprovalRequest[3]>,
  requestedAt: number,
  expiresAt: number,
): Approval {
  return Object.freeze({
    id,
    status: 'pending',
    tenant,
    user,
    tool,
    definitionHash,
    inputHash,
    run,
    ...(keyMadeBy !== undefined && { keyMadeBy }),
    ...(behind !== undefined && { behind }),
    ...(aliases !== undefined && { aliases }),
    ...(approver !== undefined && { approver }),
    ...(asked !== undefined && { asked }),
    ...(chat !== undefined && { chat }),
    ...(why !== undefined && { why }),
    ...(told !== undefined && { told }),
    ...(trail !== undefined && { trail }),
    ...(asker !== undefined && { asker }),
    ...(clauses !== undefined && { clauses }),
    input: structuredClone(input),
    requestedAt,
    expiresAt,
  })
}

class KeptApprovals {
  readonly #ttlMs: number
  /** The approvals by id, in the order of their requests, which is also the order of their expiry. */
  readonly #byId = new Map<string, Approval>()
  readonly #idByBinding = new Map<string, string>()
  /** The use that consumed each approval, by id. */
  readonly #spendOf = new Map<string, string | undefined>()
  /** The ids of each user's pending ones, with the length of their inputs. */
  readonly #pendingByUser = new Map<string, Map<string, number>>()

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs
  }

  find(id: string, nowMs: number): Approval | undefined {
    const approval = this.#byId.get(id)
    return approval && this.#see(approval, nowMs)
  }

  findByBinding(binding: string, nowMs: number): Approval | undefined {
    return this.find(this.#idByBinding.get(binding) ?? '', nowMs)
  }

  list(filter: ApprovalFilter, nowMs: number): readonly Approval[] {
    checkApprovalFilter(filter)
    const { before, limit = DEFAULT_LIMIT } = filter
    const newestFirst = [...this.#byId.values()].toReversed()
    const start = before === undefined ? 0 : newestFirst.findIndex(({ id }) => id === before) + 1
    if (before !== undefined && start === 0) return []
    return newestFirst
      .slice(start)
      .map((approval) => this.#see(approval, nowMs))
      .filter((approval) => matches(approval, filter))
      .slice(0, limit)
  }

  /** Adds a request whose input has this many characters. */
  add(approval: Approval, characters: number): Approval {
    const { binding, user } = approvalKeys(approval)
    this.#pendingByUser.get(user)?.set(approval.id, characters)
    this.#idByBinding.set(binding, approval.id)
    return this.keep(approval)
  }

  keep(approval: Approval): Approval {
    this.#byId.set(approval.id, Object.freeze(approval))
    return approval
  }

  consume(id: string, nowMs: number, spend: string | undefined): boolean {
    const approval = this.find(id, nowMs)
    if (approval?.status !== 'approved')
      return approval?.status === 'consumed' && spend !== undefined && this.#spendOf.get(id) === spend
    this.keep({ ...approval, status: 'consumed' })
    this.#spendOf.set(id, spend)
    return true
  }

  giveBack(id: string, spend: string | undefined): void {
    const approval = this.#byId.get(id)
    if (approval?.status !== 'consumed' || (spend !== undefined && this.#spendOf.get(id) !== spend)) return
    this.keep({ ...approval, status: 'approved' })
    this.#spendOf.delete(id)
  }

  /** @throws {ToolgateError} `approval_too_many` if all are live */
  makeRoom(nowMs: number): void {
    for (const approval of this.#byId.values()) {
      if (approval.expiresAt + this.#ttlMs > nowMs) break
      this.#forget(approval)
    }
    if (this.#byId.size < MAX_KEPT) return
    for (const approval of this.#byId.values()) if (!isLiveAt(approval, nowMs)) return this.#forget(approval)
    throw tooManyApprovals()
  }

  /** Returns the number of a user's pending requests, and the characters of their inputs. */
  pendingOf(user: string, nowMs: number): { readonly count: number; readonly characters: number } {
    const pending = this.#pendingByUser.get(user) ?? new Map<string, number>()
    this.#pendingByUser.set(user, pending)
    let characters = 0
    for (const [id, length] of pending)
      if (this.find(id, nowMs)?.status === 'pending') characters += length
      else pending.delete(id)
    return { count: pending.size, characters }
  }

  #see(approval: Approval, nowMs: number): Approval {
    const now = approvalAt(approval, nowMs)
    return isEndSeen(approval, nowMs) ? this.keep(now) : now
  }

  #forget(approval: Approval): void {
    this.#byId.delete(approval.id)
    this.#spendOf.delete(approval.id)
    const { binding, user } = approvalKeys(approval)
    if (this.#idByBinding.get(binding) === approval.id) this.#idByBinding.delete(binding)
    const pending = this.#pendingByUser.get(user)
    pending?.delete(approval.id)
    if (pending?.size === 0) this.#pendingByUser.delete(user)
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
