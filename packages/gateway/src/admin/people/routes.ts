import type { Answer } from '../../heart/route.ts'
import type { Caller } from '@toolgate/core'
import type { KeyRow } from '../../model/key-row.ts'
import { personKey } from '../overview/caller-tally.ts'
import { turnEach } from '../../util/next-turn.ts'
import type { SeenPerson } from '@toolgate/core/stores'
import { KEY_ISSUER } from '../../auth/people.ts'
import { createNamedCallers, maySee, maySeeListsOf, type NamedCallers, type NamedPerson } from '../http/callers.ts'
import { createRightsKey } from '../http/rights.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { isOperator } from '../http/may.ts'
import { mayCallAs } from '../http/own-agent.ts'
import { oneOf, parseQuery, shortText, wholeNumber } from '../http/request.ts'
import type { PeopleBody, PersonCaller, PersonRow } from '../../model/rows.ts'
import { forgetRoute } from './forget.ts'
import { inOrder, PERSON_ORDERS } from './order.ts'
import { type Counts, room as overview } from '../overview/routes.ts'

export const room: Room = {
  name: 'people',
  needs: [overview],
  open(heart, rooms) {
    const counts = rooms.ask(overview)
    if (!counts) return undefined
    const callers = createNamedCallers(() => heart.revisions.current.callers, heart.door.people)
    return {
      routes: [
        { method: 'GET', path: '/api/people', by: 'person', answer: peopleRoute(heart, callers, counts) },
        { method: 'DELETE', path: '/api/people', by: 'person', answer: forgetRoute(heart) },
      ],
    }
  },
}

type PeopleHeart = Pick<Heart, 'gate' | 'clock' | 'door' | 'revisions' | 'servers'>

const MAX_LIMIT = 2000
const ANY_PLACE = wholeNumber(0, Number.MAX_SAFE_INTEGER)
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
 * `GET /api/people?text=&tenant=&role=&order=&from=&limit=`: the people who can use the gateway, whom it has seen, and who
 * used it in the last week.
 */
export function peopleRoute(heart: PeopleHeart, callers: NamedCallers, { counted, costs }: Counts): Answer {
  return async ({ query, person }) => {
    const filters = {
      text: shortText,
      tenant: shortText,
      role: shortText,
      order: oneOf(PERSON_ORDERS),
      from: ANY_PLACE,
      limit: wholeNumber(1, MAX_LIMIT),
    }
    const { from = 0, limit = MAX_LIMIT, order, ...filter } = parseQuery(query, filters)
    const { callers: called, isComplete, countedTo } = await counted.readCallers(person.tenant)
    const people = new PersonRows()
    const named = callers(person)
    for (const { name, for: use, caller } of named.values()) {
      const mayCall = mayCallAs(heart, { person, caller }) && { mayCall: true as const }
      people.configured(caller).callers.push({ as: name, for: use, roles: caller.roles ?? [], ...mayCall })
    }
    for (const one of callers.signedIn(person)) people.addSignedIn(one)
    for (const seen of heart.door.people.list())
      if (seen.issuer === KEY_ISSUER && maySee(person, seen)) Object.assign(people.of(seen), toSeen(seen))
    people.of(person).isSelf = true
    if (isOperator(person)) for (const key of heart.door.keys.list()) addKey(people.of(key), key)
    for (const { user, tenant, roles, client, lastAt, calls, refused } of called.values()) {
      const row = people.of({ user, ...(tenant !== undefined && { tenant }) })
      Object.assign(row, { calls, refused, lastCallAt: lastAt, ...(client !== undefined && { client }) })
      if (row.callers.length === 0 && row.as === undefined && roles) row.seenRoles = roles
    }
    const { all } = people
    const shown = all.filter((row) => matches(row, filter))
    const maxMs = isComplete ? LISTS_MS : LISTS_AFTER_WAIT_MS
    const asked = { heart, named, signedIn: people.signedIn, costs, maxMs }
    // The largest list may be anybody's, so this order needs everybody's.
    const hasAllLists = order === 'tokens' && (await addLists(shown, asked))
    const page = inOrder(shown, order).slice(from, from + limit)
    for (const row of page) addConnections(row, person, heart)
    const hasLists = order === 'tokens' ? hasAllLists : await addLists(page, asked)
    const since = all.reduce((first, { firstSeenAt = Infinity }) => Math.min(first, firstSeenAt), Infinity)
    return {
      people: page,
      total: shown.length,
      from,
      ...(since < Infinity && { since }),
      tenants: distinct(all.map(({ tenant }) => tenant)),
      roles: distinct(all.flatMap(rolesOf)),
      isComplete: isComplete && hasLists,
      ...(countedTo !== undefined && { countedTo }),
    } satisfies PeopleBody
  }
}

/** The rows of one answer. */
class PersonRows {
  /** The people who signed in, by their row. */
  readonly signedIn = new Map<Person, NamedPerson>()
  readonly #rows = new Map<string, Person>()
  /** For each user of a tenant, the row of the issuer from which they came last. */
  readonly #ofUser = new Map<string, Person>()

  get all(): Person[] {
    return [...this.#rows.values(), ...this.signedIn.keys()]
  }

  /** Returns the row of a user without an issuer. */
  configured({ user, agent, tenant }: Caller): Person {
    const name = user ?? agent ?? 'anonymous'
    const key = user === undefined ? `no user: ${personKey({ user: name, tenant })}` : personKey({ user, tenant })
    const known = this.#rows.get(key)
    if (known) return known
    const row = newRow({ name, user, tenant })
    this.#rows.set(key, row)
    return row
  }

  /** People of two issuers have two rows. */
  addSignedIn(one: NamedPerson): void {
    const { name: as, caller, rolesFrom, seen } = one
    const { user, tenant, issuer } = seen
    const row = newRow({ name: user, user, tenant })
    Object.assign(row, { as, seenRoles: caller.roles ?? [], rolesFrom, issuer, ...toSeen(seen) })
    this.signedIn.set(row, one)
    const key = personKey({ user, tenant })
    const { lastSeenAt = 0 } = this.#ofUser.get(key) ?? {}
    if (seen.lastSeenAt >= lastSeenAt) this.#ofUser.set(key, row)
  }

  /** Returns the row of a user for data that name no issuer. */
  of(one: Caller): Person {
    const key = one.user === undefined ? undefined : personKey({ user: one.user, tenant: one.tenant })
    const known = key === undefined || this.#rows.has(key) ? undefined : this.#ofUser.get(key)
    return known ?? this.configured(one)
  }
}

function newRow({ name, user, tenant }: Pick<PersonRow, 'name'> & Pick<Caller, 'user' | 'tenant'>): Person {
  return {
    name,
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    callers: [],
    calls: 0,
    refused: 0,
  }
}

function toSeen({ by, label, firstSeenAt, lastSeenAt, clients }: SeenPerson): Partial<PersonRow> {
  const named = label !== undefined && { label }
  return { ...named, cameBy: by, firstSeenAt, lastSeenAt, ...(clients.length > 0 && { clients }) }
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
  readonly signedIn: ReadonlyMap<Person, NamedPerson>
  readonly maxMs: number
}

/**
 * Adds the lists of agents and their costs, as far as there is time. A list is made once for all callers with equal
 * rights. Returns whether all were added.
 */
async function addLists(
  page: readonly Person[],
  { heart, named, signedIn, costs, maxMs }: ListsAsked,
): Promise<boolean> {
  const until = heart.clock.monotonicMs() + maxMs
  const pace = turnEach(CALLERS_A_TURN)
  const keyOf = await createRightsKey(heart)
  const lists = new Map<string, { readonly visible: number; readonly tokens: number }>()
  const listOf = async (caller: Caller) => {
    const key = keyOf(caller)
    const known = lists.get(key)
    if (known || heart.clock.monotonicMs() > until) return known
    await pace()
    const view = await heart.gate.view(caller)
    const list = { visible: view.size, tokens: costs.tokensOf(view) }
    lists.set(key, list)
    return list
  }
  let isComplete = true
  for (const row of page) {
    const person = signedIn.get(row)
    const agents = row.callers.flatMap((one) => {
      const caller = one.for === 'mcp' ? named.get(one.as)?.caller : undefined
      return caller ? [{ row: one, caller }] : []
    })
    for (const { row: target, caller } of person ? [{ row, caller: person.caller }, ...agents] : agents) {
      const list = await listOf(caller)
      if (list) Object.assign(target, list)
      else isComplete = false
    }
  }
  return isComplete
}

function matches(row: PersonRow, { text, tenant, role }: Readonly<Partial<Record<string, string>>>): boolean {
  if ((tenant !== undefined && row.tenant !== tenant) || (role !== undefined && !rolesOf(row).includes(role)))
    return false
  if (text === undefined) return true
  const asked = text.toLowerCase()
  return [row.name, row.label, row.tenant, row.client, ...(row.clients ?? []), ...rolesOf(row)].some((one) =>
    one?.toLowerCase().includes(asked),
  )
}

function rolesOf({ callers, seenRoles = [] }: PersonRow): readonly string[] {
  return [...callers.flatMap(({ roles }) => roles), ...seenRoles]
}

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts)].filter((text) => text !== undefined).toSorted()
}
