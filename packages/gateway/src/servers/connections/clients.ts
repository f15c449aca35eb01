import * as oauth from 'oauth4webapi'
import { isObject, readOwnJson } from '@toolgate/values/json'
import type { StateStore } from '@toolgate/core/stores'
import { hash } from 'node:crypto'
import type { SecretSealer } from '../../util/sealer.ts'
import type { GuardedFetch } from './guarded-fetch.ts'
import { callbackOf, CLIENT_PATH, metadataOf, type OAuthServer } from './oauth-server.ts'
import { ConnectProblem } from './problem.ts'
import { standardFetch } from './standard-answer.ts'

/** The gateway as a client of an authorization server. */
export interface OAuthClient {
  readonly id: string
  readonly secret?: string
}

/** A client, and the path at which answers for it arrive. */
interface ClientAt {
  readonly client: OAuthClient
  readonly callback: string
}

interface ClientsDeps {
  readonly state: StateStore
  readonly sealer: SecretSealer
  /** The origin at which the gateway serves the pages of connections. */
  readonly publicUrl: string
}

type OAuthNamed = Pick<OAuthServer, 'name' | 'oauth'>

const CLIENTS = 'gateway/connection-clients/'

/**
 * Finds the gateway's client for an authorization server: a configured one, the metadata document, or a registered one.
 */
export class Clients {
  readonly #deps: ClientsDeps

  constructor(deps: ClientsDeps) {
    this.#deps = deps
  }

  /** @throws {ConnectProblem} */
  async find(
    { name, oauth: own }: OAuthNamed,
    server: oauth.AuthorizationServer,
    fetch: GuardedFetch,
  ): Promise<ClientAt> {
    const { clientId: id, clientSecret: secret } = own
    const at = (kind: Parameters<typeof callbackOf>[0], client: OAuthClient): ClientAt => ({
      client,
      callback: callbackOf(kind, name, server.issuer),
    })
    if (id !== undefined) return at('configured', { id, ...(secret === undefined ? {} : { secret }) })
    const { publicUrl } = this.#deps
    const takesDocuments = server['client_id_metadata_document_supported'] === true && namesIssuer(server)
    if (takesDocuments && publicUrl.startsWith('https:')) return at('document', { id: `${publicUrl}${CLIENT_PATH}` })
    if (server.registration_endpoint === undefined)
      throw new ConnectProblem(
        'the authorization server registers no clients, and takes no metadata documents with "iss" in its answers; configure a "clientId"',
      )
    const callback = callbackOf('registered', name, server.issuer)
    return at('registered', (await this.#findRegistered(callback)) ?? (await this.#register(server, callback, fetch)))
  }

  /** Removes a registration that the authorization server no longer knows. */
  async forget({ name }: Pick<OAuthServer, 'name'>, issuer: string): Promise<void> {
    await this.#deps.state.take(this.#keyOf(callbackOf('registered', name, issuer)))
  }

  async #findRegistered(callback: string): Promise<OAuthClient | undefined> {
    const key = this.#keyOf(callback)
    const kept = await this.#deps.state.get(key)
    const opened = typeof kept === 'string' ? await this.#deps.sealer.open(kept, key) : undefined
    return opened === undefined ? undefined : (readOwnJson(opened) as OAuthClient)
  }

  async #register(server: oauth.AuthorizationServer, callback: string, fetch: GuardedFetch): Promise<OAuthClient> {
    const { state, sealer, publicUrl } = this.#deps
    const metadata = metadataOf(publicUrl, callback)
    const response = await oauth.dynamicClientRegistrationRequest(server, metadata, {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: standardFetch(fetch, 201),
    })
    const registered = await oauth.processDynamicClientRegistrationResponse(response).catch((cause: unknown) => {
      throw new ConnectProblem(`the authorization server registered no client (${response.status})`, { cause })
    })
    const { client_id: id, client_secret: secret, client_secret_expires_at: endsAt = 0 } = registered
    const client: OAuthClient = { id, ...(typeof secret === 'string' ? { secret } : {}) }
    const key = this.#keyOf(callback)
    const ends = typeof endsAt === 'number' && endsAt > 0 ? { expiresAt: endsAt * 1000 } : {}
    await state.set(key, await sealer.seal(JSON.stringify(client), key), ends)
    return client
  }

  #keyOf(callback: string): string {
    return CLIENTS + hash('sha256', `${this.#deps.publicUrl}${callback}`, 'base64url')
  }
}

/** Whether an authorization server declares that each of its answers contains `iss` (RFC 9207). */
export function namesIssuer(server: oauth.AuthorizationServer): boolean {
  return server.authorization_response_iss_parameter_supported === true
}

/** Returns how a client authenticates at the token endpoint. */
export function authenticationOf({ secret }: OAuthClient, server: oauth.AuthorizationServer): oauth.ClientAuth {
  if (secret === undefined) return oauth.None()
  const methods: unknown = server.token_endpoint_auth_methods_supported
  const takesBasic = !Array.isArray(methods) || methods.includes('client_secret_basic')
  return takesBasic ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret)
}

/** Whether an authorization server's error means that it does not know the client. */
export function isUnknownClient(error: unknown): boolean {
  return codeOf(error) === 'invalid_client'
}

/** Returns the error code of an answer (RFC 6749 §5.2). */
export function codeOf(error: unknown): string | undefined {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) return error.error
  return error instanceof Error && isObject(error.cause) && error.cause instanceof Error
    ? codeOf(error.cause)
    : undefined
}
