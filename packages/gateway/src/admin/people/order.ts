import type { PersonOrder, PersonRow } from '../../model/people.ts'

/** What each order compares: the person with the largest number comes first. */
const SORTED_BY: Readonly<Record<PersonOrder, (row: PersonRow) => number>> = {
  lastCall: ({ lastCallAt = 0 }) => lastCallAt,
  lastSeen: ({ lastCallAt = 0, lastSeenAt = 0 }) => Math.max(lastCallAt, lastSeenAt),
  calls: ({ calls }) => calls,
  tokens: ({ callers, tokens = 0 }) => callers.reduce((most, one) => Math.max(most, one.tokens ?? 0), tokens),
  expiry: ({ keys }) => -(keys?.expiresAt ?? Number.MAX_VALUE),
}

export const PERSON_ORDERS = Object.keys(SORTED_BY) as readonly PersonOrder[]

/** Returns people in an order. Equal people are sorted by name, tenant and issuer. */
export function inOrder<Row extends PersonRow>(people: readonly Row[], order: PersonOrder | undefined): readonly Row[] {
  const byName = people.toSorted(
    (a, b) => compare(a.name, b.name) || compare(a.tenant, b.tenant) || compare(a.issuer, b.issuer),
  )
  if (order === undefined) return byName
  const of = SORTED_BY[order]
  return byName
    .map((row) => ({ row, at: of(row) }))
    .toSorted((a, b) => b.at - a.at)
    .map(({ row }) => row)
}

function compare(a = '', b = ''): number {
  return a < b ? -1 : Number(a > b)
}
