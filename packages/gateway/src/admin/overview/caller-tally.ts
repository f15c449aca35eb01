import { type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { readOwnJson } from '@toolgate/values/json'
import { LONGEST_MS } from './tally.ts'

/** The counts from the records of a user. */
export interface CountedCaller {
  readonly user: string
  readonly tenant: string | undefined
  /** The roles in the latest call with facts. Absent if no record has any. */
  roles: readonly string[] | undefined
  client: string | undefined
  lastAt: number
  calls: number
  refused: number
}

const MAX_CALLERS = 10_000
const MAX_ROLES = 50

/** Counts the calls of users, whether or not they are in the configuration. Keeps the 10,000 users who called last. */
export class CallerTally {
  /** The user with the latest call is at the end. */
  readonly #callers = new Map<string, CountedCaller>()
  readonly #maxCallers: number

  constructor({ maxCallers = MAX_CALLERS }: { readonly maxCallers?: number } = {}) {
    this.#maxCallers = maxCallers
  }

  add(record: AuditRecord): void {
    const outcome = outcomeOfRecord(record)
    const { user_id: user, tenant, facts, purpose } = record
    // A read for a comparison is not a call of the user in whose name it was made.
    if (outcome === undefined || user === undefined || purpose === 'compare') return
    const key = personKey({ user, tenant })
    const one: CountedCaller = this.#callers.get(key) ?? {
      user,
      tenant,
      roles: undefined,
      client: undefined,
      lastAt: 0,
      calls: 0,
      refused: 0,
    }
    this.#callers.delete(key)
    this.#callers.set(key, one)
    const [oldest] = this.#callers.keys()
    if (this.#callers.size > this.#maxCallers && oldest !== undefined) this.#callers.delete(oldest)
    one.lastAt = Date.parse(record.ts)
    one.client = record.client ?? one.client
    one.calls++
    if (outcome === 'refused') one.refused++
    if (facts !== undefined) one.roles = rolesOf(facts) ?? one.roles
  }

  /** Returns the users with calls in the last week by `personKey`, for one tenant, or for all if `undefined`. */
  read(tenant: string | undefined, nowMs: number): ReadonlyMap<string, Readonly<CountedCaller>> {
    const found = new Map<string, CountedCaller>()
    for (const [key, one] of this.#callers)
      if (one.lastAt < nowMs - LONGEST_MS) this.#callers.delete(key)
      else if (tenant === undefined || one.tenant === tenant) found.set(key, one)
    return found
  }
}

/** Returns a key of the user and the tenant, as two tenants may have users with the same name. */
export function personKey({ user, tenant }: { readonly user: string; readonly tenant?: string | undefined }): string {
  return JSON.stringify([tenant ?? null, user])
}

/** Parses the roles. An audit that another program wrote may contain any value. */
function rolesOf(facts: string): readonly string[] | undefined {
  try {
    const { caller } = readOwnJson(facts) as { readonly caller?: { readonly roles?: unknown } }
    const roles = caller?.roles
    if (!Array.isArray(roles)) return undefined
    return roles.filter((role) => typeof role === 'string').slice(0, MAX_ROLES)
  } catch {
    return undefined
  }
}
