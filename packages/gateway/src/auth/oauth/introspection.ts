import { isObject, type JsonObject } from '@toolgate/core/internal'
import type { IntrospectionConfig } from '../../config/oauth.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
import type { Issuer } from './issuer.ts'

/** Questions to one authorization server at a time. Unknown tokens must not make the gateway ask at will. */
const MAX_RUNNING = 50

/** Asks an authorization server whether a token is active (RFC 7662). */
export class Introspection {
  readonly config: IntrospectionConfig
  readonly #issuer: Issuer
  #running = 0

  constructor(issuer: Issuer, config: IntrospectionConfig) {
    this.#issuer = issuer
    this.config = config
  }

  /**
   * Returns the claims of an active token; `undefined` for any other.
   *
   * Known tokens are never turned away: by sending many others, somebody could keep a revoked one.
   *
   * @throws {IssuerError}
   */
  async ask(token: string, isKnown: boolean): Promise<JsonObject | undefined> {
    if (this.#running >= MAX_RUNNING && !isKnown) throw new IssuerError('too many introspections are running')
    this.#running++
    try {
      return await this.#ask(token)
    } finally {
      this.#running--
    }
  }

  async #ask(token: string): Promise<JsonObject | undefined> {
    if (this.#issuer.introspectionEndpoint === undefined) await this.#issuer.refresh()
    const endpoint = this.#issuer.introspectionEndpoint
    if (endpoint === undefined) throw new IssuerError('the metadata has no "introspection_endpoint"')
    const { clientId, clientSecret } = this.config
    const { status, body } = await fetchJson(endpoint, {
      method: 'POST',
      headers: {
        authorization: `Basic ${toBasic(clientId, clientSecret)}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    })
    if (status !== 200 || !isObject(body) || typeof body['active'] !== 'boolean')
      throw new IssuerError(`${endpoint} answered ${status} without "active"`)
    return body['active'] ? body : undefined
  }
}

/** RFC 6749 §2.3.1: each part is encoded as in a form. */
export function toBasic(id: string, secret: string): string {
  const encode = (part: string) => new URLSearchParams({ '': part }).toString().slice(1)
  return Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')
}
