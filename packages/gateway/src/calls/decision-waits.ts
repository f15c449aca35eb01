import type { Approval, Gate } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'

interface DecisionWaitsOptions {
  readonly gate: { readonly approvals: Pick<Gate['approvals'], 'get'>; readonly subscribe: Gate['subscribe'] }
  /** Whether the gateway is stopping. It then waits for no decisions. */
  readonly isStopping: () => boolean
}

/** How often decisions of other processes are looked for, as the gate does not announce them. */
const POLL_MS = 1000
/** The maximum number of approvals that are checked each time. */
const MAX_LOOKED_AT = 50
/** The maximum number of requests that wait, of all callers and of one user. */
const MAX_WAITING = 1000
const MAX_OF_USER = 100
const DECIDED: ReadonlySet<Approval['status']> = new Set(['approved', 'rejected', 'revoked'])

/** Lets requests wait for a person's decision. They wait outside the gate, so a call that waits holds nothing in it. */
export class DecisionWaits {
  readonly #options: DecisionWaitsOptions
  readonly #unsubscribe: () => void
  /** What each waiting request does when its approval may have changed, by the id of the approval. */
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #ofUsers = new Map<string, number>()
  #count = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: DecisionWaitsOptions) {
    this.#options = options
    this.#unsubscribe = options.gate.subscribe((notice) => {
      if (notice.event === 'approval-decided') this.#wake(notice.approval.id)
    })
  }

  /**
   * Waits until a person has decided, the client has gone, the time is over or the gateway stops. Returns whether a person
   * has decided. Returns at once if too many wait.
   */
  async wait(approval: Pick<Approval, 'id' | 'user' | 'tenant'>, signal: Cancelling, ms: number): Promise<boolean> {
    const { isStopping } = this.#options
    const user = JSON.stringify([approval.tenant, approval.user])
    const ofUser = this.#ofUsers.get(user) ?? 0
    if (this.#count >= MAX_WAITING || ofUser >= MAX_OF_USER) return false
    const untilMs = performance.now() + ms
    this.#count++
    this.#ofUsers.set(user, ofUser + 1)
    try {
      for (;;) {
        // Changes are noted from here on, so that none is missed.
        const changed = this.#changed(approval.id, signal, untilMs - performance.now())
        try {
          const status = await this.#statusOf(approval.id)
          if (signal.aborted || status === undefined) return false
          if (status !== 'pending') return DECIDED.has(status)
          if (isStopping() || performance.now() >= untilMs) return false
          await changed.promise
        } finally {
          changed.end()
        }
      }
    } finally {
      this.#count--
      const left = (this.#ofUsers.get(user) ?? 1) - 1
      if (left > 0) this.#ofUsers.set(user, left)
      else this.#ofUsers.delete(user)
    }
  }

  /** Ends all waits, as the gateway stops. */
  stop(): void {
    for (const id of this.#waiting.keys()) this.#wake(id)
  }

  close(): void {
    this.#unsubscribe()
    this.stop()
  }

  #changed(id: string, signal: Cancelling, ms: number): { readonly promise: Promise<void>; end(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = this.#waiting.get(id) ?? new Set()
    this.#waiting.set(id, waiting.add(resolve))
    this.#timer ??= setInterval(() => void this.#look(), POLL_MS).unref()
    const unwatch = signal.onAbort(resolve)
    const timer = setTimeout(resolve, Math.max(0, ms))
    return {
      promise,
      end: () => {
        clearTimeout(timer)
        unwatch()
        waiting.delete(resolve)
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id)
        if (this.#waiting.size > 0) return
        clearInterval(this.#timer)
        this.#timer = undefined
      },
    }
  }

  /** Checks some approvals, those first that were not checked for the longest time. */
  async #look(): Promise<void> {
    for (const id of [...this.#waiting.keys()].slice(0, MAX_LOOKED_AT)) {
      const status = await this.#statusOf(id)
      const waiting = this.#waiting.get(id)
      if (status !== 'pending') this.#wake(id)
      else if (waiting) {
        this.#waiting.delete(id)
        this.#waiting.set(id, waiting)
      }
    }
  }

  /** Returns the status of an approval. If the store fails, it is asked again later. */
  async #statusOf(id: string): Promise<Approval['status'] | undefined> {
    try {
      return (await this.#options.gate.approvals.get(id))?.status
    } catch {
      return 'pending'
    }
  }

  #wake(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake()
  }
}
