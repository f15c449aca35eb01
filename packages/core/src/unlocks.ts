import { type Caller, callerParts } from './caller.ts'

/** Which groups each session has opened. */
export interface Unlocks {
  /** Grows when something was locked again: what was decided before holds no more. */
  readonly revision: number
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

/** Gives unlocks that live in this process. A session is the host's own, within its tenant and user. */
export function createUnlocks(): Unlocks {
  const bySession = new Map<string, ReadonlySet<string>>()
  /** The sessions of each user that has some, in the order in which they opened something. */
  const byUser = new Map<string, Set<string>>()
  let revision = 1

  function drop(user: string, session: string): void {
    bySession.delete(session)
    const sessions = byUser.get(user)
    sessions?.delete(session)
    if (sessions?.size === 0) byUser.delete(user)
    revision++
  }

  /** What is over the share of its user goes first; over that of all, what is of the user who has most. */
  function makeRoom(user: string): void {
    const own = byUser.get(user)
    if (own && own.size > MAX_SESSIONS_OF_USER) drop(user, firstOf(own))
    if (bySession.size <= MAX_SESSIONS) return
    const [most, sessions] = [...byUser].reduce((a, b) => (b[1].size > a[1].size ? b : a))
    drop(most, firstOf(sessions))
  }

  return {
    get revision() {
      return revision
    },
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
      const sessions = byUser.get(user) ?? new Set()
      byUser.set(user, sessions)
      sessions.delete(key)
      sessions.add(key)
      makeRoom(user)
    },
    forget(caller) {
      const key = sessionKey(caller)
      if (key !== undefined && bySession.has(key)) drop(userKey(caller), key)
    },
  }
}

function firstOf(sessions: ReadonlySet<string>): string {
  return sessions.values().next().value as string
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
