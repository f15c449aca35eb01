import type { HaltRow, PeopleBody, PersonOrder, PersonRow } from './wire.ts'

/** The person that a row or a record is about. */
export interface Who {
  readonly user?: string | undefined
  readonly tenant?: string | undefined
}

/** The id of the logged-in person in addresses. No `personId` ends like this. */
export const OWN = 'me/'

/**
 * Returns a person's id in addresses: `vera`, `acme/vera`, or `acme/vera/https%3A%2F%2Fid.example` for a person who signs
 * in there.
 */
export function personId({ name, tenant, issuer }: Pick<PersonRow, 'name' | 'tenant' | 'issuer'>): string {
  const parts = issuer !== undefined ? [tenant ?? '', name, issuer] : tenant !== undefined ? [tenant, name] : [name]
  return parts.map(encodeURIComponent).join('/')
}

/** Returns the parts of a `personId`. */
export function parsePersonId(id: string): Pick<PersonRow, 'name' | 'tenant' | 'issuer'> {
  const parts = id.split('/').map(decodeURIComponent)
  const [tenant = '', name = '', issuer] = parts.length === 1 ? ['', ...parts] : parts
  return { name, ...(tenant !== '' && { tenant }), ...(issuer !== undefined && { issuer }) }
}

/** Returns the halts that stop all calls of a person: halts of the person, of their tenant, or of everything. */
export function haltsOn(person: Who, halts: readonly HaltRow[]): readonly HaltRow[] {
  return halts.filter(({ target: { all, user, tenant, tool, session } }) => {
    if (all) return true
    if ((user ?? tenant) === undefined && (tool ?? session) !== undefined) return false
    return (user === undefined || user === person.user) && (tenant === undefined || tenant === person.tenant)
  })
}

/** Returns the number of rows about each person, by `whoKey`. */
export function countByPerson(rows: readonly Who[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(whoKey(row), (counts.get(whoKey(row)) ?? 0) + 1)
  return counts
}

export function whoKey({ user, tenant }: Who): string {
  return JSON.stringify([tenant ?? null, user ?? null])
}

/** Returns all roles of a person, from their keys and their latest call. */
export function rolesOf({ callers, seenRoles = [] }: Pick<PersonRow, 'callers' | 'seenRoles'>): readonly string[] {
  return [...new Set([...callers.flatMap(({ roles }) => roles), ...seenRoles])].toSorted()
}

/** The size of a list of tools. */
type ListSize = Pick<PersonRow, 'visible' | 'tokens'>

/** Returns the tool list of the agent that sees the most tools, or of a person who signed in. */
export function largestList({ callers, ...own }: Pick<PersonRow, 'callers'> & ListSize): ListSize | undefined {
  if (callers.length === 0 && own.visible !== undefined) return own
  return callers.filter(({ visible }) => visible !== undefined).toSorted((a, b) => (b.tokens ?? 0) - (a.tokens ?? 0))[0]
}

/** Returns when a person was last seen: their latest call, token or login. */
export function lastSeenOf({ lastCallAt = 0, lastSeenAt = 0 }: PersonRow): number | undefined {
  return Math.max(lastCallAt, lastSeenAt) || undefined
}

/** The orders of people, besides by name, as the page and `GET /api/people` name them. */
const ORDERS: ReadonlyMap<string, PersonOrder> = new Map<string, PersonOrder>([
  ['latest call', 'lastCall'],
  ['last seen', 'lastSeen'],
  ['most calls', 'calls'],
  ['most tokens', 'tokens'],
  ['next expiry', 'expiry'],
])

export const ORDER_NAMES: readonly string[] = [...ORDERS.keys()]

/** Returns the `order` of `GET /api/people` for the name of an order. By name: `undefined`. */
export function orderOf(name: string): PersonOrder | undefined {
  return ORDERS.get(name)
}

/** Returns the people of several pages. A person who moved to a later page between two requests is in both: once here. */
export function joinPages(pages: readonly Pick<PeopleBody, 'people'>[]): readonly PersonRow[] {
  return [...new Map(pages.flatMap(({ people }) => people.map((row) => [personId(row), row] as const))).values()]
}

/** The number of columns of the matrix: at least so many, and more on a wide window. */
const [MIN_COLUMNS, MAX_COLUMNS] = [8, 24]
/** The widths of the first column with its margins, and of the others, in pixels. */
const [HEAD_PX, COLUMN_PX] = [400, 150]

/** Returns the parameters of `GET /api/matrix` for the choices in the address. */
export function matrixQuery(of: (name: string) => string) {
  const limit = Math.max(MIN_COLUMNS, Math.min(MAX_COLUMNS, Math.floor((innerWidth - HEAD_PX) / COLUMN_PX)))
  const from = Math.max(0, Math.floor(Number(of('from'))) || 0)
  return { from, limit, open: of('open'), text: of('text'), tenant: of('tenant'), role: of('role') }
}
