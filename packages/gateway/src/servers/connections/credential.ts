import type { Clock } from '@toolgate/core/stores'
import type { RequestCredential } from '../transport/credential.ts'
import { UpstreamError } from '../../model/upstream.ts'
import type { UserConnection, ConnectionSecret, ConnectionStore } from './connection-store.ts'
import type { Granted } from './grants.ts'
import { ConnectionRefused, ConnectProblem } from './problem.ts'

interface CredentialDeps {
  readonly store: Pick<ConnectionStore, 'find' | 'read' | 'open' | 'write'>
  readonly clock: Pick<Clock, 'wallMs'>
  refresh(connection: UserConnection, secret: ConnectionSecret): Promise<Granted>
  /** Runs the work while no other process changes the connection. */
  exclusively<T>(connection: UserConnection, work: () => Promise<T>): Promise<T>
  end(connection: UserConnection): Promise<void>
}

/** The access token of one connection. It is refreshed before it expires, and when the server refuses it. */
export class ConnectionCredential implements RequestCredential {
  readonly #connection: UserConnection
  readonly #deps: CredentialDeps
  #secret: ConnectionSecret | undefined
  #preparing: Promise<void> | undefined

  constructor(connection: UserConnection, deps: CredentialDeps) {
    this.#connection = connection
    this.#deps = deps
  }

  get header(): string | undefined {
    return this.#secret && `Bearer ${this.#secret.tokens.access}`
  }

  prepare(): Promise<void> | undefined {
    return this.#secret && !this.#isOld(this.#secret) ? undefined : this.#once(undefined)
  }

  async renew(refused: string): Promise<boolean> {
    if (this.header === refused) await this.#once(refused)
    return this.header !== undefined && this.header !== refused
  }

  #isOld({ tokens: { expiresAt, earlyMs = 0, refresh } }: ConnectionSecret): boolean {
    return expiresAt !== undefined && refresh !== undefined && this.#deps.clock.wallMs() >= expiresAt - earlyMs
  }

  /** Refreshes once for all waiting requests of the instance. */
  #once(refused: string | undefined): Promise<void> {
    this.#preparing ??= this.#load(refused).finally(() => (this.#preparing = undefined))
    return this.#preparing
  }

  /** @throws {UpstreamError} */
  async #load(refused: string | undefined): Promise<void> {
    const { exclusively, store } = this.#deps
    const known = await store.open(this.#connection)
    if (known && !this.#isSpent(known, refused)) {
      this.#secret = known
      return
    }
    try {
      await exclusively(this.#connection, () => this.#refresh(refused))
    } catch (error) {
      // A token that is still valid is used until the authorization server answers again.
      if (refused === undefined && this.#secret && !this.#hasEnded(this.#secret)) return
      throw error instanceof UpstreamError ? error : unusable(error)
    }
  }

  #isSpent(secret: ConnectionSecret, refused: string | undefined): boolean {
    return this.#isOld(secret) || `Bearer ${secret.tokens.access}` === refused
  }

  #hasEnded({ tokens: { expiresAt = Number.POSITIVE_INFINITY } }: ConnectionSecret): boolean {
    return this.#deps.clock.wallMs() >= expiresAt
  }

  /** Runs under the lock. Another process may have refreshed the token meanwhile; then only its refresh token works. */
  async #refresh(refused: string | undefined): Promise<void> {
    const { store, refresh, end } = this.#deps
    const now = await store.read(this.#connection)
    const secret = now?.id === this.#connection.id ? await store.open(now) : undefined
    if (!now || !secret) throw ended()
    if (!this.#isSpent(secret, refused)) {
      this.#secret = secret
      return
    }
    try {
      const { tokens, scopes } = await refresh(now, secret)
      // Without rotation the old refresh token stays valid (RFC 6749 §6).
      const next = {
        ...secret,
        tokens: { ...(secret.tokens.refresh && { refresh: secret.tokens.refresh }), ...tokens },
      }
      await store.write({ ...now, ...(scopes === undefined ? {} : { scopes }) }, next)
      this.#secret = next
    } catch (error) {
      if (!(error instanceof ConnectionRefused)) throw error
      this.#secret = undefined
      await end(now)
      throw ended()
    }
  }
}

/** Returns an error that callers may read. An error inside the gateway may contain its own addresses. */
function unusable(cause: unknown): UpstreamError {
  const why = cause instanceof ConnectProblem ? ` (${cause.message})` : ''
  return new UpstreamError('upstream_down', `cannot be used with this account now${why}`, { cause })
}

function ended(): UpstreamError {
  return new UpstreamError('upstream_down', 'is no longer connected to the account of this user')
}
