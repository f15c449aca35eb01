import { hash } from 'node:crypto'
import { createEmitter } from '@toolgate/values'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { Mirror } from '@toolgate/core/internal'
import type { StateEntry, StateStore } from '@toolgate/core/stores'
import type { Sealer } from '../../util/sealer.ts'
import type { OAuthClient } from './clients.ts'
import type { Tokens } from './grants.ts'

/** Whom a connection belongs to, and what it is to. */
export interface ConnectionKey {
  readonly server: string
  readonly user: string
  readonly tenant?: string | undefined
}

/** A server that a user has connected to their account: what may be shown. */
export interface Connection extends ConnectionKey {
  /** Another one after each connecting. */
  readonly id: string
  /** What of the server's entry it was made for. */
  readonly of: string
  readonly issuer: string
  readonly scopes?: readonly string[] | undefined
  readonly account?: string | undefined
  /** Wall-clock milliseconds. */
  readonly since: number
}

/** What must not be shown, and is sealed. */
export interface ConnectionSecret {
  readonly tokens: Tokens
  readonly client: OAuthClient
  readonly resource: string
}

/** A connection as the store has it. */
interface Kept extends Connection {
  /** Another text after each refresh. */
  readonly sealed: string
}

export interface ConnectionStoreOptions {
  readonly state: StateStore
  readonly sealer: Sealer
  readonly onFault: (error: unknown) => void
}

const PREFIX = 'connection:'
const DEADLINE_MS = 5_000
/** Other entries of the store may change often. */
const GAP_MS = 200

/** The connections of all users: in force here at once, and in every gateway of the same store within a second. */
export class ConnectionStore {
  readonly #state: StateStore
  readonly #sealer: Sealer
  readonly #mirror: Mirror
  readonly #changes: ReturnType<typeof createEmitter<[ended: readonly Connection[]]>>
  #byKey: ReadonlyMap<string, Kept> = new Map()

  constructor({ state, sealer, onFault }: ConnectionStoreOptions) {
    this.#state = state
    this.#sealer = sealer
    this.#changes = createEmitter<[ended: readonly Connection[]]>(onFault)
    this.#mirror = new Mirror({
      state,
      prefix: PREFIX,
      deadlineMs: DEADLINE_MS,
      gapMs: GAP_MS,
      onRead: (entries) => this.#replace(new Map(entries.flatMap(toKept))),
      onFailed: onFault,
    })
  }

  start(): void {
    this.#mirror.start()
  }

  /** Calls the listener after connections came, changed or ended, with those that are no longer in force. */
  subscribe(listener: (ended: readonly Connection[]) => void): () => void {
    return this.#changes.subscribe(listener)
  }

  get all(): readonly Connection[] {
    return [...this.#byKey.values()]
  }

  find(key: ConnectionKey): Connection | undefined {
    return this.#byKey.get(keyOf(key))
  }

  /** Reads a connection from the store itself: another process may have changed it just now. */
  async read(key: ConnectionKey): Promise<Connection | undefined> {
    const name = keyOf(key)
    const [found] = toKept({ key: name, value: await this.#state.get(name) })
    const next = new Map(this.#byKey)
    if (found) next.set(...found)
    else next.delete(name)
    this.#replace(next)
    return found?.[1]
  }

  /** Returns what is sealed in a connection; `undefined` if it cannot be opened. */
  async open(connection: Connection): Promise<ConnectionSecret | undefined> {
    const kept = this.#byKey.get(keyOf(connection))
    if (kept?.id !== connection.id) return undefined
    const text = await this.#sealer.open(kept.sealed, boundTo(kept))
    return text === undefined ? undefined : (readOwnJson(text) as ConnectionSecret)
  }

  async write(connection: Connection, secret: ConnectionSecret): Promise<void> {
    const key = keyOf(connection)
    const kept: Kept = { ...connection, sealed: await this.#sealer.seal(JSON.stringify(secret), boundTo(connection)) }
    await this.#mirror.write(key, () => this.#state.set(key, kept))
    this.#replace(new Map(this.#byKey).set(key, kept))
  }

  /** Ends a connection, unless another one has taken its place. Returns whether it was there. */
  async remove(connection: Connection): Promise<boolean> {
    const key = keyOf(connection)
    if ((await this.read(connection))?.id !== connection.id) return false
    await this.#mirror.write(key, () => this.#state.take(key))
    const next = new Map(this.#byKey)
    next.delete(key)
    this.#replace(next)
    return true
  }

  close(): void {
    this.#mirror.close()
  }

  #replace(next: ReadonlyMap<string, Kept>): void {
    const before = this.#byKey
    this.#byKey = next
    const ended = [...before].flatMap(([key, kept]) => (next.get(key)?.id === kept.id ? [] : [kept]))
    const isNew = [...next].some(([key, { id }]) => before.get(key)?.id !== id)
    if (ended.length > 0 || isNew) this.#changes.emit(ended)
  }
}

/** A sealed text that is moved to another user's entry cannot be opened there. */
function boundTo({ id, of, server, user, tenant }: Connection): unknown {
  return ['connection', id, of, server, tenant ?? null, user]
}

/** The key of an entry: nothing in a server's name or a user's can end it early. */
export function keyOf(key: ConnectionKey): string {
  return PREFIX + digestOf(key)
}

/** Returns a text of 43 letters, digits, `-` and `_` that no other user and server has. */
export function digestOf({ server, user, tenant }: ConnectionKey): string {
  return hash('sha256', JSON.stringify([server, tenant ?? null, user]), 'base64url')
}

function toKept({ key, value }: StateEntry): readonly (readonly [string, Kept])[] {
  if (!isObject(value)) return []
  const kept = value as unknown as Kept
  const isWhole = [kept.id, kept.of, kept.server, kept.user, kept.issuer, kept.sealed].every(
    (text) => typeof text === 'string',
  )
  return isWhole && keyOf(kept) === key ? [[key, kept]] : []
}
