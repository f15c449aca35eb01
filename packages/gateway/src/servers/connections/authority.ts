import { randomBytes } from 'node:crypto'
import { generateRandomCodeVerifier } from 'oauth4webapi'
import { messageOf } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { remember } from '../../auth/oauth/remember.ts'
import type { SecretSealer } from '../../util/sealer.ts'
import { type ConnectAttempt, Attempts } from './attempts.ts'
import { Clients, codeOf, isUnknownClient, namesIssuer } from './clients.ts'
import type { UserConnection, ConnectionKey, ConnectionSecret } from './connection-store.ts'
import { discover, readServer } from './discovery.ts'
import { authorizationUrl, exchange, type Granted, type Party, refresh, revoke } from './grants.ts'
import { createGuardedFetch } from './guarded-fetch.ts'
import type { OAuthServer } from './oauth-server.ts'
import { ConnectionRefused, ConnectProblem } from './problem.ts'

export interface AuthorityDeps {
  readonly state: StateStore
  readonly sealer: SecretSealer
  readonly clock: Clock
  readonly publicUrl: string
}

const METADATA_FRESH_MS = 10 * 60_000
/** The maximum number of cached issuers, as a server may name another issuer for each attempt. */
const MAX_PARTIES = 100

/** The client of the authorization servers that MCP servers name. It is loaded at the first use. */
export class Authority {
  readonly #deps: AuthorityDeps
  readonly #clients: Clients
  readonly #attempts: Attempts
  readonly #parties = new Map<string, { readonly party: Party; readonly readMs: number }>()

  constructor(deps: AuthorityDeps) {
    this.#deps = deps
    this.#clients = new Clients(deps)
    this.#attempts = new Attempts(deps)
  }

  /**
   * Begins to connect a user. Returns the URL of the authorization server's page, and the secret for the browser.
   * @throws {ConnectProblem}
   */
  begin(server: OAuthServer, owner: Omit<ConnectionKey, 'server'>, of: string) {
    return explained(async () => {
      const fetch = fetchFor(server)
      const found = await discover(server, fetch)
      const { client, callback } = await this.#clients.find(server, found.server, fetch)
      const { issuer } = found.server
      const { resource, scopes } = found
      const verifier = generateRandomCodeVerifier()
      const { user, tenant } = owner
      const key: ConnectionKey = { server: server.name, user, ...(tenant === undefined ? {} : { tenant }) }
      const mark = { callback, namesIssuer: namesIssuer(found.server) }
      const attempt: ConnectAttempt = { ...key, of, issuer, client, resource, scopes, verifier, ...mark }
      const { state, secret } = await this.#attempts.begin(attempt)
      const request = { redirectUri: this.#redirectUri(callback), state, verifier }
      return { url: await authorizationUrl({ server: found.server, client }, found, request), secret }
    })
  }

  /**
   * Ends an attempt with the URL at which the authorization server's answer arrived. `person`: who is logged in now.
   *
   * @throws {ConnectProblem}
   */
  finish(
    { pathname: callback, searchParams: answer }: URL,
    secret: string,
    person: Omit<ConnectionKey, 'server'>,
    serverOf: (attempt: ConnectAttempt) => OAuthServer | undefined,
  ): Promise<{ readonly connection: UserConnection; readonly secret: ConnectionSecret }> {
    return explained(async () => {
      const state = answer.get('state') ?? ''
      const iss = answer.get('iss') ?? undefined
      const attempt = await this.#attempts.finish({ state, callback, iss }, secret, person)
      const configured = serverOf(attempt)
      if (!configured) throw new ConnectProblem('the server was changed meanwhile; connect it again')
      const { server, user, tenant, of, issuer, client, resource, verifier } = attempt
      const party = { ...(await this.#partyOf(configured, issuer)), client: clientOf(configured, client) }
      const granted = await exchange(party, answer, {
        redirectUri: this.#redirectUri(callback),
        state,
        verifier,
        resource,
      }).catch(async (error: unknown) => {
        if (isUnknownClient(error)) await this.#clients.forget(configured, issuer)
        throw error
      })
      const scopes = granted.scopes ?? attempt.scopes
      return {
        connection: {
          id: randomBytes(16).toString('base64url'),
          server,
          user,
          ...(tenant === undefined ? {} : { tenant }),
          of,
          issuer,
          ...(scopes === undefined ? {} : { scopes }),
          ...(granted.account === undefined ? {} : { account: granted.account }),
          since: this.#deps.clock.wallMs(),
        },
        secret: { tokens: granted.tokens, client, resource },
      }
    })
  }

  /** @throws {ConnectionRefused} if the connection is no longer valid. @throws {ConnectProblem} */
  refresh(
    server: OAuthServer,
    { issuer }: UserConnection,
    { tokens, client, resource }: ConnectionSecret,
  ): Promise<Granted> {
    return explained(async () => {
      if (tokens.refresh === undefined) throw new ConnectionRefused('its token ended, and it has no refresh token')
      const party = { ...(await this.#partyOf(server, issuer)), client: clientOf(server, client) }
      return refresh(party, tokens.refresh, resource).catch(async (error: unknown) => {
        if (error instanceof ConnectionRefused && isUnknownClient(error.cause))
          await this.#clients.forget(server, issuer)
        throw error
      })
    })
  }

  /**
   * Revokes the tokens of a connection. Returns whether the authorization server supports it. @throws {ConnectProblem}
   */
  revoke(server: OAuthServer, { issuer }: UserConnection, { tokens, client }: ConnectionSecret): Promise<boolean> {
    return explained(async () => {
      const party = { ...(await this.#partyOf(server, issuer)), client: clientOf(server, client) }
      return revoke(party, tokens)
    })
  }

  #redirectUri(callback: string): string {
    return `${this.#deps.publicUrl}${callback}`
  }

  /** Returns the issuer's metadata, which is cached for a while, and the client. */
  async #partyOf(server: OAuthServer, issuer: string): Promise<Omit<Party, 'client'>> {
    const { clock } = this.#deps
    const key = JSON.stringify([server.name, server.url, server.oauth, server.proxy, server.ca, issuer])
    const known = this.#parties.get(key)
    if (known && clock.monotonicMs() - known.readMs < METADATA_FRESH_MS) return known.party
    const fetch = fetchFor(server)
    const party = {
      server: await readServer(issuer, server, fetch),
      fetch,
      nowMs: () => clock.wallMs(),
      client: NO_CLIENT,
    }
    remember(this.#parties, key, { party, readMs: clock.monotonicMs() }, MAX_PARTIES)
    return party
  }
}

const NO_CLIENT = { id: '' }

/** Returns the client of a connection. The client stays the same, but its configured secret may be rotated. */
function clientOf({ oauth: { clientId, clientSecret } }: OAuthServer, made: ConnectionSecret['client']) {
  return clientId === made.id && clientSecret !== undefined ? { id: clientId, secret: clientSecret } : made
}

/** Returns a fetch that may reach private addresses only at hosts that the operator has configured. */
export function fetchFor({ url, oauth: { issuer }, proxy, ca }: OAuthServer) {
  const trusted = [url, issuer].flatMap((text) => (text === undefined ? [] : [new URL(text).hostname]))
  return createGuardedFetch({ trusted, proxy, ca })
}

/**
 * Runs the work, and keeps only the codes of its errors. The library's messages may quote answers, which contain
 * tokens.
 */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ConnectProblem || error instanceof ConnectionRefused) throw error
    const code = codeOf(error)
    const shown = code !== undefined && CODE.test(code) ? `the authorization server answered ${code}` : undefined
    throw new ConnectProblem(shown ?? `the authorization server answered something else than expected: ${short(error)}`)
  }
}

const CODE = /^[\w.-]{1,64}$/

/** Returns the library's own message, which names the wrong field but no value. */
function short(error: unknown): string {
  const isOfLibrary = error instanceof Error && 'code' in error && String(error.code).startsWith('OAUTH_')
  return isOfLibrary ? messageOf(error).slice(0, 200) : 'it cannot be used'
}
