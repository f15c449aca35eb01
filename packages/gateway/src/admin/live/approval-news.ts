import type { Approval } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import type { Approvals } from '@toolgate/core/call'

/** The maximum number of concurrent reports. Beyond it, the page finds approvals when it reads the list again. */
const MAX_WAITING = 1000
const MAX_REMEMBERED = 1000
const EVENTS: ReadonlySet<AuditRecord['event']> = new Set(['tool_approval_required', 'approval_decided'])

/**
 * Reports requested and decided approvals, which it finds through their records. Each approval is read when its record
 * arrives. So a report is at least as new as the record, and each state is reported once.
 */
export class ApprovalNews {
  readonly #approvals: Pick<Approvals, 'get'>
  readonly #onNews: (approval: Approval) => void
  readonly #onFault: (error: unknown) => void
  readonly #waiting = new Set<string>()
  /** The reported state by id. Oldest first. */
  readonly #reported = new Map<string, string>()
  #isReading = false
  #isClosed = false

  constructor(
    approvals: Pick<Approvals, 'get'>,
    onNews: (approval: Approval) => void,
    onFault: (error: unknown) => void,
  ) {
    this.#approvals = approvals
    this.#onNews = onNews
    this.#onFault = onFault
  }

  read(records: readonly AuditRecord[]): void {
    for (const { event, approval_id: id } of records)
      if (id !== undefined && EVENTS.has(event) && this.#waiting.size < MAX_WAITING) this.#waiting.add(id)
    if (!this.#isReading) void this.#readAll()
  }

  close(): void {
    this.#isClosed = true
  }

  /** Reads approvals one by one, so that an earlier state is never reported after a later one. */
  async #readAll(): Promise<void> {
    this.#isReading = true
    for (const id of this.#waiting) {
      this.#waiting.delete(id)
      try {
        const approval = await this.#approvals.get(id)
        if (this.#isClosed) return
        if (approval && this.#reported.get(id) !== stateOf(approval)) this.#report(approval)
      } catch (error) {
        this.#onFault(error)
      }
    }
    this.#isReading = false
  }

  #report(approval: Approval): void {
    this.#reported.delete(approval.id)
    this.#reported.set(approval.id, stateOf(approval))
    const [oldest] = this.#reported.keys()
    if (this.#reported.size > MAX_REMEMBERED && oldest !== undefined) this.#reported.delete(oldest)
    this.#onNews(approval)
  }
}

/** An approval that needs several people changes with each of them. */
function stateOf({ status, approvedBy = [] }: Approval): string {
  return [status, ...approvedBy.map(({ atMs }) => atMs)].join(' ')
}
