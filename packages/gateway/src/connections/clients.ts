import * as oauth from 'oauth4webapi'
import { isObject } from '@toolgate/core/internal'
import type { StateStore } from '@toolgate/core/stores'
import { hash } from 'node:crypto'
import type { ServerOAuth } from '../config/server-oauth.ts'
import type { Sealer } from '../relay/sealer.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { CLIENT_PATH, metadataOf } from './oauth-server.ts'
import { ConnectProblem } from './problem.ts'

/** The gateway as a client of an authorization server. */
export interface OAuthClient {
  readonly id: string
  readonly secret?: string
}

export interface ClientsDeps {
  readonly state: StateStore
  readonly sealer: Sealer
  /** Where the gateway serves the pages of connections. */
  readonly publicUrl: string
}

const CLIENTS = 'gateway/connection-clients/'

/** Finds the client that the gateway is at an authorization server: the configured one, its document, or a registered one. */
export class Clients {
  readonly #deps: ClientsDeps

  constructor(deps: ClientsDeps) {
    this.#deps = deps
  }

  /** @throws {ConnectProblem} */
  async find(configured: ServerOAuth, server: oauth.AuthorizationServer, fetch: GuardedFetch): Promise<OAuthClient> {
    const { clientId, clientSecret } = configured
    if (clientId !== undefined) return { id: clientId, ...(clientSecret === undefined ? {} : { secret: clientSecret }) }
    const { publicUrl } = this.#deps
    const takesDocuments = server['client_id_metadata_document_supported'] === true
    if (takesDocuments && publicUrl.startsWith('https:')) return { id: `${publicUrl}${CLIENT_PATH}` }
    if (server.registration_endpoint === undefined)
      throw new ConnectProblem('the authorization server registers no clients; configure a "clientId"')
    return (await this.#findRegistered(server)) ?? this.#register(server, fetch)
  }

  /** Forgets a registration that the authorization server no longer knows. */
  async forget({ issuer }: Pick<oauth.AuthorizationServer, 'issuer'>): Promise<void> {
    await this.#deps.state.take(this.#keyOf(issuer))
  }

  async #findRegistered({ issuer }: oauth.AuthorizationServer): Promise<OAuthClient | undefined> {
    const key = this.#keyOf(issuer)
    const kept = await this.#deps.state.get(key)
    const opened = typeof kept === 'string' ? await this.#deps.sealer.open(kept, key) : undefined
    return opened === undefined ? undefined : (JSON.parse(opened) as OAuthClient)
  }

  async #register(server: oauth.AuthorizationServer, fetch: GuardedFetch): Promise<OAuthClient> {
    const { state, sealer, publicUrl } = this.#deps
    const metadata = metadataOf(publicUrl)
    const response = await oauth.dynamicClientRegistrationRequest(server, metadata, {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: fetch,
    })
    const registered = await oauth.processDynamicClientRegistrationResponse(response).catch((cause: unknown) => {
      throw new ConnectProblem(`the authorization server registered no client (${response.status})`, { cause })
    })
    const { client_id: id, client_secret: secret, client_secret_expires_at: endsAt = 0 } = registered
    const client: OAuthClient = { id, ...(typeof secret === 'string' ? { secret } : {}) }
    const key = this.#keyOf(server.issuer)
    const ends = typeof endsAt === 'number' && endsAt > 0 ? { expiresAt: endsAt * 1000 } : {}
    await state.set(key, await sealer.seal(JSON.stringify(client), key), ends)
    return client
  }

  #keyOf(issuer: string): string {
    return CLIENTS + hash('sha256', JSON.stringify([issuer, this.#deps.publicUrl]), 'base64url')
  }
}

/** How a client proves itself at the token endpoint. */
export function authenticationOf({ secret }: OAuthClient, server: oauth.AuthorizationServer): oauth.ClientAuth {
  if (secret === undefined) return oauth.None()
  const methods: unknown = server.token_endpoint_auth_methods_supported
  const takesBasic = !Array.isArray(methods) || methods.includes('client_secret_basic')
  return takesBasic ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret)
}

/** Whether an error of an authorization server says that it does not know the client. */
export function isUnknownClient(error: unknown): boolean {
  return codeOf(error) === 'invalid_client'
}

/** Returns the code of an answer with an error, as RFC 6749 §5.2 has it. */
export function codeOf(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) return error.error
  return error instanceof Error && isObject(error.cause) && error.cause instanceof Error
    ? codeOf(error.cause)
    : undefined
}
