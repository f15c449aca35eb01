import { ApiError } from './api.ts'
import {
  createHeldRejections,
  type HeldRejection,
  type HeldRejections,
  type HeldRejectionsOptions,
} from './held-rejections.ts'
import { createListeners, createStore } from './store.ts'
import type { Approval, ApprovalVerdictBody } from './wire.ts'

export interface VerdictsSnapshot {
  /** All known decisions, by approval id. */
  readonly ended: ReadonlyMap<string, Approval>
  readonly held: ReadonlyMap<string, HeldRejection>
  readonly sending: ReadonlySet<string>
  /** Why the last verdict about an approval was refused. */
  readonly problems: ReadonlyMap<string, string>
}

interface VerdictsOptions extends Pick<HeldRejectionsOptions, 'holdMs' | 'later' | 'nowMs'> {
  readonly post: (id: string, verdict: ApprovalVerdictBody) => Promise<Approval>
  /** Announces a text to screen readers. */
  readonly announce: (text: string) => void
}

/** What a person adds to an approval. */
type ApproveMore = Pick<ApprovalVerdictBody, 'grant' | 'input'>

/** The maximum number of stored decisions. The oldest are deleted, because their cards were cleared long ago. */
const MAX_ENDED = 5000

/** The verdicts of this person, and the known decisions of everybody. */
export class Verdicts {
  readonly #post: VerdictsOptions['post']
  readonly #announce: VerdictsOptions['announce']
  readonly #held: HeldRejections
  readonly #store = createStore<VerdictsSnapshot>({
    ended: new Map(),
    held: new Map(),
    sending: new Set(),
    problems: new Map(),
  })
  readonly #settled = createListeners<void>()
  readonly subscribe = this.#store.subscribe
  readonly onSettled = this.#settled.add

  constructor({ post, announce, ...hold }: VerdictsOptions) {
    this.#post = post
    this.#announce = announce
    this.#held = createHeldRejections({ ...hold, send: (one) => void this.#sendRejection(one) })
    this.#held.subscribe(() => this.#set({ held: this.#held.current }))
  }

  get current(): VerdictsSnapshot {
    return this.#store.current
  }

  /** Approves requests one by one, because each is a separate decision. */
  approve(approvals: readonly Approval[], reason = '', more: ApproveMore = {}): void {
    const own = approvals.filter((one) => this.#isOpen(one))
    this.#begin(own)
    void this.#approveEach(own, reason, more)
  }

  /** Rejects requests, once they can no longer be undone. */
  reject(approvals: readonly Approval[], reason = ''): void {
    const own = approvals.filter((one) => this.#isOpen(one))
    this.#set({ problems: this.#problemsWithout(own) })
    for (const approval of own) this.#held.hold(approval, reason)
    const [first] = own
    if (first) this.#announce(`Rejected${namesOf(own)}`)
  }

  undo(ids: readonly string[]): void {
    const undone = ids.filter((id) => this.#held.current.has(id))
    for (const id of undone) this.#held.undo(id)
    if (undone.length > 0) this.#announce('Undone. The request waits again')
  }

  revoke(approval: Approval): void {
    if (this.current.sending.has(approval.id)) return
    this.#begin([approval])
    void this.#send(approval, { decision: 'revoke' }).then(
      (outcome) => outcome === 'done' && this.#announce(`Revoked: ${approval.tool}`),
    )
  }

  /** Sends the held rejections now, because the page is about to close. */
  sendHeld(): void {
    this.#held.sendAll()
  }

  /** Notes a decision by any person. */
  note(approval: Approval): void {
    // It waits for further people: only the list says for whom.
    if (approval.status === 'pending') return
    const ended = new Map(this.current.ended).set(approval.id, approval)
    const [oldest] = ended.keys()
    if (ended.size > MAX_ENDED && oldest !== undefined) ended.delete(oldest)
    this.#set({ ended })
  }

  /** Notes that a call has used its approval. */
  noteUsed(id: string): void {
    const approval = this.current.ended.get(id)
    if (approval?.status === 'approved') this.note({ ...approval, status: 'consumed' })
  }

  #isOpen({ id }: Approval): boolean {
    const { sending, held, ended } = this.current
    return !sending.has(id) && !held.has(id) && !ended.has(id)
  }

  #begin(approvals: readonly Approval[]): void {
    const sending = this.current.sending.union(new Set(approvals.map(({ id }) => id)))
    this.#set({ sending, problems: this.#problemsWithout(approvals) })
  }

  async #approveEach(approvals: readonly Approval[], reason: string, more: ApproveMore): Promise<void> {
    const done: Approval[] = []
    for (const [i, approval] of approvals.entries()) {
      // Who approves after a person who changed the input approves the same change.
      const edit = approval.edit && { input: approval.edit.input }
      const outcome = await this.#send(approval, { decision: 'approve', ...withReason(reason), ...edit, ...more })
      if (outcome === 'done') done.push(approval)
      if (outcome !== 'broken') continue
      this.#set({ sending: without(this.current.sending, approvals.slice(i)) })
      break
    }
    if (done.length > 0) this.#announce(`Approved${namesOf(done)}`)
  }

  async #sendRejection({ approval, reason }: HeldRejection): Promise<void> {
    // Another person may have decided meanwhile.
    if (this.current.ended.has(approval.id)) return
    this.#set({ sending: new Set([...this.current.sending, approval.id]) })
    await this.#send(approval, { decision: 'reject', ...withReason(reason) })
  }

  /** Sends a verdict. `broken`: the next one would fail too. */
  async #send(approval: Approval, verdict: ApprovalVerdictBody): Promise<'done' | 'refused' | 'broken'> {
    try {
      this.note(await this.#post(approval.id, verdict))
      return 'done'
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 401
      const problem = error instanceof Error ? error.message : String(error)
      this.#announce(`${approval.tool}: ${problem}`)
      this.#set({ problems: new Map(this.current.problems).set(approval.id, problem) })
      return isRefused ? 'refused' : 'broken'
    } finally {
      this.#set({ sending: without(this.current.sending, [approval]) })
      this.#settled.call()
    }
  }

  #problemsWithout(approvals: readonly Approval[]): ReadonlyMap<string, string> {
    const problems = new Map(this.current.problems)
    for (const { id } of approvals) problems.delete(id)
    return problems
  }

  #set(changes: Partial<VerdictsSnapshot>): void {
    this.#store.set({ ...this.current, ...changes })
  }
}

function withReason(reason: string): Pick<ApprovalVerdictBody, 'reason'> {
  return reason.trim() === '' ? {} : { reason: reason.trim() }
}

/** Returns what was decided: ` 2: pay:send`, or ` 3 requests` of several tools. */
function namesOf(approvals: readonly Approval[]): string {
  const [tool, ...others] = new Set(approvals.map((one) => one.tool))
  if (others.length > 0) return ` ${approvals.length} requests`
  return `${approvals.length === 1 ? '' : ` ${approvals.length}`}: ${tool}`
}

function without(ids: ReadonlySet<string>, approvals: readonly Approval[]): ReadonlySet<string> {
  return ids.difference(new Set(approvals.map(({ id }) => id)))
}
