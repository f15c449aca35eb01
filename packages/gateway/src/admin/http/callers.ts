import { type Caller, defineCaller } from '@toolgate/core'
import type {
  AuditCounter,
  AuditCountQuery,
  AuditCounts,
  AuditExporter,
  AuditExportQuery,
  AuditQuery,
  AuditReader,
  AuditRecord,
} from '@toolgate/core/audit'
import { messageOf, nearestOf } from '@toolgate/values'
import { readJson, toJsonText } from '@toolgate/values/json'
import { ApiFault } from '../../model/faults.ts'
import { recordPages } from '../../util/next-turn.ts'
import { recordFor } from './rule-text.ts'
import { invalidQuery, type Parameter, parseQuery, required, shortText } from './request.ts'
import type { CallerConfig } from '../../config/config.ts'
import { KEY_ISSUER, type People, toCaller } from '../../auth/people.ts'
import type { RolesFrom } from '../../model/people.ts'
import { type SeenPerson, toPersonKey } from '@toolgate/core/stores'

export interface NamedCaller {
  readonly name: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly caller: Caller
}

/** A person who signed in, by the name for `as`. */
export interface NamedPerson extends NamedCaller {
  readonly seen: SeenPerson
  readonly rolesFrom: RolesFrom
}

/** Returns the configured callers that a person may see, by name. The map stays the same until the configuration changes. */
export interface NamedCallers {
  (person: Caller): ReadonlyMap<string, NamedCaller>
  /** Returns the people who signed in and whom a person may see. */
  signedIn(person: Caller): readonly NamedPerson[]
  /** Returns one of them by the name. */
  find(as: string, person: Caller): NamedPerson | undefined
}

const MAX_NAMED = 50
/** The number of people whose names are compared with an unknown one. */
const MAX_COMPARED = 5000

/**
 * Returns the configured callers by the name for `as`, which is the `user`.
 *
 * If several keys belong to one user, agents' keys come first, and the second different caller is named `vera#2`. Equal
 * callers are listed once.
 */
function nameCallers(callers: readonly CallerConfig[]): ReadonlyMap<string, NamedCaller> {
  const named = new Map<string, NamedCaller>()
  const seen = new Set<string>()
  const agentsFirst = callers.toSorted((a, b) => Number(a.for === 'console') - Number(b.for === 'console'))
  for (const { for: kind, caller } of agentsFirst) {
    const identity = toJsonText([kind, defineCaller(caller)])
    if (seen.has(identity)) continue
    seen.add(identity)
    const name = freeName(toName(caller), named)
    named.set(name, { name, for: kind, caller: defineCaller(caller) })
  }
  return named
}

const NOBODY: ReadonlyMap<string, NamedCaller> = new Map()

/** The people whom the gateway has seen. */
type SeenPeople = Pick<People, 'list' | 'of'>
const NOBODY_SEEN: SeenPeople = { list: () => [], of: () => [] }

/**
 * Names only callers that a person may see, so that `vera#2` does not reveal another tenant's `vera`. People who signed
 * in are named by their user; if several have the same, `vera of acme`, and `vera from https://id.example`.
 */
export function createNamedCallers(
  callers: () => readonly CallerConfig[],
  people: SeenPeople = NOBODY_SEEN,
): NamedCallers {
  const configured = nameConfigured(callers)
  const inSight = (person: Caller, seen: readonly SeenPerson[]) =>
    seen.filter((one) => one.issuer !== KEY_ISSUER && maySee(person, one))
  const toNamed = (seen: SeenPerson, person: Caller) => {
    const others = inSight(person, people.of(seen.user)).filter((one) => toPersonKey(one) !== toPersonKey(seen))
    return toNamedPerson(seen, others, configured(person))
  }
  return Object.assign(configured, {
    signedIn: (person: Caller) => inSight(person, people.list()).map((one) => toNamed(one, person)),
    find: (as: string, person: Caller) =>
      usersIn(as)
        .flatMap((user) => inSight(person, people.of(user)))
        .map((one) => toNamed(one, person))
        .find(({ name }) => name === as),
  })
}

/** The texts between the parts of a name such as `vera of acme from https://id.example`. */
const PARTS = / of | from /g

/** Returns the users that a name may be about: the name, and each part of it before ` of ` or ` from `. */
function usersIn(as: string): readonly string[] {
  return [as, ...[...as.matchAll(PARTS)].map(({ index }) => as.slice(0, index))].map(unquoted)
}

/** Returns a user as in names. One who is called `vera of acme` is quoted, and never taken for `vera` of `acme`. */
function quotedIfNeeded(user: string): string {
  return user.startsWith('"') || user.search(PARTS) >= 0 ? JSON.stringify(user) : user
}

function unquoted(name: string): string {
  if (!name.startsWith('"')) return name
  try {
    const text = readJson(name)
    return typeof text === 'string' ? text : name
  } catch {
    return name
  }
}

function toNamedPerson(
  seen: SeenPerson,
  others: readonly SeenPerson[],
  configured: ReadonlyMap<string, NamedCaller>,
): NamedPerson {
  const { tenant, issuer, rolesAt = seen.consoleRolesAt, lastSeenAt } = seen
  const user = quotedIfNeeded(seen.user)
  const ofTenant = tenant === undefined ? user : `${user} of ${tenant}`
  const isSole = others.length === 0 && !configured.has(user)
  const isSoleOfTenant = others.every((one) => one.tenant !== tenant) && !configured.has(ofTenant)
  const name = isSole ? user : isSoleOfTenant ? ofTenant : `${ofTenant} from ${issuer}`
  const by = seen.rolesAt === undefined ? 'login' : 'token'
  return { name, for: 'mcp', caller: toCaller(seen), seen, rolesFrom: { by, issuer, at: rolesAt ?? lastSeenAt } }
}

function nameConfigured(callers: () => readonly CallerConfig[]): (person: Caller) => ReadonlyMap<string, NamedCaller> {
  let named: readonly CallerConfig[] = []
  const ofTenant = new Map<string | undefined, ReadonlyMap<string, NamedCaller>>()
  return (person) => {
    const now = callers()
    if (now !== named) ofTenant.clear()
    named = now
    const known = ofTenant.get(person.tenant)
    if (known) return known
    const seen = now.filter(({ caller }) => maySee(person, caller))
    if (seen.length === 0) return NOBODY
    const names = nameCallers(seen)
    ofTenant.set(person.tenant, names)
    return names
  }
}

/** Returns a name for a caller. */
export function toName(caller: Caller): string {
  return caller.user ?? caller.agent ?? 'anonymous'
}

/** The caller in a query: a configured caller by name, or any caller as JSON. */
interface WhoseQuery {
  readonly as?: string | undefined
  readonly caller?: Caller | undefined
}

/** The parameters that select a caller and an app. */
export const WHOSE: {
  readonly as: Parameter<string>
  readonly caller: Parameter<Caller>
  readonly app: Parameter<string>
} = {
  as: shortText,
  caller: callerJson,
  app: shortText,
}

/** Returns the caller in a query. Other parameters are not checked. @throws {ApiFault} `query_invalid` */
export function parseWhose(query: URLSearchParams): WhoseQuery {
  const [as, caller] = [query.get('as'), query.get('caller')]
  return parseQuery(new URLSearchParams({ ...(as !== null && { as }), ...(caller !== null && { caller }) }), WHOSE)
}

/**
 * @throws {ApiFault} `query_invalid` if both or neither are given, and `caller_unknown`, which names the known callers
 */
export function findCaller(
  callers: NamedCallers,
  { as, caller }: WhoseQuery,
  person: Caller,
): Pick<NamedCaller, 'name' | 'caller'> & Partial<Pick<NamedPerson, 'rolesFrom'>> {
  if (as !== undefined && caller !== undefined) throw invalidQuery('caller', 'cannot be given beside "as"')
  if (caller && !maySee(person, caller)) throw invalidQuery('caller', 'is of another tenant')
  if (caller) return { name: toName(caller), caller }
  const named = callers(person)
  const found = named.get(required('as', as)) ?? callers.find(as ?? '', person)
  if (found) return found
  const seen = callers.signedIn(person).slice(0, MAX_COMPARED)
  const names = [...named.keys(), ...seen.map(({ name }) => name)]
  const known = names.slice(0, MAX_NAMED).join(', ')
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  const near = nearestOf(as ?? '', names)
  const hint = near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
  throw new ApiFault(
    'caller_unknown',
    `No caller is named ${JSON.stringify(as)}; known are ${known || '(none)'}${more}.${hint}`,
  )
}

const MAX_CALLER_LENGTH = 4096

function callerJson(value: string): Caller {
  if (value.length > MAX_CALLER_LENGTH) throw new RangeError(`has more than ${MAX_CALLER_LENGTH} characters`)
  try {
    return defineCaller(readJson(value, { integers: 'exact' }) as Caller)
  } catch (error) {
    throw new RangeError(`is not a caller as JSON: ${messageOf(error)}`, { cause: error })
  }
}

function freeName(base: string, taken: ReadonlyMap<string, unknown>): string {
  let name = base
  for (let n = 2; taken.has(name); n++) name = `${base}#${n}`
  return name
}

/** Returns whether a person may see the data of a tenant: their own, or any if they have none. */
export function maySee(person: Caller, { tenant }: { readonly tenant?: string | undefined }): boolean {
  return person.tenant === undefined || person.tenant === tenant
}

/** Whether a person may see the own lists of a user: only approvers and the user may. */
export function maySeeListsOf(person: Caller, caller: Caller): boolean {
  const isSelf = person.user !== undefined && person.user === caller.user && person.tenant === caller.tenant
  return isSelf || (isApprover(person) && maySee(person, caller))
}

export function isApprover({ user, roles = [] }: Caller): boolean {
  return user !== undefined && roles.includes('approver')
}

const DEFAULT_LIMIT = 100
/** The maximum number of pages that are searched for one answer. The next request continues with `before`. */
const MAX_PAGES = 100

/** Returns the records of a query that a person may see. */
export async function queryFor(person: Caller, audit: AuditReader, query: AuditQuery): Promise<readonly AuditRecord[]> {
  if (person.tenant === undefined) return audit.query(query)
  const { limit = DEFAULT_LIMIT } = query
  const found: AuditRecord[] = []
  for await (const records of recordPages(audit, { ...query, tenant: person.tenant }, MAX_PAGES)) {
    found.push(...records.filter((record) => maySee(person, record)).map((record) => recordFor(person, record)))
    if (found.length >= limit) break
  }
  return found.slice(0, limit)
}

/** Returns all records of a query that a person may see, oldest first. */
export async function* exportFor(
  person: Caller,
  audit: AuditExporter,
  query: AuditExportQuery,
): AsyncGenerator<AuditRecord> {
  for await (const record of audit.exportRecords(query)) {
    if (maySee(person, record)) yield recordFor(person, record)
  }
}

/** Counts the records of a query that a person may see. */
export async function countFor(person: Caller, audit: AuditCounter, query: AuditCountQuery): Promise<AuditCounts> {
  return audit.countOutcomes(person.tenant === undefined ? query : { ...query, tenant: person.tenant })
}
