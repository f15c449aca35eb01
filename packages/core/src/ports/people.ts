import type { MaybePromise } from './ports.ts'

/** How a person came: with a key of the file, a token, a login to the console, or the token of a run. */
export type PersonDoor = 'key' | 'token' | 'login' | 'run'

/**
 * A person whom a gateway has authenticated. A person is the user of one tenant and one issuer, so that equal names of
 * two issuers are two people. Times are wall-clock milliseconds.
 */
export interface SeenPerson {
  readonly user: string
  readonly tenant?: string
  /** The URL of the authorization server, or `key`. */
  readonly issuer: string
  readonly by: PersonDoor
  /** What people call them, from the latest token or login that says so. It identifies nobody. */
  readonly label?: string
  /** The roles, scopes and attributes of the latest token, or of the key. Empty if the person only logged in. */
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
  readonly attributes?: Readonly<Record<string, unknown>>
  /** When they were read. Absent if the person only logged in. */
  readonly rolesAt?: number
  /** The roles of the latest login to the console, and when it was. */
  readonly consoleRoles?: readonly string[]
  readonly consoleRolesAt?: number
  /** The OAuth clients, the latest first. */
  readonly clients: readonly string[]
  readonly firstSeenAt: number
  readonly lastSeenAt: number
}

/** The people noted since an earlier answer, and what the next request needs. */
export interface PeopleAnswer {
  readonly people: readonly SeenPerson[]
  /** The store's time. The next request for changes passes it. */
  readonly at: number
  /** The number of all people in the store. A reader that knows of more must read them all again. */
  readonly count: number
}

/** Keeps the people whom gateways have seen, across restarts and across all processes that share the store. */
export interface PersonStore {
  /**
   * Writes people, all or nothing. The earliest `firstSeenAt` of a person stays, and the rest is that of the latest
   * `lastSeenAt`. Above its bound, the store removes those who were not seen for the longest time.
   */
  note(people: readonly SeenPerson[]): MaybePromise<void>
  /** Returns all people, or at least those who were noted since the time of an earlier answer. */
  read(since?: number): MaybePromise<PeopleAnswer>
  /** Removes a user of one tenant, or of none, of every issuer. Returns the number of removed people. */
  forget(who: { readonly user: string; readonly tenant?: string | undefined }): MaybePromise<number>
}

/** The maximum number of people in a store. */
export const MAX_PEOPLE = 100_000
