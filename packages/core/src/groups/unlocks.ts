import { type Caller, callerParts } from '../ports/caller.ts'
import { createShares, type Revision } from '@toolgate/values'

/** The groups, and the single tools of groups, that each session has opened. */
export interface Unlocks {
  /**
   * Returns the groups that are open for a caller's session, and the `openToolOf` names of single tools; the same object
   * until that changes.
   */
  openFor(caller: Caller): ReadonlySet<string>
  open(caller: Caller, names: readonly string[]): void
  /** Locks all groups again, for a session that has ended. */
  forget(caller: Caller): void
}

const NOTHING: ReadonlySet<string> = new Set()
/** The maximum number of sessions of one user, so that a user with many sessions cannot displace others. */
const MAX_SESSIONS_OF_USER = 1000
/** The sessions that opened a group longest ago are dropped first, which locks their groups. */
const MAX_SESSIONS = 100_000

/**
 * Returns unlocks that live in this process. A session belongs to its tenant and user.
 *
 * Locking again bumps `changes`. Opening does not: it shows in `openFor`, for its session only.
 */
export function createUnlocks({
  changes,
  maxOfUser = MAX_SESSIONS_OF_USER,
  max = MAX_SESSIONS,
}: {
  readonly changes: Revision
  readonly maxOfUser?: number
  readonly max?: number
}): Unlocks {
  const bySession = new Map<string, ReadonlySet<string>>()
  const byUser = createShares<string>()

  function drop(user: string, session: string): void {
    bySession.delete(session)
    byUser.delete(user, session)
    changes.bump()
  }

  /** Drops sessions above the limit of their user first; above the total limit, those of the user who has most. */
  function makeRoom(user: string): void {
    if (byUser.sizeOf(user) > maxOfUser) dropOldestOf(user)
    if (bySession.size > max) dropOldestOf(byUser.largest())
  }

  function dropOldestOf(user: string | undefined): void {
    const session = user === undefined ? undefined : byUser.oldestOf(user)
    if (user !== undefined && session !== undefined) drop(user, session)
  }

  return {
    openFor(caller) {
      const key = sessionKey(caller)
      return (key !== undefined && bySession.get(key)) || NOTHING
    },
    open(caller, names) {
      const key = sessionKey(caller)
      if (key === undefined || names.length === 0) return
      const before = bySession.get(key) ?? NOTHING
      if (names.every((name) => before.has(name))) return
      bySession.set(key, new Set([...before, ...names]))
      const user = userKey(caller)
      byUser.delete(user, key)
      byUser.add(user, key)
      makeRoom(user)
    },
    forget(caller) {
      const key = sessionKey(caller)
      if (key !== undefined && bySession.has(key)) drop(userKey(caller), key)
    },
  }
}

function userKey(caller: Caller): string {
  const { tenant, user } = callerParts(caller)
  return JSON.stringify([tenant ?? null, user ?? null])
}

/** Cached, because every decision needs it. Equal callers are the same object. */
const keys = new WeakMap<Caller, string>()

function sessionKey(caller: Caller): string | undefined {
  if (caller.session === undefined) return undefined
  let key = keys.get(caller)
  if (key === undefined) {
    const { tenant, user } = callerParts(caller)
    key = JSON.stringify([tenant ?? null, user ?? null, caller.session])
    // A caller that is not frozen may change.
    if (Object.isFrozen(caller)) keys.set(caller, key)
  }
  return key
}
