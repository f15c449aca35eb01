import { ToolgateError } from '../errors.ts'
import type { Approval, ApprovalBinding, ApprovalStatus, ApprovalStore } from '../ports.ts'

export interface MemoryApprovalsOptions {
  /** How long an approval lives from its request. Default 10 minutes. */
  readonly ttlMs?: number
  /** Makes ids that cannot be guessed. Default: random UUIDs. */
  readonly randomId?: () => string
}

/** More than a person can look at; an agent that asks in a loop is stopped here. */
const MAX_PENDING_PER_USER = 100
/** Characters of JSON, over all pending ones: they are kept, and shown together. */
const MAX_PENDING_INPUT_PER_USER = 8_000_000
const MAX_KEPT = 10_000
const DEFAULT_LIMIT = 100

/**
 * Gives approvals that live in this process.
 *
 * One user of one tenant has at most 100 pending at a time, with inputs of 8 million characters together: the
 * oldest stay, and a request for another is refused with `approval_forbidden`. Finished ones are kept for people to
 * see until they have been over for as long as they lived, or until 10,000 are kept.
 */
export function memoryApprovals({
  ttlMs = 600_000,
  randomId = () => crypto.randomUUID(),
}: MemoryApprovalsOptions = {}): ApprovalStore {
  /** By id, in the order of asking, which is also that of expiry. */
  const kept = new Map<string, Approval>()
  const idByBinding = new Map<string, string>()
  /** The ids of each user's pending ones, with the length of their inputs. */
  const pendingByUser = new Map<string, Map<string, number>>()

  function find(id: string, nowMs: number): Approval | undefined {
    const approval = kept.get(id)
    return approval && withStatusAt(approval, nowMs)
  }

  function change(approval: Approval, changes: Partial<Approval>): Approval {
    const changed = Object.freeze({ ...approval, ...changes })
    kept.set(approval.id, changed)
    return changed
  }

  function forget(approval: Approval): void {
    kept.delete(approval.id)
    const binding = bindingKey(approval)
    if (idByBinding.get(binding) === approval.id) idByBinding.delete(binding)
    const user = userKey(approval)
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
      if (!isLive(approval, nowMs)) return forget(approval)
    }
    throw new ToolgateError('approval_forbidden', 'Too many approvals are waiting. Try again later.')
  }

  function pendingOf(binding: ApprovalBinding, nowMs: number): Map<string, number> {
    const key = userKey(binding)
    const pending = pendingByUser.get(key) ?? new Map<string, number>()
    pendingByUser.set(key, pending)
    for (const id of pending.keys()) if (find(id, nowMs)?.status !== 'pending') pending.delete(id)
    return pending
  }

  return {
    request(binding, input, nowMs) {
      const key = bindingKey(binding)
      const current = find(idByBinding.get(key) ?? '', nowMs)
      if (current && isLive(current, nowMs)) return current
      makeRoom(nowMs)
      const pending = pendingOf(binding, nowMs)
      const length = JSON.stringify(input)?.length ?? 0
      checkPending(pending, length)
      const { tenant, user, tool, definitionHash, inputHash, run } = binding
      const approval: Approval = Object.freeze({
        id: randomId(),
        status: 'pending',
        tenant,
        user,
        tool,
        definitionHash,
        inputHash,
        run,
        input: structuredClone(input),
        requestedAt: nowMs,
        expiresAt: nowMs + ttlMs,
      })
      pending.set(approval.id, length)
      kept.set(approval.id, approval)
      idByBinding.set(key, approval.id)
      return approval
    },
    get: find,
    list({ status, limit = DEFAULT_LIMIT }, nowMs) {
      return [...kept.values()]
        .toReversed()
        .map((approval) => withStatusAt(approval, nowMs))
        .filter((approval) => status === undefined || approval.status === status)
        .slice(0, limit)
    },
    decide(id, { decision, by, reason, atMs }) {
      const approval = find(id, atMs)
      if (!approval) throw new ToolgateError('approval_unknown', `There is no approval "${id.slice(0, 100)}".`)
      if (approval.status !== 'pending')
        throw new ToolgateError('approval_decided', `The approval "${id}" is ${approval.status}.`)
      return change(approval, {
        status: decision === 'approve' ? 'approved' : 'rejected',
        decidedAt: atMs,
        decidedBy: by,
        ...(reason === undefined ? {} : { reason }),
      })
    },
    consume(id, nowMs) {
      const approval = find(id, nowMs)
      if (approval?.status !== 'approved') return false
      change(approval, { status: 'consumed' })
      return true
    },
    giveBack(id) {
      const approval = kept.get(id)
      if (approval?.status === 'consumed') change(approval, { status: 'approved' })
    },
  }
}

function checkPending(pending: ReadonlyMap<string, number>, length: number): void {
  const refuse = (what: string) =>
    new ToolgateError(
      'approval_forbidden',
      `${what} of this user are waiting for a person; no more can be asked for until one is decided.`,
    )
  if (pending.size >= MAX_PENDING_PER_USER) throw refuse(`${MAX_PENDING_PER_USER} approvals`)
  let total = length
  for (const other of pending.values()) total += other
  if (total > MAX_PENDING_INPUT_PER_USER)
    throw refuse(`Approvals of more than ${MAX_PENDING_INPUT_PER_USER} characters`)
}

/** A pending or approved one is over at its expiry; what was rejected or consumed stays so, for people to see. */
function withStatusAt(approval: Approval, nowMs: number): Approval {
  const isOpen = approval.status === 'pending' || approval.status === 'approved'
  return isOpen && nowMs >= approval.expiresAt ? Object.freeze({ ...approval, status: 'expired' }) : approval
}

const LIVE: ReadonlySet<ApprovalStatus> = new Set(['pending', 'approved', 'rejected'])

function isLive(approval: Approval, nowMs: number): boolean {
  return LIVE.has(approval.status) && nowMs < approval.expiresAt
}

/** JSON keeps the parts apart, whatever they hold, and an absent one apart from an empty one. */
function bindingKey({ tenant, user, tool, definitionHash, inputHash, run }: ApprovalBinding): string {
  return JSON.stringify([tenant ?? null, user ?? null, tool, definitionHash, inputHash, run ?? null])
}

function userKey({ tenant, user }: ApprovalBinding): string {
  return JSON.stringify([tenant ?? null, user ?? null])
}
