import {
  LEASE_MS,
  type LeaseAnswer,
  type LeasedLock,
  leasedLock,
  type LeasedLockOptions,
  type Leases,
  PLACE_MS,
  sessionBytes,
} from '../leased-lock.ts'
import type { StoresDatabase } from './database.ts'

/** Returns a lock for the sessions of all processes that open the database. */
export function lockIn(db: StoresDatabase, options: LeasedLockOptions = {}): LeasedLock {
  return leasedLock(leasesIn(db, options.leaseMs ?? LEASE_MS), options)
}

function leasesIn(db: StoresDatabase, leaseMs: number): Leases {
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
  // These rows belong to dead processes, in sessions that are no longer requested.
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
    ask: async (name, ticket) =>
      db.write(() => {
        const session = sessionBytes(name)
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
    leave: async (name, ticket) => db.write(() => void removePlace.run(sessionBytes(name), ticket)),
    renew: async (tokens) =>
      db.write(() => tokens.filter((token) => extend.run(db.clock.monotonicMs() + leaseMs, token).changes > 0)),
    release: async (name, token) => db.write(() => void remove.run(sessionBytes(name), token)),
    releaseAll: async (tokens) =>
      db.write(() => {
        for (const token of tokens) removeByToken.run(token)
      }),
  }
}
