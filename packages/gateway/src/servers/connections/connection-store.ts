import { hash } from 'node:crypto'
import { createEmitter } from '@toolgate/values'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { Mirror } from '@toolgate/core/internal'
import type { StateEntry, StateStore } from '@toolgate/core/stores'
import type { SecretSealer } from '../../util/sealer.ts'
import type { OAuthClient } from './clients.ts'
import type { GrantedTokens } from './grants.ts'

/** The user that a connection belongs to, and the connected server. */
export interface ConnectionKey {
  readonly server: string
  readonly user: string
  readonly tenant?: string | undefined
}

/** The public data of a connection between a server and a user's account. */
export interface UserConnection extends ConnectionKey {
  /** A new id for each connection. */
  readonly id: string
  /** The fingerprint of the server's entry that it was made for. */
  readonly of: string
  readonly issuer: string
  readonly scopes?: readonly string[] | undefined
  readonly account?: string | undefined
  /** When it was made, in wall-clock milliseconds. */
  readonly since: number
}

/** The secret data of a connection, which is sealed. */
export interface ConnectionSecret {
  readonly tokens: GrantedTokens
  readonly client: OAuthClient
  readonly resource: string
}

/** A connection in its stored form. */
interface StoredConnection extends UserConnection {
  /** The sealed secret. Each refresh changes it. */
  readonly sealed: string
}

const PREFIX = 'connection:'
const DEADLINE_MS = 5_000
/** The shortest time between two reads, as other entries of the store may change often. */
const GAP_MS = 200

/**
 * The connections of all users. A change applies here at once, and in every gateway on the same store within a second.
 */
export class ConnectionStore {
  readonly #state: StateStore
  readonly #sealer: SecretSealer
  readonly #mirror: Mirror
  readonly #changes: ReturnType<typeof createEmitter<[ended: readonly UserConnection[]]>>
  #byKey: ReadonlyMap<string, StoredConnection> = new Map()

  constructor({
    state,
    sealer,
    onFault,
  }: {
    readonly state: StateStore
    readonly sealer: SecretSealer
    readonly onFault: (error: unknown) => void
  }) {
    this.#state = state
    this.#sealer = sealer
    this.#changes = createEmitter<[ended: readonly UserConnection[]]>(onFault)
    this.#mirror = new Mirror({
      state,
      prefix: PREFIX,
      deadlineMs: DEADLINE_MS,
      gapMs: GAP_MS,
      onRead: (entries) => this.#replace(new Map(entries.flatMap(toKept))),
      onFailed: onFault,
    })
  }

  get isStarted(): boolean {
    return this.#mirror.isStarted
  }

  start(): void {
    this.#mirror.start()
  }

  /** Calls the listener after connections were added, changed or ended, with those that are no longer valid. */
  subscribe(listener: (ended: readonly UserConnection[]) => void): () => void {
    return this.#changes.subscribe(listener)
  }

  get all(): readonly UserConnection[] {
    return [...this.#byKey.values()]
  }

  find(key: ConnectionKey): UserConnection | undefined {
    return this.#byKey.get(keyOf(key))
  }

  /** Reads a connection from the store itself, because another process may have just changed it. */
  async read(key: ConnectionKey): Promise<UserConnection | undefined> {
    const name = keyOf(key)
    const [found] = toKept({ key: name, value: await this.#state.get(name) })
    const next = new Map(this.#byKey)
    if (found) next.set(...found)
    else next.delete(name)
    this.#replace(next)
    return found?.[1]
  }

  /** Returns the secret of a connection; `undefined` if it cannot be opened. */
  async open(connection: UserConnection): Promise<ConnectionSecret | undefined> {
    const kept = this.#byKey.get(keyOf(connection))
    if (kept?.id !== connection.id) return undefined
    const text = await this.#sealer.open(kept.sealed, boundTo(kept))
    return text === undefined ? undefined : (readOwnJson(text) as ConnectionSecret)
  }

  async write(connection: UserConnection, secret: ConnectionSecret): Promise<void> {
    const key = keyOf(connection)
    const kept: StoredConnection = {
      ...connection,
      sealed: await this.#sealer.seal(JSON.stringify(secret), boundTo(connection)),
    }
    await this.#mirror.write(key, () => this.#state.set(key, kept))
    this.#replace(new Map(this.#byKey).set(key, kept))
  }

  /** Ends a connection, unless another one has replaced it. Returns whether it existed. */
  async remove(connection: UserConnection): Promise<boolean> {
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

  #replace(next: ReadonlyMap<string, StoredConnection>): void {
    const before = this.#byKey
    this.#byKey = next
    const ended = [...before].flatMap(([key, kept]) => (next.get(key)?.id === kept.id ? [] : [kept]))
    const isNew = [...next].some(([key, { id }]) => before.get(key)?.id !== id)
    if (ended.length > 0 || isNew) this.#changes.emit(ended)
  }
}

/** Returns the associated data of the seal, so that a sealed text cannot be opened in another user's entry. */
function boundTo({ id, of, server, user, tenant }: UserConnection): unknown {
  return ['connection', id, of, server, tenant ?? null, user]
}

/** Returns the key of an entry. No character in the server's or user's name can end it early. */
export function keyOf(key: ConnectionKey): string {
  return PREFIX + digestOf(key)
}

/** Returns a text of 43 letters, digits, `-` and `_` that is unique for the user and the server. */
export function digestOf({ server, user, tenant }: ConnectionKey): string {
  return hash('sha256', JSON.stringify([server, tenant ?? null, user]), 'base64url')
}

function toKept({ key, value }: StateEntry): readonly (readonly [string, StoredConnection])[] {
  if (!isObject(value)) return []
  const kept = value as unknown as StoredConnection
  const isWhole = [kept.id, kept.of, kept.server, kept.user, kept.issuer, kept.sealed].every(
    (text) => typeof text === 'string',
  )
  return isWhole && keyOf(kept) === key ? [[key, kept]] : []
}
