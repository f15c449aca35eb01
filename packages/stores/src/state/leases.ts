import type { MaybePromise } from '@toolgate/core'
import type { StoresDatabase } from './database.ts'

/** Either a lease, by its token, or a place among those who wait. */
export type LeaseAnswer =
  | { readonly token: number; readonly ticket?: undefined }
  | { readonly token?: undefined; readonly ticket: number }

/** The leases of all processes. Tokens and tickets are numbers that only grow, over all sessions. */
export interface Leases {
  /** Takes the session if it is free and nobody has waited longer, else keeps a place, which each asking renews. */
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
  // What a dead process has left behind in sessions that nobody asks for any more.
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

/** UTF-16, which keeps every text apart; a lone surrogate is no UTF-8. */
function toBytes(session: string): Buffer {
  return Buffer.from(session, 'utf16le')
}
