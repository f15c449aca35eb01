import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, type LockOptions, memoryLock, type SessionLock, toCancelling, ToolgateError } from '@toolgate/core'
import type { StoresDatabase } from './database.ts'
import { leasesIn, type Leases } from './leases.ts'

export interface SqliteLockOptions {
  /** How long a lease lives that is not renewed, as its process died. Default 15,000 ms. */
  readonly leaseMs?: number | undefined
}

export interface SqliteLock extends SessionLock {
  /** Ends the turns of this process. Its waits end when the database is closed. */
  close(): void
}

/** How often one who waits for another process looks. */
const POLL_MS = 25

/**
 * Gives a lock for the sessions of all processes that open the database.
 *
 * A turn is a lease, renewed while it is held; when its process dies it ends by itself. Within a process turns are
 * in the order of asking. Across processes they are in the order in which each process's first asker found the
 * session taken. A process that stands still for as long as a lease lives loses it without a word: what it writes
 * then is told by its fencing token.
 */
export function lockIn(db: StoresDatabase, { leaseMs = 15_000 }: SqliteLockOptions = {}): SqliteLock {
  const here = memoryLock()
  const leases = leasesIn(db, leaseMs)
  const held = new Set<number>()
  let renewal: NodeJS.Timeout | undefined

  async function renewAll(): Promise<void> {
    try {
      await leases.renew([...held])
    } catch {
      // There is time for another try before a lease ends.
    }
  }

  async function releaseAll(tokens: readonly number[]): Promise<void> {
    if (tokens.length === 0) return
    try {
      await leases.releaseAll(tokens)
    } catch {
      // They end by themselves.
    }
  }

  function hold(token: number): void {
    held.add(token)
    renewal ??= setInterval(() => void renewAll(), leaseMs / 3).unref()
  }

  function letGo(token: number): void {
    held.delete(token)
    if (held.size > 0) return
    clearInterval(renewal)
    renewal = undefined
  }

  return {
    async acquire(session, options = {}) {
      const untilMs = performance.now() + (options.deadlineMs ?? Number.POSITIVE_INFINITY)
      const turn = await here.acquire(session, options)
      try {
        const token = await waitForLease(leases, session, { ...options, untilMs })
        hold(token)
        return createLease(token, async () => {
          letGo(token)
          try {
            await leases.release(session, token)
          } catch {
            // Not renewed any more, it ends by itself.
          }
          await turn.release()
        })
      } catch (error) {
        await turn.release()
        throw error
      }
    },
    close() {
      void releaseAll([...held])
      for (const token of held) letGo(token)
    },
  }
}

function createLease(fencingToken: number, end: () => Promise<void>): Lease {
  let ended: Promise<void> | undefined
  return {
    fencingToken,
    release: async () => (ended ??= end()),
  }
}

interface Wait extends LockOptions {
  readonly untilMs: number
}

async function waitForLease(leases: Leases, session: string, { signal, untilMs, deadlineMs }: Wait): Promise<number> {
  const stop = new AbortController()
  const unfollow = signal && toCancelling(signal).onAbort(() => stop.abort())
  let ticket: number | undefined
  try {
    for (;;) {
      if (signal?.aborted) throw signal.reason
      const answer = await leases.ask(session, ticket)
      if (answer.token !== undefined) return answer.token
      ticket = answer.ticket
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0 && deadlineMs !== undefined)
        throw new ToolgateError('lock_timeout', 'The session is busy: its turn did not come in time.')
      await pause(Math.min(POLL_MS, leftMs), stop.signal)
    }
  } catch (error) {
    if (ticket !== undefined) await leave(leases, session, ticket)
    throw error
  } finally {
    unfollow?.()
  }
}

/** A place that is not given up is lost in a moment, as nobody renews it. */
async function leave(leases: Leases, session: string, ticket: number): Promise<void> {
  try {
    await leases.leave(session, ticket)
  } catch {
    // Why the wait ended is what its caller is told.
  }
}

/** Ends early when the wait is over. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(Math.max(1, ms), undefined, { signal })
  } catch {
    // The one who waits looks at the signal.
  }
}
