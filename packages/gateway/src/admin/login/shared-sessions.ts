import { randomBytes } from 'node:crypto'
import { type Caller, defineCaller } from '@toolgate/core'
import { createEmitter, type Emitter } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import { Mirror } from '@toolgate/core/internal'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'
import type { Authenticator } from '../../auth/credential.ts'
import { type IssuedTo, isAbout } from '../../auth/issued-to.ts'
import { digest, type Login, type NewSession, SESSION_TTL_MS, type LoginSessions } from '../http/access.ts'

export interface SharedSessionsOptions {
  readonly state: StateStore
  readonly clock: Pick<Clock, 'wallMs'>
  /** Finds the current person of a key. */
  readonly authenticator: Pick<Authenticator, 'current'>
  /** The use of the sessions. Their keys in the store begin with it. */
  readonly use: 'console' | 'person'
  readonly onFault: (error: unknown) => void
  /**
   * Identifies the rules by which people log in without a key. Sessions that were opened under other rules are not
   * valid, as the person may have other roles now.
   */
  readonly rules?: string | undefined
  readonly ttlMs?: number
  readonly max?: number
}

/** A session in its stored form. Times are wall-clock milliseconds. */
interface StoredSession {
  /** The id of the key, if the login used one. The person is then the key's current caller. */
  readonly credential?: string
  /** The person of a login without a key. */
  readonly person?: Caller
  readonly loginAt: number
  readonly endsAt: number
  readonly logoutUrl?: string
  readonly issuedTo?: IssuedTo
  readonly label?: string
  /** The rules under which a person without a key logged in. */
  readonly rules?: string
}

const DEADLINE_MS = 5000

/** The sessions of people who use several replicas. When `open` resolves, every replica knows the session. */
export class SharedSessions implements LoginSessions {
  readonly #options: SharedSessionsOptions
  readonly #prefix: string
  readonly #mirror: Mirror
  readonly #endings = new Map<string, Emitter<[]>>()
  #kept: ReadonlyMap<string, StoredSession> = new Map()

  constructor(options: SharedSessionsOptions) {
    this.#options = options
    this.#prefix = `login:${options.use}/`
    const { state, onFault } = options
    const onRead = (entries: readonly StateEntry[]) => this.#replace(new Map(entries.flatMap(toKept)))
    this.#mirror = new Mirror({ state, prefix: this.#prefix, deadlineMs: DEADLINE_MS, onRead, onFailed: onFault })
    this.#mirror.start()
  }

  /** Resolves when the store has answered, or failed to. */
  opened(): Promise<void> {
    return this.#mirror.idle()
  }

  async open(caller: Caller, session: NewSession = {}): Promise<string> {
    const { clock, state, rules, ttlMs = SESSION_TTL_MS, max = 1000 } = this.#options
    const now = clock.wallMs()
    const { credential, endsAtMs = Number.POSITIVE_INFINITY, loginAtMs = now, logoutUrl, issuedTo, label } = session
    const endsAt = Math.min(now + ttlMs, endsAtMs)
    const oldest = [...this.#kept].toSorted(([, a], [, b]) => a.endsAt - b.endsAt)[0]
    if (this.#kept.size >= max && oldest) await this.#end(oldest[0])
    const secret = randomBytes(32).toString('base64url')
    const key = this.#prefix + digest(secret)
    const who = credential === undefined ? { person: caller, ...(rules !== undefined && { rules }) } : { credential }
    const kept: StoredSession = {
      ...who,
      loginAt: loginAtMs,
      endsAt,
      ...(logoutUrl === undefined ? {} : { logoutUrl }),
      ...(issuedTo && { issuedTo }),
      ...(label !== undefined && { label }),
    }
    await this.#mirror.write(key, () => state.set(key, kept, { expiresAt: endsAt }))
    this.#replace(new Map([...this.#kept, [key, kept]]))
    return secret
  }

  find(secret: string): Login | undefined {
    return this.#loginOf(this.#prefix + digest(secret))
  }

  people(): readonly Caller[] {
    return [...this.#kept.keys()].flatMap((key) => this.#loginOf(key)?.person ?? [])
  }

  nowMs(): number {
    return this.#options.clock.wallMs()
  }

  async close(secret: string): Promise<string | undefined> {
    const key = this.#prefix + digest(secret)
    const { logoutUrl } = this.#kept.get(key) ?? {}
    await this.#end(key)
    return logoutUrl
  }

  async endIssued(of: IssuedTo): Promise<readonly Caller[]> {
    // A session of another replica may not be known here yet.
    this.#mirror.refresh()
    await this.#mirror.idle()
    const found = [...this.#kept].filter(([, { issuedTo }]) => issuedTo && isAbout(of, issuedTo))
    await Promise.all(found.map(([key]) => this.#end(key)))
    return found.flatMap(([, { person }]) => person ?? [])
  }

  /** Notifies listeners only: at each request, the person of a key is looked up again. */
  replace(): void {
    for (const key of this.#kept.keys()) if (!this.#loginOf(key)) this.#tell(key)
  }

  onEnd(secret: string, listener: () => void): () => void {
    const key = this.#prefix + digest(secret)
    if (!this.#kept.has(key)) return () => {}
    const ending = this.#endings.get(key) ?? createEmitter()
    this.#endings.set(key, ending)
    return ending.subscribe(listener)
  }

  async #end(key: string): Promise<void> {
    await this.#mirror.write(key, () => this.#options.state.take(key))
    this.#drop(key)
  }

  #drop(key: string): void {
    this.#replace(new Map([...this.#kept].filter(([other]) => other !== key)))
  }

  #replace(next: ReadonlyMap<string, StoredSession>): void {
    const before = this.#kept
    this.#kept = next
    for (const key of before.keys()) if (!next.has(key)) this.#tell(key)
  }

  #tell(key: string): void {
    const ending = this.#endings.get(key)
    this.#endings.delete(key)
    ending?.emit()
  }

  #loginOf(key: string): Login | undefined {
    const kept = this.#kept.get(key)
    if (!kept) return undefined
    if (kept.endsAt <= this.nowMs()) {
      // The session is removed at every replica, so that it stays expired if a clock is set back.
      this.#drop(key)
      this.#end(key).catch(this.#options.onFault)
      return undefined
    }
    const { credential, loginAt, label } = kept
    const labelled = label === undefined ? {} : { label }
    if (credential === undefined)
      return kept.person && kept.rules === this.#options.rules
        ? { person: kept.person, loginAt, ...labelled }
        : undefined
    const now = this.#options.authenticator.current(credential)
    const isOpen = now !== undefined && now.for !== 'host' && (this.#options.use === 'person' || now.for === 'console')
    return isOpen ? { person: now.caller, loginAt, credential } : undefined
  }
}

/** Parses an entry. An invalid one opens nothing. The person stays the same object until the entry changes. */
function toKept({ key, value }: StateEntry): readonly (readonly [string, StoredSession])[] {
  if (!isObject(value)) return []
  const { credential, person, loginAt, endsAt, logoutUrl, issuedTo, rules, label } = value
  if (typeof loginAt !== 'number' || typeof endsAt !== 'number') return []
  const more = {
    loginAt,
    endsAt,
    ...(typeof logoutUrl === 'string' ? { logoutUrl } : {}),
    ...(isObject(issuedTo) && { issuedTo }),
    ...(typeof rules === 'string' && { rules }),
    ...(typeof label === 'string' && { label }),
  }
  if (typeof credential === 'string') return [[key, { credential, ...more }]]
  return isObject(person) ? [[key, { person: defineCaller(person), ...more }]] : []
}
