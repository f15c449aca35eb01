import type { KeysBody, NewKeyRequestBody, SessionBody } from './wire.ts'

export type KeyRow = KeysBody['keys'][number]

/** Returns whether a person may see, create and revoke keys. The gateway decides; this only hides the page. */
export function mayManageKeys({ roles, tenant }: Pick<SessionBody, 'roles' | 'tenant'>): boolean {
  return tenant === undefined && roles.some((role) => role === 'operator' || role === 'approver')
}

const USES: Readonly<Record<KeyRow['for'], string>> = { mcp: 'agent', console: 'person', host: 'program' }

export function wordOfUse({ for: use }: Pick<KeyRow, 'for'>): string {
  return USES[use]
}

/** Returns a user's name: `vera`, or `vera of acme`. */
export function wordsOfUser({ user, tenant }: Pick<KeyRow, 'user' | 'tenant'>): string {
  return tenant === undefined ? (user ?? 'nobody') : `${user ?? 'nobody'} of ${tenant}`
}

/** Returns the keys that have every word in their id, user, tenant, use or roles. */
export function findKeys(keys: readonly KeyRow[], text: string): readonly KeyRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return keys
  return keys.filter((row) => {
    const own = [row.id, wordsOfUser(row), wordOfUse(row), ...(row.roles ?? [])].join('\n').toLowerCase()
    return words.every((word) => own.includes(word))
  })
}

/** A user for whom a key can be created, and the key's rights. */
interface KeyChoice {
  readonly text: string
  readonly asked: Pick<NewKeyRequestBody, 'for' | 'user' | 'tenant' | 'like'>
}

/**
 * Returns the choices of a person: each user and use in the file once, or once per key if their rights differ. A person
 * can create console keys only for themselves.
 */
export function toChoices(keys: readonly KeyRow[], self: string): readonly KeyChoice[] {
  const ofFile = keys.filter(({ from, for: use, user, tenant }) => {
    const isOwn = user === self && tenant === undefined
    return from === 'file' && user !== undefined && (use !== 'console' || isOwn)
  })
  const byUser = Map.groupBy(ofFile, (row) => JSON.stringify([row.for, row.user, row.tenant]))
  return [...byUser.values()].flatMap((rows): readonly KeyChoice[] => {
    const differ = new Set(rows.map(({ roles = [] }) => roles.toSorted().join())).size > 1
    return (differ ? rows : rows.slice(0, 1)).map((row) => {
      const { id, for: use, user = '', tenant, roles = [] } = row
      const like = differ ? ` like ${id} (${roles.join(', ') || 'no roles'})` : ''
      return {
        text: `${wordsOfUser(row)}, ${wordOfUse(row)}${like}`,
        asked: { for: use, user, ...(tenant === undefined ? {} : { tenant }), ...(differ ? { like: id } : {}) },
      }
    })
  })
}

const DAY_MS = 86_400_000

/** The lifetimes of a new key. */
export const LIVES = [
  { text: '30 days', ms: 30 * DAY_MS },
  { text: '90 days', ms: 90 * DAY_MS },
  { text: 'a year', ms: 365 * DAY_MS },
  { text: 'until it is revoked', ms: undefined },
] as const
