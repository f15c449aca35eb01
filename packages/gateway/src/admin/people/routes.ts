import type { Answer } from '../../heart/route.ts'
import type { Caller } from '@toolgate/core'
import type { KeyRow } from '../../model/key-row.ts'
import { personKey } from '../overview/caller-tally.ts'
import { turnEach } from '../../util/next-turn.ts'
import { createNamedCallers, maySeeListsOf, type NamedCallers } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { isOperator } from '../http/may.ts'
import { mayCallAs } from '../http/own-agent.ts'
import { parseQuery, shortText, wholeNumber } from '../http/request.ts'
import type { PeopleBody, PersonCaller, PersonRow } from '../../model/rows.ts'
import { type Counts, room as overview } from '../overview/routes.ts'

export const room: Room = {
  name: 'people',
  needs: [overview],
  open(heart, rooms) {
    const counts = rooms.ask(overview)
    if (!counts) return undefined
    const callers = createNamedCallers(() => heart.revisions.current.callers)
    return {
      routes: [{ method: 'GET', path: '/api/people', by: 'person', answer: peopleRoute(heart, callers, counts) }],
    }
  },
}

type PeopleHeart = Pick<Heart, 'gate' | 'clock' | 'door' | 'revisions' | 'servers'>

const MAX_LIMIT = 2000
/**
 * How long an answer may compute lists that nobody has requested since the last change. It is less if the answer has
 * already waited.
 */
const LISTS_MS = 100
const LISTS_AFTER_WAIT_MS = 30
/** The number of callers in one turn of the event loop. Creating a view takes about a millisecond. */
const CALLERS_A_TURN = 5

type Writable<Row> = { -readonly [Field in keyof Row]: Row[Field] }
type Person = Writable<Omit<PersonRow, 'callers'>> & { readonly callers: Writable<PersonCaller>[] }

/**
 * `GET /api/people?text=&tenant=&role=&limit=`: the people who can use the gateway, and those who used it in the last
 * week.
 */
export function peopleRoute(heart: PeopleHeart, callers: NamedCallers, { counted, costs }: Counts): Answer {
  return async ({ query, person }) => {
    const filters = { text: shortText, tenant: shortText, role: shortText, limit: wholeNumber(1, MAX_LIMIT) }
    const { limit = MAX_LIMIT, ...filter } = parseQuery(query, filters)
    const { callers: seen, isComplete, countedTo } = await counted.readCallers(person.tenant)
    const people = new Map<string, Person>()
    const of = (one: Caller, name = one.user ?? one.agent ?? 'anonymous'): Person => personOf(people, one, name)
    of(person).isSelf = true
    const named = callers(person)
    for (const { name, for: use, caller } of named.values()) {
      const mayCall = mayCallAs(heart, { person, caller }) && { mayCall: true as const }
      of(caller).callers.push({ as: name, for: use, roles: caller.roles ?? [], ...mayCall })
    }
    if (isOperator(person)) for (const key of heart.door.keys.list()) addKey(of(key), key)
    for (const { user, tenant, roles, client, lastAt, calls, refused } of seen.values()) {
      const row = of({ user, ...(tenant !== undefined && { tenant }) })
      Object.assign(row, { calls, refused, lastCallAt: lastAt, ...(client !== undefined && { client }) })
      if (row.callers.length === 0 && roles) row.seenRoles = roles
    }
    const all = [...people.values()]
    for (const row of all) addConnections(row, person, heart)
    const shown = all.filter((row) => matches(row, filter))
    shown.sort((a, b) => compare(a.name, b.name) || compare(a.tenant, b.tenant))
    const page = shown.slice(0, limit)
    const maxMs = isComplete ? LISTS_MS : LISTS_AFTER_WAIT_MS
    const hasLists = await addLists(page, { heart, named, costs, maxMs })
    return {
      people: page,
      total: shown.length,
      tenants: distinct(all.map(({ tenant }) => tenant)),
      roles: distinct(all.flatMap(rolesOf)),
      isComplete: isComplete && hasLists,
      ...(countedTo !== undefined && { countedTo }),
    } satisfies PeopleBody
  }
}

function personOf(people: Map<string, Person>, { user, tenant }: Caller, name: string): Person {
  const key = user === undefined ? `no user: ${personKey({ user: name, tenant })}` : personKey({ user, tenant })
  const known = people.get(key)
  if (known) return known
  const row = {
    name,
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    callers: [],
    calls: 0,
    refused: 0,
  }
  people.set(key, row)
  return row
}

function addKey(row: Person, { lastUsedAt, expiresAt, isExpired, isOrphan }: KeyRow): void {
  const keys = row.keys ?? { count: 0, unusable: 0 }
  const soonest = isExpired ? keys.expiresAt : least(keys.expiresAt, expiresAt)
  const latest = Math.max(keys.lastUsedAt ?? 0, lastUsedAt ?? 0)
  row.keys = {
    count: keys.count + 1,
    unusable: keys.unusable + Number(isExpired || isOrphan === true),
    ...(soonest !== undefined && { expiresAt: soonest }),
    ...(latest > 0 && { lastUsedAt: latest }),
  }
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}

/** Adds a user's connections, which only approvers and the user may see, as with their own lists. */
function addConnections(row: Person, person: Caller, { servers: { connections } }: PeopleHeart): void {
  if (row.user === undefined || !maySeeListsOf(person, row)) return
  const rows = connections.rowsOf(row)
  if (rows.length === 0) return
  row.connections = { wanted: rows.length, connected: rows.filter(({ connection }) => connection).length }
}

interface ListsAsked extends Pick<Counts, 'costs'> {
  readonly heart: PeopleHeart
  readonly named: ReturnType<NamedCallers>
  readonly maxMs: number
}

/** Adds the lists of agents and their costs, as far as there is time. Returns whether all were added. */
async function addLists(page: readonly Person[], { heart, named, costs, maxMs }: ListsAsked): Promise<boolean> {
  const until = heart.clock.monotonicMs() + maxMs
  const pace = turnEach(CALLERS_A_TURN)
  for (const row of page)
    for (const one of row.callers) {
      const caller = named.get(one.as)?.caller
      if (one.for !== 'mcp' || !caller) continue
      if (heart.clock.monotonicMs() > until) return false
      await pace()
      const view = await heart.gate.view(caller)
      one.visible = view.size
      one.tokens = costs.tokensOf(view)
    }
  return true
}

function matches(row: PersonRow, { text, tenant, role }: Readonly<Partial<Record<string, string>>>): boolean {
  if ((tenant !== undefined && row.tenant !== tenant) || (role !== undefined && !rolesOf(row).includes(role)))
    return false
  if (text === undefined) return true
  const asked = text.toLowerCase()
  return [row.name, row.tenant, row.client, ...rolesOf(row)].some((one) => one?.toLowerCase().includes(asked))
}

function rolesOf({ callers, seenRoles = [] }: PersonRow): readonly string[] {
  return [...callers.flatMap(({ roles }) => roles), ...seenRoles]
}

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts)].filter((text) => text !== undefined).toSorted()
}

function compare(a = '', b = ''): number {
  return a < b ? -1 : Number(a > b)
}
