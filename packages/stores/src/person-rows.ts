import { createHash } from 'node:crypto'
import { type SeenPerson, toPersonKey } from '@toolgate/core/stores'
import { readOwnJson } from '@toolgate/values/json'
import { numberIn, type Row, textIn } from './rows.ts'

/** How far back a read of changes reaches before its time, for notes that were still being written then. */
export const OVERLAP_MS = 10_000

/** Returns the columns that identify a person. They are hashes, since names may be longer than an index allows. */
export function toKeys(person: Pick<SeenPerson, 'issuer' | 'tenant' | 'user'>): {
  readonly id: string
  readonly who: string
} {
  return { id: digest(toPersonKey(person)), who: toWho(person) }
}

/** Returns the column of a user and a tenant. */
export function toWho({ tenant, user }: { readonly tenant?: string | undefined; readonly user: string }): string {
  return digest(JSON.stringify([tenant ?? null, user]))
}

/** Returns the text of a person without the times, which have columns of their own. */
export function toRecord({ firstSeenAt: _, lastSeenAt: __, ...person }: SeenPerson): string {
  return JSON.stringify(person)
}

export function toPerson(row: Row): SeenPerson {
  const person = readOwnJson(textIn(row, 'record')) as Omit<SeenPerson, 'firstSeenAt' | 'lastSeenAt'>
  return { ...person, firstSeenAt: numberIn(row, 'first_seen_at'), lastSeenAt: numberIn(row, 'last_seen_at') }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
