import type { Answer } from '../../heart/route.ts'
import { type Caller, ConfigError, type Gate, type Halt, type Tool, ToolgateError } from '@toolgate/core'
import type { parseGroups } from '@toolgate/core/groups'
import type { HaltRequest, HaltTarget } from '@toolgate/core/internal'
import { matchesSelector, parseSelector } from '@toolgate/core/toolset'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { room as overview } from '../overview/routes.ts'
import { ApiFault } from '../../model/faults.ts'
import { type KnownPerson, knownPeople, nearestFew } from './known-people.ts'
import { invalidBody, oneOf, parseQuery, readBody, textUpTo } from '../http/request.ts'
import type { HaltReach, HaltReachBody, HaltRow, HaltsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'halts',
  needs: [overview],
  open(heart, rooms) {
    const { door, revisions } = heart
    const signedIn = () => [
      ...revisions.current.callers.map(({ caller }) => caller),
      ...door.keys.list(),
      ...door.people.list(),
    ]
    const known: KnownPeople = (tenant) => knownPeople(signedIn(), rooms.ask(overview)?.counted, tenant)
    return {
      routes: [
        { method: 'GET', path: '/api/halts', by: 'person', answer: haltsRoute(heart, known) },
        { method: 'POST', path: '/api/halts', by: 'person', answer: haltRoute(heart, known) },
        { method: 'GET', path: '/api/halts/reach', by: 'person', answer: haltReachRoute(heart, known) },
        { method: 'DELETE', path: '/api/halts/:id', by: 'person', answer: releaseRoute(heart, known) },
      ],
    }
  },
}

type HaltHeart = Pick<Heart, 'gate' | 'catalog' | 'replica' | 'redact'>

const TARGETS = ['user', 'session', 'tool', 'tenant'] as const
const FIELDS = [...TARGETS, 'all', 'reason']
/** A header holds no longer name, so whoever was seen can be halted. */
const MAX_TARGET_LENGTH = 8192
/** Longer names do not fit into the query of a preview. They can be halted all the same. */
const targetText = textUpTo(1024)
const ASKED = {
  user: targetText,
  session: targetText,
  tool: targetText,
  tenant: targetText,
  all: oneOf(['true'] as const),
}

/** Returns the users whom the gateway knows, of one tenant or of all. */
type KnownPeople = (tenant: string | undefined) => Promise<readonly KnownPerson[]>

/** `GET /api/halts`: newest first. */
function haltsRoute(heart: HaltHeart, known: KnownPeople): Answer {
  const { gate } = heart
  return async ({ person, query }) => {
    parseQuery(query, {})
    const inForce = await readInForce(heart)
    const seen = gate.halts.filter((halt) => isWithin(person, halt)).toSorted((a, b) => b.at - a.at)
    const people = await peopleFor(
      seen.map(({ target }) => target),
      person,
      known,
    )
    return {
      halts: seen.map((halt) => ({ ...toRow(halt, person, people, heart), ...inForce(halt) })),
      mayHalt: mayHalt(person),
    } satisfies HaltsBody
  }
}

/** `GET /api/halts/reach?user=&session=&tool=&tenant=&all=true`: what a halt would stop, before it is set. */
function haltReachRoute(heart: HaltHeart, known: KnownPeople): Answer {
  return async ({ person, query }) => {
    const { all, ...asked } = parseQuery(query, ASKED)
    const { tenant } = nameOperator(person)
    const target = narrowTo(tenant, { ...asked, ...(all && { all: true }) })
    const people = await peopleFor([target], person, known)
    try {
      return { ...reachOf(target, people, heart), underWay: heart.gate.underWay(target) } satisfies HaltReachBody
    } catch (error) {
      throw error instanceof ConfigError ? new ApiFault('query_invalid', `${error.message}.`) : error
    }
  }
}

/**
 * `POST /api/halts`: the halt applies before the response.
 *
 * An unknown name is halted too: a mistaken halt can be released at once, but a rejected halt would stop nobody.
 */
function haltRoute(heart: HaltHeart, known: KnownPeople): Answer {
  const { gate } = heart
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, FIELDS)
    const { reason, ...asked } = parseHalt(body)
    const { user: by, tenant } = nameOperator(person)
    const target = narrowTo(tenant, asked)
    try {
      const standing = gate.halts.find((one) => isSameTarget(one.target, target))
      // A halt that the person may not release stays as it is, since replacing it would make them its owner.
      const halt =
        standing && !mayRelease(person, standing)
          ? standing
          : await gate.halt({ ...target, reason, by, byTenant: tenant })
      const people = await peopleFor([halt.target], person, known)
      return { ...toRow(halt, person, people, heart), ...(await readInForce(heart))(halt) }
    } catch (error) {
      throw toHaltFault(error)
    }
  }
}

/** `DELETE /api/halts/<id>` */
function releaseRoute(heart: HaltHeart, known: KnownPeople): Answer {
  const { gate } = heart
  return async ({ id, person, query }) => {
    parseQuery(query, {})
    const { user: by } = nameOperator(person)
    const halt = gate.halts.find((one) => one.id === id && isWithin(person, one))
    // A person of a tenant must not learn whether another tenant has this halt.
    if (!halt) throw new ToolgateError('halt_unknown', 'Nothing is halted under that id.')
    if (isOwnHalt(person, halt)) throw new ApiFault('halt_forbidden', HALTED_THEMSELVES)
    if (!mayRelease(person, halt)) throw new ApiFault('halt_forbidden', SET_FROM_ABOVE)
    try {
      const people = await peopleFor([halt.target], person, known)
      return toRow(await gate.release({ id, by }), person, people, heart)
    } catch (error) {
      if (error instanceof ToolgateError && error.code === 'state_unavailable')
        throw new ToolgateError(error.code, 'It is still halted: the state store did not take the release.', {
          cause: error,
        })
      throw error
    }
  }
}

/** Returns the replicas on which each halt applies. It works without the database, so that halts stay visible. */
async function readInForce({ replica }: HaltHeart): Promise<(halt: Halt) => Pick<HaltRow, 'inForce'>> {
  const inForce = await replica?.report.inForce().catch(() => undefined)
  return ({ at }) => (inForce ? { inForce: inForce(at) } : {})
}

const HALTED_THEMSELVES = 'You are halted by somebody else, and another person has to release it.'
const SET_FROM_ABOVE = 'A person without a tenant set this halt, and only such a person may release it.'

function parseHalt(body: ReadonlyMap<string, unknown>): HaltRequest {
  for (const field of TARGETS) {
    const value = body.get(field)
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.length > MAX_TARGET_LENGTH))
      throw invalidBody(`The field "${field}" must be a text of 1 to ${MAX_TARGET_LENGTH} characters.`)
  }
  // The gate checks the combination of fields, and the reason.
  return Object.fromEntries(body)
}

/** The roles that may create and release halts. */
const ROLES: ReadonlySet<string> = new Set(['approver', 'operator'])

function mayHalt({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.some((role) => ROLES.has(role))
}

function nameOperator(person: Caller): { user: string; tenant: string | undefined } {
  const { user, tenant } = person
  if (user !== undefined && mayHalt(person)) return { user, tenant }
  throw new ApiFault('halt_forbidden', 'Halting and releasing take a person with the role "operator" or "approver".')
}

/** Limits a halt to the person's own tenant, if they have one. `all` then means everybody in this tenant. */
function narrowTo(own: string | undefined, { all, ...asked }: HaltTarget): HaltTarget {
  if (own === undefined) return all === undefined ? asked : { ...asked, all }
  if (asked.tenant !== undefined && asked.tenant !== own)
    throw new ApiFault('halt_forbidden', 'A person of a tenant halts within it only.')
  if (all === undefined) return Object.keys(asked).length === 0 ? asked : { ...asked, tenant: own }
  // Together with another field, `all` is ambiguous, and the gate rejects it.
  return Object.keys(asked).length === 0 && all === true ? { tenant: own } : { ...asked, all }
}

function isWithin(person: Caller, { target }: Halt): boolean {
  return person.tenant === undefined || target.tenant === person.tenant
}

/**
 * A person of a tenant cannot release a halt that a person without a tenant has set. Nobody releases a halt of
 * themselves that somebody else has set: their key may be stolen.
 */
function mayRelease(person: Caller, halt: Halt): boolean {
  const isOwner = person.tenant === undefined || halt.byTenant === person.tenant
  return mayHalt(person) && isWithin(person, halt) && isOwner && !isOwnHalt(person, halt)
}

/** Whether a halt names the person, and somebody else has set it. */
function isOwnHalt({ user, tenant }: Caller, { target, by }: Halt): boolean {
  const isNamed = target.user === user && (target.tenant === undefined || target.tenant === tenant)
  return user !== undefined && isNamed && by !== user
}

function isSameTarget(a: HaltTarget, b: HaltTarget): boolean {
  return [...TARGETS, 'all' as const].every((field) => a[field] === b[field])
}

function toHaltFault(error: unknown): unknown {
  if (error instanceof ConfigError) return invalidBody(error.message)
  if (error instanceof ToolgateError && error.code === 'state_unavailable')
    return new ToolgateError(
      error.code,
      'It is halted here, but the state store did not take it: other replicas, and this one after a restart, do not know of it.',
      { cause: error },
    )
  return error
}

/** Redacts the reason, which may contain the leaked secret. */
function toRow(halt: Halt, person: Caller, people: readonly KnownPerson[], heart: HaltHeart): HaltRow {
  const { id, target, reason, by, at } = halt
  return {
    id,
    target,
    reason: heart.redact.redactText(reason),
    ...(by === undefined ? {} : { by }),
    since: at,
    reach: reachOf(target, people, heart),
    mayRelease: mayRelease(person, halt),
  }
}

/** Returns the known people if one of the targets names a user or a tenant. */
async function peopleFor(
  targets: readonly HaltTarget[],
  person: Caller,
  known: KnownPeople,
): Promise<readonly KnownPerson[]> {
  return targets.some(namesPeople) ? known(person.tenant) : []
}

function namesPeople({ user, tenant }: HaltTarget): boolean {
  return user !== undefined || tenant !== undefined
}

/** Returns the tools and people that a target currently matches. */
function reachOf(target: HaltTarget, people: readonly KnownPerson[], { gate, catalog }: HaltHeart): HaltReach {
  const tools = [...gate.catalog.snapshot(), ...ownToolsOf(gate, target)]
  const found = toolReach(target, { tools, groups: catalog.selectors() })
  const named = namesPeople(target) ? peopleReach(target, people) : {}
  // A halt of nobody stops no tool of anybody.
  return { ...found, ...named, ...(named.people === 0 && { tools: 0 }) }
}

/** Returns the number of people that a target names, or the nearest names if it matches nobody. */
function peopleReach(
  { user, tenant }: HaltTarget,
  people: readonly KnownPerson[],
): Pick<HaltReach, 'people' | 'nearestPeople'> {
  const named = people.filter(
    (one) => (user === undefined || one.user === user) && (tenant === undefined || one.tenant === tenant),
  )
  if (named.length > 0) return { people: named.length }
  const nearest = nearestPeople({ user, tenant }, people)
  return { people: 0, ...(nearest.length > 0 && { nearestPeople: nearest }) }
}

/** Returns similar names: users, tenants, or `vera of acme` if the user is similar or the tenant differs. */
function nearestPeople({ user, tenant }: HaltTarget, people: readonly KnownPerson[]): readonly string[] {
  if (user === undefined)
    return nearestFew(
      tenant ?? '',
      people.flatMap((one) => one.tenant ?? []),
    )
  const users = people.filter((one) => tenant === undefined || one.tenant === tenant).map((one) => one.user)
  const near = nearestFew(user, users)
  if (tenant === undefined) return near
  const elsewhere = people.filter((one) => one.user === user).map((one) => one.tenant)
  return [
    ...nearestFew(
      tenant,
      elsewhere.flatMap((of) => of ?? []),
    ).map((of) => `${user} of ${of}`),
    ...near.map((one) => `${one} of ${tenant}`),
  ]
}

/** Returns the tools on the own lists of the users that a target names, each id once. */
function ownToolsOf({ catalog }: Pick<Gate, 'catalog'>, { user, tenant }: HaltTarget): readonly Tool[] {
  const isNamed = (owner: { readonly user: string; readonly tenant?: string | undefined }) =>
    (user === undefined || owner.user === user) && (tenant === undefined || owner.tenant === tenant)
  const own = catalog.own.flatMap(({ owner, tools }) => (isNamed(owner) ? tools : []))
  const others = own.filter(({ id, kind }) => kind === 'tool' && !catalog.get(id))
  return [...new Map(others.map((tool) => [tool.id, tool])).values()]
}

/** Returns the tools that a target currently matches, or the nearest ids if it matches none. */
function toolReach(
  { tool }: HaltTarget,
  { tools, groups }: { readonly tools: readonly Tool[]; readonly groups: ReturnType<typeof parseGroups>['selectors'] },
): Pick<HaltReach, 'tools' | 'nearestTools'> {
  if (tool === undefined) return { tools: tools.length }
  const selector = parseSelector(tool, groups)
  const named = tools.filter((one) => matchesSelector(selector, one, 'possible'))
  if (named.length > 0) return { tools: named.length }
  const nearest = nearestFew(tool, selectorsLike(selector.kind, tools))
  return { tools: 0, ...(nearest.length > 0 && { nearestTools: nearest }) }
}

/** Returns selectors of the catalog that are written as the asked one is. */
function selectorsLike(kind: ReturnType<typeof parseSelector>['kind'], tools: readonly Tool[]): readonly string[] {
  switch (kind) {
    case 'tag':
      return tools.flatMap(({ tags }) => tags.map((tag) => `tag:${tag}`))
    case 'glob':
      return tools.flatMap(({ namespace }) => (namespace === undefined ? [] : `${namespace}:*`))
    default:
      return tools.map(({ id }) => id)
  }
}
