import type { Caller } from '../ports/caller.ts'
import type { Approval, ApprovalBinding, ApprovalVote } from '../ports/ports.ts'

/** The name of an approver whose identity has no user. */
export const NOBODY = 'unknown'

/** Returns the makers of a caller's credentials, the nearest first: the maker of its key, then of the key behind that key. */
export function makersOf({ keyMadeBy, makerChain = [] }: Pick<Caller, 'keyMadeBy' | 'makerChain'>): readonly string[] {
  return [...new Set([...(keyMadeBy === undefined ? [] : [keyMadeBy]), ...makerChain])]
}

/** Returns the people behind a caller, other than its user, that an approval is bound to, and the user's other names. */
export function behindOf(caller: Caller): Pick<ApprovalBinding, 'keyMadeBy' | 'behind' | 'aliases'> {
  const { user, actor, keyMadeBy, aliases = [] } = caller
  const others = new Set([...makersOf(caller), ...(actor === undefined ? [] : [actor])])
  if (keyMadeBy !== undefined) others.delete(keyMadeBy)
  if (user !== undefined) others.delete(user)
  const names = new Set(aliases)
  if (user !== undefined) names.delete(user)
  return {
    ...(keyMadeBy !== undefined && { keyMadeBy }),
    ...(others.size > 0 && { behind: [...others].toSorted() }),
    ...(names.size > 0 && { aliases: [...names].toSorted() }),
  }
}

/** Returns everyone behind a person's credential, and the person's other names, without their user name. */
function namesBehind(person: Caller): readonly string[] {
  const names = new Set([...makersOf(person), ...(person.aliases ?? [])])
  if (person.user !== undefined) names.delete(person.user)
  return [...names].toSorted()
}

/** Returns a person as an approver, under all their names. */
export function voterOf(person: Caller): Pick<ApprovalVote, 'by' | 'behind'> {
  const behind = namesBehind(person)
  return { by: person.user ?? NOBODY, ...(behind.length > 0 && { behind }) }
}

/**
 * Returns why a person may not approve as the other person. `undefined` if they may, or if no other person is needed.
 *
 * Compares the person and everyone behind their credential with the user who asked and everyone behind theirs, under all
 * names that are known of them.
 */
export function notOther(
  { user, keyMadeBy, behind = [], aliases = [], approver }: NamedApproval,
  person: Caller,
): string | undefined {
  if (approver?.by !== 'other') return undefined
  const { user: name = NOBODY } = person
  if (name === user || name === NOBODY) return OTHER
  const asker = [user, ...aliases]
  const as = [name, ...(person.aliases ?? [])].find((one) => asker.includes(one))
  if (as !== undefined) return as === name ? OTHER : `${OTHER} You are also "${as}".`
  const asked = new Set([...asker, keyMadeBy, ...behind])
  return [name, ...namesBehind(person)].some((one) => asked.has(one))
    ? 'Another person than the one who made the key of this call must approve it.'
    : undefined
}

const OTHER = 'Another person than the one who asked must approve this call.'

type NamedApproval = Pick<Approval, 'user' | 'keyMadeBy' | 'behind' | 'aliases' | 'approver'>
