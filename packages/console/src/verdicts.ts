import { ApiError } from './api.ts'
import { createHeldRejections, type HeldRejection, type HeldRejectionsOptions } from './held-rejections.ts'
import type { Approval, ApprovalVerdictBody } from './wire.ts'

export interface VerdictsSnapshot {
  /** The decisions that are known, by anyone, by approval id. */
  readonly ended: ReadonlyMap<string, Approval>
  readonly held: ReadonlyMap<string, HeldRejection>
  readonly sending: ReadonlySet<string>
  /** Why the last verdict about an approval was refused. */
  readonly problems: ReadonlyMap<string, string>
}

export interface VerdictsOptions extends Pick<HeldRejectionsOptions, 'holdMs' | 'later' | 'nowMs'> {
  readonly post: (id: string, verdict: ApprovalVerdictBody) => Promise<Approval>
  /** Announces to screen readers. */
  readonly announce: (text: string) => void
}

/** The verdicts of this person, and the decisions of all. */
export interface Verdicts {
  readonly snapshot: VerdictsSnapshot
  /** Approves requests one after the other: each is a decision of its own. */
  approve(approvals: readonly Approval[], reason?: string): void
  /** Rejects requests after the time to undo it. */
  reject(approvals: readonly Approval[], reason?: string): void
  undo(ids: readonly string[]): void
  revoke(approval: Approval): void
  /** Sends the held rejections now, because the page is about to go. */
  sendHeld(): void
  /** Notes a decision of anyone. */
  note(approval: Approval): void
  /** Notes that a call has used its approval. */
  noteUsed(id: string): void
  subscribe(listener: () => void): () => void
  onSettled(listener: () => void): () => void
}

/** The oldest decisions are forgotten: their cards were cleared long ago. */
const MAX_ENDED = 5000

export function createVerdicts({ post, announce, ...hold }: VerdictsOptions): Verdicts {
  const listeners = new Set<() => void>()
  const settled = new Set<() => void>()
  const held = createHeldRejections({ ...hold, send: (one) => void sendRejection(one) })
  let snapshot: VerdictsSnapshot = { ended: new Map(), held: new Map(), sending: new Set(), problems: new Map() }
  held.subscribe(() => set({ held: held.current }))

  return {
    get snapshot() {
      return snapshot
    },
    approve(approvals, reason = '') {
      const own = approvals.filter(isOpen)
      set({ sending: new Set([...snapshot.sending, ...own.map(({ id }) => id)]), problems: withoutProblems(own) })
      void approveEach(own, reason)
    },
    reject(approvals, reason = '') {
      const own = approvals.filter(isOpen)
      set({ problems: withoutProblems(own) })
      for (const approval of own) held.hold(approval, reason)
      const [first] = own
      if (first) announce(`Rejected${times(own)}: ${first.tool}`)
    },
    undo(ids) {
      const undone = ids.filter((id) => held.current.has(id))
      for (const id of undone) held.undo(id)
      if (undone.length > 0) announce('Undone. The request waits again')
    },
    revoke(approval) {
      if (snapshot.sending.has(approval.id)) return
      set({ sending: new Set([...snapshot.sending, approval.id]), problems: withoutProblems([approval]) })
      void send(approval, { decision: 'revoke' }).then(
        (outcome) => outcome === 'done' && announce(`Revoked: ${approval.tool}`),
      )
    },
    sendHeld: () => held.sendAll(),
    note,
    noteUsed(id) {
      const approval = snapshot.ended.get(id)
      if (approval?.status === 'approved') note({ ...approval, status: 'consumed' })
    },
    subscribe: (listener) => added(listeners, listener),
    onSettled: (listener) => added(settled, listener),
  }

  function isOpen({ id }: Approval): boolean {
    return !snapshot.sending.has(id) && !snapshot.held.has(id) && !snapshot.ended.has(id)
  }

  async function approveEach(approvals: readonly Approval[], reason: string): Promise<void> {
    let done = 0
    for (const [i, approval] of approvals.entries()) {
      const outcome = await send(approval, { decision: 'approve', ...withReason(reason) })
      if (outcome === 'done') done++
      if (outcome !== 'broken') continue
      set({ sending: without(snapshot.sending, approvals.slice(i)) })
      break
    }
    const [first] = approvals
    if (first && done > 0) announce(`Approved${done === 1 ? '' : ` ${done}`}: ${first.tool}`)
  }

  async function sendRejection({ approval, reason }: HeldRejection): Promise<void> {
    // Somebody else may have decided meanwhile.
    if (snapshot.ended.has(approval.id)) return
    set({ sending: new Set([...snapshot.sending, approval.id]) })
    await send(approval, { decision: 'reject', ...withReason(reason) })
  }

  /** `broken`: the next one would fail, too. */
  async function send(approval: Approval, verdict: ApprovalVerdictBody): Promise<'done' | 'refused' | 'broken'> {
    try {
      note(await post(approval.id, verdict))
      return 'done'
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 401
      const problem = error instanceof Error ? error.message : String(error)
      announce(`${approval.tool}: ${problem}`)
      set({ problems: new Map(snapshot.problems).set(approval.id, problem) })
      return isRefused ? 'refused' : 'broken'
    } finally {
      set({ sending: without(snapshot.sending, [approval]) })
      for (const listener of settled) listener()
    }
  }

  function note(approval: Approval): void {
    const ended = new Map(snapshot.ended).set(approval.id, approval)
    const [oldest] = ended.keys()
    if (ended.size > MAX_ENDED && oldest !== undefined) ended.delete(oldest)
    set({ ended })
  }

  function withoutProblems(approvals: readonly Approval[]): ReadonlyMap<string, string> {
    const problems = new Map(snapshot.problems)
    for (const { id } of approvals) problems.delete(id)
    return problems
  }

  function set(changes: Partial<VerdictsSnapshot>): void {
    snapshot = { ...snapshot, ...changes }
    for (const listener of listeners) listener()
  }
}

function withReason(reason: string): Pick<ApprovalVerdictBody, 'reason'> {
  return reason.trim() === '' ? {} : { reason: reason.trim() }
}

function times({ length }: readonly unknown[]): string {
  return length === 1 ? '' : ` ${length}`
}

function without(ids: ReadonlySet<string>, approvals: readonly Approval[]): ReadonlySet<string> {
  return ids.difference(new Set(approvals.map(({ id }) => id)))
}

function added<Listener>(to: Set<Listener>, listener: Listener): () => void {
  to.add(listener)
  return () => to.delete(listener)
}
