import { nearestOf } from '@toolgate/values'
import type { CountedAudit } from '../overview/counted-audit.ts'
import { personKey } from '../overview/caller-tally.ts'

/** A user whom the gateway has seen. */
export interface KnownPerson {
  readonly user: string
  readonly tenant: string | undefined
}

/**
 * Returns the users who have a key, whom the gateway has seen, or who made calls in the last week; of one tenant, or of all for
 * `undefined`.
 *
 * `signedIn`: the users of the configuration, the users with keys, and those whom the gateway has seen. `counted` is absent if calls
 * are not counted. Then no user is known by their calls.
 */
export async function knownPeople(
  signedIn: Iterable<{ readonly user?: string | undefined; readonly tenant?: string | undefined }>,
  counted: Pick<CountedAudit, 'readCallers'> | undefined,
  tenant: string | undefined,
): Promise<readonly KnownPerson[]> {
  const known = new Map<string, KnownPerson>()
  const add = (user: string | undefined, of: string | undefined) => {
    if (user !== undefined && (tenant === undefined || of === tenant))
      known.set(personKey({ user, tenant: of }), { user, tenant: of })
  }
  for (const caller of signedIn) add(caller.user, caller.tenant)
  // An unreadable audit must not prevent a halt.
  const called = await counted?.readCallers(tenant).catch(() => undefined)
  for (const one of called?.callers.values() ?? []) add(one.user, one.tenant)
  return [...known.values()]
}

const MAX_NEAREST = 3

/** Returns up to 3 of the names, those nearest to the text first. */
export function nearestFew(asked: string, names: Iterable<string>): readonly string[] {
  const left = new Set(names)
  const found: string[] = []
  while (found.length < MAX_NEAREST) {
    const near = nearestOf(asked, left)
    if (near === undefined) break
    found.push(near)
    left.delete(near)
  }
  return found
}
