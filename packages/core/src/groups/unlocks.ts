import { type Caller, callerParts } from '../caller.ts'
import type { Revision } from '../util/revision.ts'
import { createShares } from '../util/shares.ts'

/** Which groups each session has opened. */
export interface Unlocks {
  /** The groups open for a caller's session: the same object until that changes. */
  openFor(caller: Caller): ReadonlySet<string>
  open(caller: Caller, groups: readonly string[]): void
  /** Locks everything again for a session that has ended. */
  forget(caller: Caller): void
}

const NOTHING: ReadonlySet<string> = new Set()
/** Of one user of one tenant: nobody can have another's sessions forgotten by opening many. */
const MAX_SESSIONS_OF_USER = 1000
/** The sessions that opened something longest ago are forgotten first, which locks. */
const MAX_SESSIONS = 100_000

/**
 * Returns unlocks that live in this process. A session is the host's own, within its tenant and user.
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

  /** What is over the share of its user goes first; over that of all, what is of the user who has most. */
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
    open(caller, groups) {
      const key = sessionKey(caller)
      if (key === undefined || groups.length === 0) return
      const before = bySession.get(key) ?? NOTHING
      if (groups.every((group) => before.has(group))) return
      bySession.set(key, new Set([...before, ...groups]))
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

/** Asked in every decision, and callers are the same objects as long as they are equal. */
const keys = new WeakMap<Caller, string>()

function sessionKey(caller: Caller): string | undefined {
  if (caller.session === undefined) return undefined
  let key = keys.get(caller)
  if (key === undefined) {
    const { tenant, user } = callerParts(caller)
    key = JSON.stringify([tenant ?? null, user ?? null, caller.session])
    // One that is not frozen may come to be another.
    if (Object.isFrozen(caller)) keys.set(caller, key)
  }
  return key
}
