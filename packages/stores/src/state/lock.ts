import { setTimeout as sleep } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import { type MaybePromise, toCancelling } from '@toolgate/core/internal'
import { type Lease, type LockOptions, memoryLock, type SessionLock } from '@toolgate/core/stores'
import type { StoresDatabase } from './database.ts'

export interface SqliteLockOptions {
  /** How long a lease lives without renewal, after its process died. Default 15,000 ms. */
  readonly leaseMs?: number | undefined
}

export interface SqliteLock extends SessionLock {
  /** Ends the turns of this process. Its waits end when the database is closed. */
  close(): void
}

/** How often a wait for another process polls. */
const POLL_MS = 25

/**
 * Returns a lock for the sessions of all processes that open the database.
 *
 * A turn is a lease that is renewed while it is held and expires when its process dies. Within a process, turns are in the
 * order of the requests. Across processes, they are in the order in which each process's first request found the session
 * taken. A process that is suspended for longer than a lease lives loses it without notice: its later writes are recognised
 * by their fencing token.
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
      // There is time for another try before the leases expire.
    }
  }

  async function releaseAll(tokens: readonly number[]): Promise<void> {
    if (tokens.length === 0) return
    try {
      await leases.releaseAll(tokens)
    } catch {
      // They expire by themselves.
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
            // It is no longer renewed and expires by itself.
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

/** Gives up a place. If that fails, the place expires in a moment, since it is not renewed. */
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

/** Either a lease, by its token, or a place in the queue. */
export type LeaseAnswer =
  | { readonly token: number; readonly ticket?: undefined }
  | { readonly token?: undefined; readonly ticket: number }

/** The leases of all processes. Tokens and tickets only grow, across all sessions. */
export interface Leases {
  /** Takes the session if it is free and no one has waited longer. Otherwise keeps a place, which each request renews. */
  ask(session: string, ticket: number | undefined): MaybePromise<LeaseAnswer>
  /** Gives up a place. */
  leave(session: string, ticket: number): MaybePromise<void>
  renew(tokens: readonly number[]): MaybePromise<void>
  release(session: string, token: number): MaybePromise<void>
  releaseAll(tokens: readonly number[]): MaybePromise<void>
}

/** How long a place is kept for a process that does not ask again. */
const PLACE_MS = 1000

export function leasesIn(db: StoresDatabase, leaseMs: number): Leases {
  const nextTicket = db.prepare('UPDATE machine SET ticket = ticket + 1 RETURNING ticket')
  const selectLive = db.prepare('SELECT 1 FROM leases WHERE session = ? AND expires_at > ?')
  const removePassed = db.prepare('DELETE FROM lease_waiters WHERE session = ? AND expires_at <= ?')
  const selectFirst = db.prepare('SELECT min(ticket) AS ticket FROM lease_waiters WHERE session = ?')
  const keepPlace = db.prepare(
    'INSERT INTO lease_waiters (session, ticket, expires_at) VALUES (?, ?, ?) ' +
      'ON CONFLICT (session, ticket) DO UPDATE SET expires_at = excluded.expires_at',
  )
  const removePlace = db.prepare('DELETE FROM lease_waiters WHERE session = ? AND ticket = ?')
  const insert = db.prepare('INSERT OR REPLACE INTO leases (session, token, expires_at) VALUES (?, ?, ?)')
  const extend = db.prepare('UPDATE leases SET expires_at = ? WHERE token = ?')
  const remove = db.prepare('DELETE FROM leases WHERE session = ? AND token = ?')
  const removeByToken = db.prepare('DELETE FROM leases WHERE token = ?')
  // Rows of dead processes in sessions that are no longer requested.
  const removeSomeDead = db.prepare(
    'DELETE FROM leases WHERE session IN (SELECT session FROM leases WHERE expires_at <= ? LIMIT 2)',
  )
  const removeSomePlaces = db.prepare(
    'DELETE FROM lease_waiters WHERE (session, ticket) IN ' +
      '(SELECT session, ticket FROM lease_waiters WHERE expires_at <= ? LIMIT 2)',
  )
  const takeTicket = (): number => Number(nextTicket.get()?.['ticket'])

  function take(session: Buffer, nowMs: number): LeaseAnswer {
    const token = takeTicket()
    removeSomeDead.run(nowMs)
    removeSomePlaces.run(nowMs)
    insert.run(session, token, nowMs + leaseMs)
    return { token }
  }

  return {
    ask: (name, ticket) =>
      db.write(() => {
        const session = toBytes(name)
        const nowMs = db.clock.monotonicMs()
        removePassed.run(session, nowMs)
        const first = selectFirst.get(session)?.['ticket'] ?? undefined
        const isFirst = first === undefined || first === ticket || (ticket !== undefined && ticket < Number(first))
        if (isFirst && !selectLive.get(session, nowMs)) {
          if (ticket !== undefined) removePlace.run(session, ticket)
          return take(session, nowMs)
        }
        const place = ticket ?? takeTicket()
        keepPlace.run(session, place, nowMs + PLACE_MS)
        return { ticket: place }
      }),
    leave: (name, ticket) => db.write(() => void removePlace.run(toBytes(name), ticket)),
    renew: (tokens) =>
      db.write(() => {
        for (const token of tokens) extend.run(db.clock.monotonicMs() + leaseMs, token)
      }),
    release: (name, token) => db.write(() => void remove.run(toBytes(name), token)),
    releaseAll: (tokens) =>
      db.write(() => {
        for (const token of tokens) removeByToken.run(token)
      }),
  }
}

/** Returns UTF-16, which is different for every text. A lone surrogate has no UTF-8. */
function toBytes(session: string): Buffer {
  return Buffer.from(session, 'utf16le')
}
