import type { Grant, GrantFilter, GrantRevocation, GrantStore, NewGrant } from '../ports/grants.ts'
import {
  checkGrantFilter,
  checkLiveGrants,
  grantAt,
  grantedBefore,
  isGrantOver,
  matchesGrant,
  MAX_GRANTS,
  revokedGrant,
  tooManyGrants,
} from './grant-rules.ts'

const DEFAULT_LIMIT = 100

/** Creates a store of grants in this process. A user has at most 100 live ones; 10,000 are kept, the newest. */
export function memoryGrants(): GrantStore {
  const kept = new KeptGrants()
  return {
    create: (grant, nowMs) => kept.create(grant, nowMs),
    get: (id, nowMs) => kept.find(id, nowMs),
    find: (of, nowMs) => kept.liveOf(of, nowMs).filter(({ tool }) => tool === of.tool),
    list: (filter, nowMs) => kept.list(filter, nowMs),
    take: (id, nowMs, spend) => kept.take(id, nowMs, spend),
    giveBack: (id, spend) => kept.giveBack(id, spend),
    revoke: (id, revocation) => kept.revoke(id, revocation),
  }
}

class KeptGrants {
  /** By id, in the order in which they were made. */
  readonly #byId = new Map<string, Grant>()
  /** The ids of each user's grants that are not known to have ended. */
  readonly #openOf = new Map<string, Set<string>>()
  /** The names of the uses of each grant. */
  readonly #spendsOf = new Map<string, Set<string>>()

  create(given: NewGrant, nowMs: number): Grant {
    if (this.#byId.has(given.id)) throw grantedBefore(given.id)
    checkLiveGrants(this.liveOf(given, nowMs).length)
    this.#makeRoom(nowMs)
    const grant = Object.freeze({ ...structuredClone(given), used: 0, status: 'live' as const })
    this.#byId.set(grant.id, grant)
    const key = keyOf(grant)
    this.#openOf.set(key, (this.#openOf.get(key) ?? new Set()).add(grant.id))
    return grant
  }

  find(id: string, nowMs: number): Grant | undefined {
    const grant = this.#byId.get(id)
    if (!grant) return undefined
    const now = grantAt(grant, nowMs)
    return isGrantOver(grant, nowMs) ? this.#keep(now) : now
  }

  /** Returns the live grants of a user, those that end first come first. */
  liveOf(of: Pick<Grant, 'tenant' | 'user'>, nowMs: number): readonly Grant[] {
    const open = this.#openOf.get(keyOf(of))
    if (!open) return []
    const found = [...open].flatMap((id) => this.find(id, nowMs) ?? [])
    return found.filter(({ status }) => status === 'live').toSorted((a, b) => a.expiresAt - b.expiresAt)
  }

  list(filter: GrantFilter, nowMs: number): readonly Grant[] {
    checkGrantFilter(filter)
    const { before, limit = DEFAULT_LIMIT } = filter
    const newestFirst = [...this.#byId.keys()].toReversed()
    const start = before === undefined ? 0 : newestFirst.indexOf(before) + 1
    if (before !== undefined && start === 0) return []
    return newestFirst
      .slice(start)
      .flatMap((id) => this.find(id, nowMs) ?? [])
      .filter((grant) => matchesGrant(grant, filter))
      .slice(0, limit)
  }

  take(id: string, nowMs: number, spend: string): boolean {
    const grant = this.find(id, nowMs)
    const spends = this.#spendsOf.get(id) ?? new Set()
    if (grant && spends.has(spend)) return true
    if (grant?.status !== 'live') return false
    this.#spendsOf.set(id, spends.add(spend))
    this.#keep({ ...grant, used: spends.size })
    return true
  }

  giveBack(id: string, spend: string): void {
    const grant = this.#byId.get(id)
    const spends = this.#spendsOf.get(id)
    if (grant && spends?.delete(spend)) this.#keep({ ...grant, used: spends.size })
  }

  revoke(id: string, revocation: GrantRevocation): Grant {
    return this.#keep(revokedGrant(this.find(id, revocation.atMs), id, revocation))
  }

  #keep(grant: Grant): Grant {
    this.#byId.set(grant.id, Object.freeze(grant))
    if (grant.status === 'revoked' || grant.status === 'expired') this.#close(grant)
    return grant
  }

  #close(grant: Grant): void {
    const open = this.#openOf.get(keyOf(grant))
    open?.delete(grant.id)
    if (open?.size === 0) this.#openOf.delete(keyOf(grant))
  }

  /** Forgets the oldest that has ended. @throws {ToolgateError} `grant_too_many` if all are live */
  #makeRoom(nowMs: number): void {
    if (this.#byId.size < MAX_GRANTS) return
    for (const grant of this.#byId.values()) {
      if (grantAt(grant, nowMs).status === 'live') continue
      this.#byId.delete(grant.id)
      this.#spendsOf.delete(grant.id)
      return this.#close(grant)
    }
    throw tooManyGrants()
  }
}

function keyOf({ tenant, user }: Pick<Grant, 'tenant' | 'user'>): string {
  return JSON.stringify([tenant ?? null, user ?? null])
}
