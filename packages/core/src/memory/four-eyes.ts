import type { Caller } from '../ports/caller.ts'
import type { Approval, ApprovalBinding } from '../ports/ports.ts'

/** The name of an approver whose identity has no user. */
export const NOBODY = 'unknown'

/** Returns the makers of a caller's credentials, the nearest first: the maker of its key, then of the key behind that key. */
export function makersOf({ keyMadeBy, makerChain = [] }: Pick<Caller, 'keyMadeBy' | 'makerChain'>): readonly string[] {
  return [...new Set([...(keyMadeBy === undefined ? [] : [keyMadeBy]), ...makerChain])]
}

/** Returns the people behind a caller, other than its user, that an approval is bound to. */
export function behindOf(caller: Caller): Pick<ApprovalBinding, 'keyMadeBy' | 'behind'> {
  const { user, actor, keyMadeBy } = caller
  const others = new Set([...makersOf(caller), ...(actor === undefined ? [] : [actor])])
  if (keyMadeBy !== undefined) others.delete(keyMadeBy)
  if (user !== undefined) others.delete(user)
  return {
    ...(keyMadeBy !== undefined && { keyMadeBy }),
    ...(others.size > 0 && { behind: [...others].toSorted() }),
  }
}

/**
 * Returns why a person may not approve as the other person. `undefined` if they may, or if no other person is needed.
 *
 * Compares the person and everyone behind their credential with the user who asked and everyone behind theirs.
 * People are compared by name alone.
 */
export function notOther(
  { user, keyMadeBy, behind = [], approver }: Pick<Approval, 'user' | 'keyMadeBy' | 'behind' | 'approver'>,
  person: Caller,
): string | undefined {
  if (approver?.by !== 'other') return undefined
  const { user: name = NOBODY } = person
  if (name === user || name === NOBODY) return 'Another person than the one who asked must approve this call.'
  const able = [name, ...makersOf(person)]
  const asked = new Set([user, keyMadeBy, ...behind])
  return able.some((one) => asked.has(one))
    ? 'Another person than the one who made the key of this call must approve it.'
    : undefined
}
