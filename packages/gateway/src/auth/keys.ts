import type { KeyRow } from '../model/key-row.ts'
import { randomBytes } from 'node:crypto'
import { type Caller, ConfigError } from '@toolgate/core'
import { ApiFault } from '../model/faults.ts'
import { didYouMean, sha256Hex } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { CallerConfig } from '../config/config.ts'
import type { Revisions } from './revision.ts'
import type { Bearer, Credential, CredentialSource } from './credential.ts'
import { createKeyring, findEnded, type Keyring } from './keyring.ts'
import { checkNewKey, idOf, type MadeKey, makersWith, type NewKey, toEntry, toMadeKey } from './made-key.ts'

interface KeysDeps {
  readonly revisions: Revisions
  readonly clock: Pick<Clock, 'wallMs'>
  readonly onFault: (error: unknown) => void
}

const MADE = 'key:'
const USED = 'key-used:'
/** Prefix of entries that record an expiry that was noticed. */
const OVER = 'key-over:'
const FLUSH_MS = 60_000
const TICK_MS = 1000
const YEAR_MS = 366 * 24 * 60 * 60 * 1000
const MAX_KEYS = 10_000
const MAX_OF_USER = 100
/** The keys of the configuration, and those that were made while the gateway ran. */
export class Keys implements CredentialSource {
  readonly #deps: KeysDeps
  #state: StateStore | undefined
  #made: readonly MadeKey[] = []
  #ring: Keyring = createKeyring([])
  /** The last use of each key, by credential. It is written periodically. */
  readonly #used = new Map<string, number>()
  readonly #written = new Map<string, number>()
  readonly #expired = new Set<string>()
  /**
   * The expiries that were noticed, by credential. If the clock is set back, the key stays expired; a later expiry time
   * reopens it.
   */
  readonly #over = new Map<string, number>()
  readonly #timers: NodeJS.Timeout[] = []
  #unsubscribe: (() => void) | undefined
  #reading: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(deps: KeysDeps) {
    this.#deps = deps
  }

  async find(bearer: Bearer): Promise<Credential | undefined> {
    const found = this.#deps.revisions.current.keyring.find(bearer) ?? this.#ring.find(bearer)
    if (!found || this.isExpired(found)) return undefined
    this.#used.set(found.id, this.#deps.clock.wallMs())
    return found
  }

  current(id: string): Credential | undefined {
    const found = this.#deps.revisions.current.keyring.current(id) ?? this.#ring.current(id)
    return found && !this.isExpired(found) ? found : undefined
  }

  /** Reads the keys in the store, and follows its changes from then on. */
  async open(state: StateStore): Promise<void> {
    this.#state = state
    await this.#read()
    for (const { key, value } of await state.list(USED))
      if (typeof value === 'number') this.#used.set(key.slice(USED.length), value)
    for (const [id, at] of this.#used) this.#written.set(id, at)
    for (const { key, value } of await state.list(OVER))
      if (typeof value === 'number') this.#over.set(key.slice(OVER.length), value)
    this.#unsubscribe = state.subscribe((change) => {
      const applied = this.#read()
      change?.waitUntil(applied)
      applied.catch(this.#deps.onFault)
    })
    this.#timers.push(setInterval(() => this.#tick(), TICK_MS).unref())
    this.#timers.push(setInterval(() => void this.#flush(), FLUSH_MS).unref())
  }

  async close(): Promise<void> {
    this.#unsubscribe?.()
    for (const timer of this.#timers) clearInterval(timer)
    await this.#flush()
  }

  /** Updates the callers of made keys to the current revision. Keys whose user was removed end. */
  renew(): void {
    const before = this.#ring
    const { callers } = this.#deps.revisions.current
    const entries = this.#made.flatMap((key) => toEntry(key, callers) ?? [])
    this.#ring = createKeyring(entries, before)
    this.#deps.revisions.end(findEnded(before, this.#ring))
  }

  list(): readonly KeyRow[] {
    const { callers, keyring } = this.#deps.revisions.current
    const ofFile = callers.map((one, i): KeyRow => {
      const credential = keyring.credentials[i] as Credential
      return { ...toRow(one), ...this.#stateOf(credential.id, one.expiresAtMs), from: 'file' }
    })
    const made = this.#made.map(({ hash, makers: _, ...key }): KeyRow => {
      const credential = this.#ring.current(hash)
      const { apps } = credential ?? key
      return {
        ...key,
        ...(credential?.caller.roles && { roles: credential.caller.roles }),
        apps,
        isOrphan: credential === undefined,
        ...this.#stateOf(hash, key.expiresAt),
        from: 'made',
      }
    })
    return [...ofFile, ...made]
  }

  /**
   * Creates a key. It works at once. The key is returned once and not stored.
   *
   * @throws {ConfigError} naming the field
   */
  async create(asked: NewKey, by: Caller | undefined): Promise<{ readonly row: KeyRow; readonly key: string }> {
    const state = this.#stateStore()
    const { revisions, clock } = this.#deps
    checkNewKey(asked, revisions.current, clock.wallMs(), by)
    const { for: use, user, tenant, like, apps, expiresAt, id = `k-${randomBytes(6).toString('hex')}` } = asked
    if (this.list().some((row) => row.id === id)) throw new ConfigError('id', `a key has the id "${id}" already`)
    const ofUser = this.#made.filter((one) => one.user === user && one.tenant === tenant)
    if (this.#made.length >= MAX_KEYS || ofUser.length >= MAX_OF_USER)
      throw new ConfigError('user', 'has too many keys; revoke some first')
    const key = `tgk_${randomBytes(32).toString('base64url')}`
    const [createdBy, ...makers] = makersWith(by)
    const made: MadeKey = {
      id,
      hash: sha256Hex(key),
      for: use,
      user,
      tenant,
      like,
      apps,
      expiresAt,
      createdAt: clock.wallMs(),
      createdBy,
      ...(makers.length > 0 && { makers }),
    }
    if (!(await state.add(MADE + id, made))) throw new ConfigError('id', `a key has the id "${id}" already`)
    await this.#read()
    return { row: this.list().find((row) => row.id === id) as KeyRow, key }
  }

  /**
   * Revokes a made key and ends its sessions, streams and logins. @throws {ApiFault} `key_unknown`, and `key_in_file`
   * for a key of the file
   */
  async revoke(id: string): Promise<KeyRow> {
    const rows = this.list()
    const row = rows.find((one) => one.id === id)
    if (!row)
      throw new ApiFault(
        'key_unknown',
        `No key has the id ${JSON.stringify(id.slice(0, 100))}${didYouMean(
          id,
          rows.map((one) => one.id),
        )}.`,
      )
    if (row.from === 'file') throw new ApiFault('key_in_file', `"${id}" is in the file: remove it there, and reload.`)
    await this.#stateStore().take(MADE + id)
    await this.#read()
    return row
  }

  #stateStore(): StateStore {
    if (!this.#state) throw new ConfigError('state', 'is not open yet')
    return this.#state
  }

  #stateOf(credential: string, expiresAt: number | undefined): { isExpired: boolean; lastUsedAt?: number } {
    const lastUsedAt = this.#used.get(credential)
    const isExpired = this.isExpired({ id: credential, ...(expiresAt !== undefined && { expiresAtMs: expiresAt }) })
    return { isExpired, ...(lastUsedAt === undefined ? {} : { lastUsedAt }) }
  }

  /** Whether a key has expired. Setting the clock back does not change the answer. */
  isExpired({ id, expiresAtMs }: Pick<Credential, 'id' | 'expiresAtMs'>): boolean {
    if (expiresAtMs === undefined) return false
    if ((this.#over.get(id) ?? -Infinity) >= expiresAtMs) return true
    const isExpired = expiresAtMs <= this.#deps.clock.wallMs()
    if (isExpired) this.#over.set(id, expiresAtMs)
    return isExpired
  }

  /** Reads in sequence, since a late answer to an old read would restore a revoked key. */
  #read(): Promise<void> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined
      const reading = this.#readNow()
      this.#reading = reading.catch(() => {})
      return reading
    })
    return this.#next
  }

  async #readNow(): Promise<void> {
    const entries = (await this.#state?.list(MADE)) ?? []
    const made = entries.flatMap(({ value }) => toMadeKey(value) ?? [])
    if (JSON.stringify(made) === JSON.stringify(this.#made)) return
    this.#made = made
    this.renew()
  }

  /** Ends everything that was opened with expired keys. */
  #tick(): void {
    const { revisions } = this.#deps
    const all = [...revisions.current.keyring.credentials, ...this.#ring.credentials]
    const ended = all.filter(
      (one) => one.expiresAtMs !== undefined && this.isExpired(one) && !this.#expired.has(one.id),
    )
    if (ended.length === 0) return
    for (const { id, expiresAtMs = 0 } of ended) {
      this.#expired.add(id)
      void this.#keepEnd(id, expiresAtMs)
    }
    const callers = ended.map(({ caller }) => caller)
    revisions.end({ ended: new Set(callers), replaced: new Map(callers.map((caller) => [caller, undefined])) })
  }

  /** Records an expiry. The entry covers clocks that are set back by less than a year. */
  async #keepEnd(id: string, expiresAtMs: number): Promise<void> {
    try {
      await this.#state?.set(OVER + id, expiresAtMs, { expiresAt: expiresAtMs + YEAR_MS })
    } catch (error) {
      this.#deps.onFault(error)
    }
  }

  async #flush(): Promise<void> {
    for (const [id, at] of this.#used)
      try {
        if (!this.#isKnown(id)) {
          await this.#state?.take(USED + id)
          this.#used.delete(id)
          this.#written.delete(id)
        } else if (this.#written.get(id) !== at) {
          await this.#state?.set(USED + id, at)
          this.#written.set(id, at)
        }
      } catch (error) {
        this.#deps.onFault(error)
      }
  }

  #isKnown(id: string): boolean {
    return (this.#deps.revisions.current.keyring.current(id) ?? this.#ring.current(id)) !== undefined
  }
}

function toRow(one: CallerConfig): Omit<KeyRow, 'from' | 'isExpired'> {
  const { for: use, caller, apps, expiresAtMs } = one
  const { user, tenant, roles } = caller
  return {
    id: idOf(one),
    for: use,
    user,
    ...(tenant === undefined ? {} : { tenant }),
    ...(roles && { roles }),
    ...(apps && { apps }),
    ...(expiresAtMs === undefined ? {} : { expiresAt: expiresAtMs }),
  }
}
