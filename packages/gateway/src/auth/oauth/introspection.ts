import { isObject, type JsonObject } from '@toolgate/values/json'
import type { IntrospectionConfig } from '../../config/oauth.ts'
import type { Clock } from '@toolgate/core/stores'
import type { Bearer } from '../credential.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
import type { Issuer } from './issuer.ts'
import { remember } from './remember.ts'
import { TokenProblem } from './token-problem.ts'

/**
 * The maximum number of concurrent requests to one authorization server, so that unknown tokens cannot cause a flood.
 */
const MAX_RUNNING = 50
const MAX_INACTIVE = 1_000
/** How long a known token stays valid after a failed request, before the request is repeated. */
const RETRY_MS = 5_000

/** The result of an introspection of an active token. */
interface Activity {
  /** Absent for a known token if the authorization server does not answer. */
  readonly claims: JsonObject | undefined
  /** When the result expires, on the monotonic clock. */
  readonly untilMs: number
}

/** Asks an authorization server whether a token is active (RFC 7662). */
export class Introspection {
  readonly config: IntrospectionConfig
  readonly #issuer: Issuer
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** The digests of inactive tokens and when to ask again, oldest first. */
  readonly #inactive = new Map<string, number>()
  #running = 0

  constructor(issuer: Issuer, config: IntrospectionConfig, clock: Pick<Clock, 'monotonicMs'>) {
    this.#issuer = issuer
    this.config = config
    this.#clock = clock
  }

  /**
   * Asks about a token. The limit of requests does not apply to known tokens: otherwise somebody could send many other
   * tokens to keep a revoked one valid.
   *
   * @throws {TokenProblem} for a token that is not active
   * @throws {IssuerError}
   */
  async ask({ token, digest }: Bearer, isKnown: boolean): Promise<Activity> {
    const nowMs = this.#clock.monotonicMs()
    if ((this.#inactive.get(digest) ?? nowMs) > nowMs) throw new TokenProblem('inactive', INACTIVE)
    if (this.#running >= MAX_RUNNING && !isKnown) throw new IssuerError('too many introspections are running')
    const untilMs = nowMs + this.config.cacheMs
    this.#running++
    try {
      const claims = await this.#ask(token)
      if (claims) return { claims, untilMs }
    } catch (error) {
      if (!isKnown || !(error instanceof IssuerError)) throw error
      return { claims: undefined, untilMs: Math.min(nowMs + RETRY_MS, untilMs) }
    } finally {
      this.#running--
    }
    remember(this.#inactive, digest, untilMs, MAX_INACTIVE)
    throw new TokenProblem('inactive', INACTIVE)
  }

  /** Returns the claims of an active token; `undefined` for an inactive one. */
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
      proxy: this.#issuer.config.proxy,
    })
    if (status !== 200 || !isObject(body) || typeof body['active'] !== 'boolean')
      throw new IssuerError(`${endpoint} answered ${status} without "active"`)
    return body['active'] ? body : undefined
  }
}

const INACTIVE = 'the token is not active'

/** RFC 6749 §2.3.1: each part is form-encoded. */
export function toBasic(id: string, secret: string): string {
  const encode = (part: string) => new URLSearchParams({ '': part }).toString().slice(1)
  return Buffer.from(`${encode(id)}:${encode(secret)}`).toString('base64')
}
