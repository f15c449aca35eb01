import { type Caller, defineCaller } from '@toolgate/core'
import {
  type Clock,
  joinedPerson,
  type PersonDoor,
  type PersonStore,
  type SeenPerson,
  toPersonKey,
} from '@toolgate/core/stores'
import { messageOf } from '@toolgate/values'
import type { LogLine } from '../model/log-line.ts'
import { boundLines } from './bounded-lines.ts'
import type { Credential } from './credential.ts'

interface PeopleDeps {
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly log: (line: LogLine) => void
  /** Returns the other names of a user at the issuers of the configuration. Default: none. */
  readonly otherNames?: (user: string) => readonly string[]
  /** Returns the roles that a login at an issuer can give now. Default: none. */
  readonly loginRoles?: (issuer: string) => ReadonlySet<string>
}

/** The issuer of people who come with a key of the file. */
export const KEY_ISSUER = 'key'

/** A person is noted at most this often, unless their token changed. */
const NOTE_MS = 60_000
const WRITE_MS = 1_000
/** How often the people that other processes noted are read. */
const READ_MS = 5_000
const MAX_BATCH = 500
const MAX_UNWRITTEN = 10_000
const MAX_CLIENTS = 8
const MAX_DECIDERS = 100
/** Somebody who has not logged in for so long may no longer be there to decide. */
const DECIDER_MS = 30 * 24 * 60 * 60_000
const NO_ROLES: ReadonlySet<string> = new Set()

/** A person with the roles of their latest login to the console. */
interface ConsolePerson {
  readonly for: 'console'
  readonly caller: Caller
  /** Identifies their record. */
  readonly key: string
}

/** How a person came. */
interface NotedAt {
  readonly issuer: string
  readonly client: string | undefined
  /** What people call them. */
  readonly label: string | undefined
  readonly by: PersonDoor
}

/**
 * The people whom this gateway and those that share its store have seen.
 *
 * A request only compares two times. Notes are written together, beside the calls, and a store that fails delays them.
 */
export class People {
  /** Grows when somebody comes or goes, or when somebody's rights change. */
  revision = 0
  readonly #deps: PeopleDeps
  readonly #logFailure: (message: string) => void
  #store: PersonStore | undefined
  #people = new Map<string, SeenPerson>()
  #ofUser = new Map<string, Set<string>>()
  /** When each caller was noted. The callers of a credential are one object until its rights change. */
  #noted = new WeakMap<Caller, number>()
  /** The people to write, oldest first. */
  readonly #unwritten = new Map<string, SeenPerson>()
  readonly #timers: NodeJS.Timeout[] = []
  #readAt: number | undefined
  /** The people who logged in with roles, by tenant. */
  #deciders: { readonly revision: number; readonly of: Map<string | undefined, ConsolePerson[]> } | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(deps: PeopleDeps) {
    this.#deps = deps
    this.#logFailure = boundLines((message) => deps.log({ level: 'warn', message }), deps.clock, 1)
  }

  /** Reads the people in the store, and writes to it from then on. */
  async open(store: PersonStore): Promise<void> {
    this.#store = store
    await this.#inTurn(() => this.#read())
    this.#timers.push(setInterval(() => void this.write(), WRITE_MS).unref())
    this.#timers.push(setInterval(() => void this.#inTurn(() => this.#read()), READ_MS).unref())
  }

  /** Writes the last notes. The store must still be open. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.write()
  }

  /** Notes the sender of a request. */
  noteRequest(credential: Credential): void {
    const { caller } = credential
    if (this.#isNoted(caller)) return
    const { issuer, client = caller.client, label } = credential
    const ofKey = issuer === KEY_ISSUER
    this.#note(caller, { issuer, client, label, by: caller.run !== undefined ? 'run' : ofKey ? 'key' : 'token' })
  }

  /** Notes a login to the console. Its roles do not replace those of the latest token. */
  noteLogin(person: Caller, issuer: string, label?: string): void {
    if (!this.#isNoted(person)) this.#note(person, { issuer, client: undefined, label, by: 'login' })
  }

  /** Returns all people, in no order. */
  list(): readonly SeenPerson[] {
    return [...this.#people.values()]
  }

  /** Notes that somebody may no longer log in to the console. Strangers are not noted. */
  noteRefusedLogin(person: Caller, issuer: string): void {
    const { user, tenant } = person
    if (this.of(user ?? '').some((one) => one.issuer === issuer && one.tenant === tenant))
      this.noteLogin(defineCaller({ ...person, roles: [] }), issuer)
  }

  /**
   * Returns the people of one tenant, or of none, who logged in to the console with roles: approvers first, then the
   * latest, and at most 100.
   */
  deciders(tenant: string | undefined): readonly ConsolePerson[] {
    if (this.#deciders?.revision !== this.revision)
      this.#deciders = { revision: this.revision, of: this.#readDeciders() }
    const since = this.#deps.clock.wallMs() - DECIDER_MS
    return (
      this.#deciders.of.get(tenant)?.filter(({ key }) => (this.#people.get(key)?.consoleRolesAt ?? 0) > since) ?? []
    )
  }

  #readDeciders(): Map<string | undefined, ConsolePerson[]> {
    const { otherNames = () => [], loginRoles = () => NO_ROLES } = this.#deps
    const found = this.list().flatMap((person) => {
      const { issuer, consoleRoles = [], consoleRolesAt: at = 0 } = person
      // The configuration may give fewer roles than at the login.
      const given = consoleRoles.length > 0 ? loginRoles(issuer) : NO_ROLES
      const roles = consoleRoles.filter((role) => given.has(role))
      return roles.length > 0 ? [{ person, roles, at, rank: Number(roles.includes('approver')) }] : []
    })
    found.sort((a, b) => b.rank - a.rank || b.at - a.at)
    const ofTenant = Map.groupBy(found, ({ person }) => person.tenant)
    const toConsolePerson = ({ person, roles }: (typeof found)[number]): ConsolePerson => {
      const { user, tenant } = person
      const [of, aliases] = [tenant === undefined ? {} : { tenant }, otherNames(user)]
      return {
        for: 'console',
        caller: defineCaller({ user, ...of, roles, ...(aliases.length > 0 && { aliases }) }),
        key: toPersonKey(person),
      }
    }
    return new Map([...ofTenant].map(([tenant, all]) => [tenant, all.slice(0, MAX_DECIDERS).map(toConsolePerson)]))
  }

  /** Returns the people with a user name: of several tenants, or of several issuers. */
  of(user: string): readonly SeenPerson[] {
    return [...(this.#ofUser.get(user) ?? [])].flatMap((key) => this.#people.get(key) ?? [])
  }

  /** Removes a user of one tenant, or of none, until they come again. Returns the number of removed people. */
  async forget(who: { readonly user: string; readonly tenant?: string | undefined }): Promise<number> {
    await this.write()
    // A read that has begun must not bring the person back.
    const removing = this.#turn.then(() => this.#store?.forget(who) ?? 0)
    await this.#inTurn(async () => void (await removing.catch(() => {})))
    const removed = await removing
    for (const person of this.of(who.user)) if (person.tenant === who.tenant) this.#remove(toPersonKey(person))
    this.#noted = new WeakMap()
    return removed
  }

  /** Writes the notes. Never rejects: what could not be written is written later. */
  async write(): Promise<void> {
    if (this.#unwritten.size > 0) await this.#inTurn(() => this.#writeAll())
  }

  #isNoted(caller: Caller): boolean {
    const now = this.#deps.clock.wallMs()
    const at = this.#noted.get(caller)
    if (at !== undefined && now >= at && now - at < NOTE_MS) return true
    this.#noted.set(caller, now)
    return false
  }

  #note(
    { user, tenant, roles = [], scopes = [], attributes }: Caller,
    { issuer, client, label: called, by }: NotedAt,
  ): void {
    if (user === undefined) return
    const now = this.#deps.clock.wallMs()
    const who = { user, issuer, ...(tenant !== undefined && { tenant }) }
    const known = this.#people.get(toPersonKey(who))
    const rights = { roles, scopes, rolesAt: now, ...(attributes && { attributes }) }
    const { clients = [], consoleRoles, firstSeenAt = now } = known ?? {}
    const label = called ?? known?.label
    const person: SeenPerson = {
      ...(by === 'login' ? { roles: [], scopes: [], ...known, consoleRoles: roles, consoleRolesAt: now } : rights),
      ...(by !== 'login' && consoleRoles && { consoleRoles, consoleRolesAt: known?.consoleRolesAt ?? now }),
      ...who,
      by,
      ...(label !== undefined && { label }),
      clients:
        client === undefined ? clients : [client, ...clients.filter((one) => one !== client)].slice(0, MAX_CLIENTS),
      firstSeenAt,
      lastSeenAt: now,
    }
    const key = toPersonKey(person)
    this.#put(key, person)
    this.#unwritten.delete(key)
    this.#unwritten.set(key, person)
    const [oldest] = this.#unwritten.keys()
    if (this.#unwritten.size > MAX_UNWRITTEN && oldest !== undefined) this.#unwritten.delete(oldest)
  }

  #put(key: string, person: SeenPerson): void {
    const known = this.#people.get(key)
    if (!known || rightsOf(known) !== rightsOf(person)) this.revision++
    this.#people.set(key, person)
    const keys = this.#ofUser.get(person.user)
    if (keys) keys.add(key)
    else this.#ofUser.set(person.user, new Set([key]))
  }

  #remove(key: string): void {
    const person = this.#people.get(key)
    if (!person) return
    this.revision++
    this.#people.delete(key)
    this.#unwritten.delete(key)
    const keys = this.#ofUser.get(person.user)
    keys?.delete(key)
    if (keys?.size === 0) this.#ofUser.delete(person.user)
  }

  async #writeAll(): Promise<void> {
    while (this.#unwritten.size > 0) {
      const batch = [...this.#unwritten].slice(0, MAX_BATCH)
      await this.#store?.note(batch.map(([, person]) => person))
      // A person who was noted again meanwhile is written again.
      for (const [key, person] of batch) if (this.#unwritten.get(key) === person) this.#unwritten.delete(key)
    }
  }

  /** Reads what changed, or everything if people were removed. */
  async #read(): Promise<void> {
    if (!this.#store) return
    const { people, at, count } = await this.#store.read(this.#readAt)
    this.#readAt = at
    for (const person of people) this.#join(person)
    if (this.#people.size <= count + this.#unwritten.size) return
    const all = new Set((await this.#store.read()).people.map(toPersonKey))
    for (const key of this.#people.keys()) if (!all.has(key) && !this.#unwritten.has(key)) this.#remove(key)
  }

  #join(person: SeenPerson): void {
    const key = toPersonKey(person)
    this.#put(key, joinedPerson(person, this.#people.get(key) ?? person))
  }

  /** Reads and writes one after the other, since a late answer to an old read would restore a removed person. */
  #inTurn(work: () => Promise<void>): Promise<unknown> {
    this.#turn = this.#turn
      .then(work)
      .catch((error: unknown) => this.#logFailure(`people cannot be recorded now: ${messageOf(error)}`))
    return this.#turn
  }
}

const callersOf = new WeakMap<SeenPerson, Caller>()

/**
 * Returns the caller with the rights of the latest token; without one, with the roles of the latest login. The same object
 * until the person comes again.
 */
export function toCaller(person: SeenPerson): Caller {
  let caller = callersOf.get(person)
  if (!caller) callersOf.set(person, (caller = makeCaller(person)))
  return caller
}

function makeCaller({ user, tenant, roles, scopes, attributes, rolesAt, consoleRoles = [] }: SeenPerson): Caller {
  const ofRights = { roles: rolesAt === undefined ? consoleRoles : roles, scopes, ...(attributes && { attributes }) }
  return defineCaller({ user, ...(tenant !== undefined && { tenant }), ...ofRights })
}

function rightsOf({ roles, scopes, attributes, consoleRoles }: SeenPerson): string {
  return JSON.stringify([roles, scopes, attributes, consoleRoles])
}
