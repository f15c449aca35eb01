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
/** Sessions that did nothing for longest are forgotten first, which locks. */
const MAX_SESSIONS = 100_000

/** Gives unlocks that live in this process. A session is the host's own, within its tenant and user. */
export function createUnlocks(): Unlocks {
  const bySession = new Map<string, ReadonlySet<string>>()
  let revision = 1
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
      bySession.delete(key)
      bySession.set(key, new Set([...before, ...groups]))
      if (bySession.size > MAX_SESSIONS) {
        bySession.delete(bySession.keys().next().value as string)
        revision++
      }
    },
    forget(caller) {
      const key = sessionKey(caller)
      if (key !== undefined && bySession.delete(key)) revision++
    },
  }
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
