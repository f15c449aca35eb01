import { setTimeout as sleep } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import { toCancelling } from '@toolgate/values'
import { type Lease, type LockOptions, memoryLock, type SessionLock } from '@toolgate/core/stores'

export interface LeasedLockOptions {
  /** How long a lease lasts if it is not renewed, for example because its process died. Default 15,000 ms. */
  readonly leaseMs?: number | undefined
}

export const LEASE_MS = 15_000

export interface LeasedLock extends SessionLock {
  /** Ends the turns of this process. Closing the database ends its waits. */
  close(): Promise<void>
}

/** The answer to a request: the token of a lease, or a place in the queue. */
export type LeaseAnswer =
  | { readonly token: number; readonly ticket?: undefined }
  | { readonly token?: undefined; readonly ticket: number }

/** The leases of all processes. Tokens and tickets only grow, across all sessions. */
export interface Leases {
  /**
   * Takes the session if it is free and no process has waited longer. Otherwise keeps a place, which each request
   * renews.
   */
  ask(session: string, ticket: number | undefined): Promise<LeaseAnswer>
  /** Gives up a place. */
  leave(session: string, ticket: number): Promise<void>
  /** Returns those tokens that are still leases. */
  renew(tokens: readonly number[]): Promise<readonly number[]>
  release(session: string, token: number): Promise<void>
  releaseAll(tokens: readonly number[]): Promise<void>
}

/** How long a place is kept without another request, in milliseconds. */
export const PLACE_MS = 1000
/** The time between polls while waiting for another process: the first, and the longest. */
const POLL_MS = { first: 25, most: 250 }

/**
 * Returns a lock for the sessions of all processes that share the leases.
 *
 * A turn is a lease that is renewed while it is held and expires when its process dies. Within a process, turns are in
 * the order of the requests. Across processes, they are in the order in which each process's first request found the
 * session taken. A process that is suspended for longer than `leaseMs` loses its lease. Its fencing token shows that
 * its later writes are late, and `lost` aborts when the process resumes.
 */
export function leasedLock(leases: Leases, { leaseMs = LEASE_MS }: LeasedLockOptions = {}): LeasedLock {
  const here = memoryLock()
  const held = new HeldLeases(leases, leaseMs)
  return {
    async acquire(session, options = {}) {
      const untilMs = performance.now() + (options.deadlineMs ?? Number.POSITIVE_INFINITY)
      const turn = await here.acquire(session, options)
      try {
        const { token, askedMs } = await waitForLease(leases, session, { ...options, untilMs })
        const lost = held.add(token, askedMs + leaseMs)
        return createLease(token, lost, async () => {
          held.delete(token)
          try {
            await leases.release(session, token)
          } catch {
            // The lease is no longer renewed, and expires by itself.
          }
          await turn.release()
        })
      } catch (error) {
        await turn.release()
        throw error
      }
    },
    close: () => held.close(),
  }
}

/** Returns the error of a turn that another process may hold by now. */
export function lockLost(): ToolgateError {
  return new ToolgateError('lock_lost', 'The turn in this session was lost: another may have it now.')
}

/**
 * Returns the bytes of a session's name, in UTF-16, which differs for all texts. UTF-8 cannot encode a lone surrogate.
 */
export function sessionBytes(session: string): Buffer {
  return Buffer.from(session, 'utf16le')
}

function createLease(fencingToken: number, lost: AbortSignal, end: () => Promise<void>): Lease {
  let ended: Promise<void> | undefined
  return {
    fencingToken,
    lost,
    release: async () => (ended ??= end()),
  }
}

interface HeldLease {
  readonly controller: AbortController
  /** The time until which no other process can have it. */
  untilMs: number
}

/** The leases that this process holds. It renews them together, and aborts the turns whose lease is lost. */
class HeldLeases {
  readonly #leases: Leases
  readonly #leaseMs: number
  readonly #held = new Map<number, HeldLease>()
  #timer: NodeJS.Timeout | undefined

  constructor(leases: Leases, leaseMs: number) {
    this.#leases = leases
    this.#leaseMs = leaseMs
  }

  add(token: number, untilMs: number): AbortSignal {
    const controller = new AbortController()
    this.#held.set(token, { controller, untilMs })
    if (this.#held.size === 1) this.#renewLater()
    return controller.signal
  }

  delete(token: number): void {
    this.#held.delete(token)
    if (this.#held.size === 0) clearTimeout(this.#timer)
  }

  async close(): Promise<void> {
    const tokens = [...this.#held.keys()]
    for (const token of tokens) this.delete(token)
    if (tokens.length === 0) return
    try {
      await this.#leases.releaseAll(tokens)
    } catch {
      // The leases expire by themselves.
    }
  }

  #renewLater(): void {
    const untilMs = Math.min(...[...this.#held.values()].map((each) => each.untilMs))
    const waitMs = Math.max(1, Math.min(this.#leaseMs / 3, untilMs - performance.now()))
    this.#timer = setTimeout(() => void this.#renew(), waitMs).unref()
  }

  async #renew(): Promise<void> {
    const sentMs = performance.now()
    const tokens = [...this.#held.keys()]
    try {
      const renewed = new Set(await this.#leases.renew(tokens))
      for (const token of tokens) {
        const held = this.#held.get(token)
        if (held && renewed.has(token)) held.untilMs = sentMs + this.#leaseMs
        else if (held) this.#lose(token, held)
      }
    } catch {
      // There is time for another try before the first lease expires.
      for (const [token, held] of this.#held) if (performance.now() >= held.untilMs) this.#lose(token, held)
    }
    if (this.#held.size > 0) this.#renewLater()
  }

  #lose(token: number, { controller }: HeldLease): void {
    this.#held.delete(token)
    controller.abort(lockLost())
  }
}

interface LeaseWait extends LockOptions {
  readonly untilMs: number
}

interface AskedLease {
  readonly token: number
  /** The time of the request, from which the lease runs. */
  readonly askedMs: number
}

async function waitForLease(
  leases: Leases,
  session: string,
  { signal, untilMs, deadlineMs }: LeaseWait,
): Promise<AskedLease> {
  const stop = new AbortController()
  const unfollow = signal && toCancelling(signal).onAbort(() => stop.abort())
  let ticket: number | undefined
  try {
    for (let pollMs = POLL_MS.first; ; pollMs = Math.min(pollMs * 1.2, POLL_MS.most)) {
      if (signal?.aborted) throw signal.reason
      const askedMs = performance.now()
      const answer = await leases.ask(session, ticket)
      if (answer.token !== undefined) return { token: answer.token, askedMs }
      ticket = answer.ticket
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0 && deadlineMs !== undefined)
        throw new ToolgateError('lock_timeout', 'The session is busy: its turn did not come in time.')
      await pause(Math.min(pollMs, leftMs), stop.signal)
    }
  } catch (error) {
    if (ticket !== undefined) await leave(leases, session, ticket)
    throw error
  } finally {
    unfollow?.()
  }
}

/** Gives up a place. If that fails, the place expires soon, because nothing renews it. */
async function leave(leases: Leases, session: string, ticket: number): Promise<void> {
  try {
    await leases.leave(session, ticket)
  } catch {
    // The caller gets the reason why the wait ended.
  }
}

/** Waits, or ends early when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(Math.max(1, ms), undefined, { signal })
  } catch {
    // The caller checks the signal.
  }
}
