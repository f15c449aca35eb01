import type { Clock } from '@toolgate/core/stores'
import {
  LEASE_MS,
  type LeasedLock,
  leasedLock,
  type LeasedLockOptions,
  type Leases,
  PLACE_MS,
  sessionBytes,
} from '../leased-lock.ts'
import { numberIn } from '../rows.ts'
import { type PostgresDatabase, SERVER_MS, statement } from './database.ts'

/** Returns a lock for the sessions of all replicas. A waiting request uses no connection. */
export function lockIn(db: PostgresDatabase, clock: Clock | undefined, options: LeasedLockOptions = {}): LeasedLock {
  return leasedLock(leasesIn(db, clock, options.leaseMs ?? LEASE_MS), options)
}

function leasesIn(db: PostgresDatabase, clock: Clock | undefined, leaseMs: number): Leases {
  const leases = `${db.schema}.leases`
  const ask = statement(`SELECT token, ticket FROM ${db.schema}.ask_lease($1, $2, $3, $4, $5)`)
  const leave = statement(`DELETE FROM ${db.schema}.lease_waiters WHERE session = $1 AND ticket = $2`)
  const renew = statement(
    `UPDATE ${leases} SET expires_at = ${SERVER_MS} + $2 WHERE token = ANY ($3::bigint[]) RETURNING token`,
  )
  const release = statement(`DELETE FROM ${leases} WHERE token = ANY ($1::bigint[])`)
  const nowMs = (): number | null => clock?.wallMs() ?? null

  return {
    async ask(session, ticket) {
      const [row = {}] = await db.query(ask, [nowMs(), sessionBytes(session), ticket ?? null, leaseMs, PLACE_MS])
      return row['token'] === null ? { ticket: numberIn(row, 'ticket') } : { token: numberIn(row, 'token') }
    },
    async leave(session, ticket) {
      await db.query(leave, [sessionBytes(session), ticket])
    },
    async renew(tokens) {
      const rows = await db.query(renew, [nowMs(), leaseMs, tokens])
      return rows.map((row) => numberIn(row, 'token'))
    },
    async release(_session, token) {
      await db.query(release, [[token]])
    },
    async releaseAll(tokens) {
      await db.query(release, [tokens])
    },
  }
}
