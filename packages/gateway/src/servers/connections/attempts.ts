import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readOwnJson } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { SecretSealer } from '../../util/sealer.ts'
import type { OAuthClient } from './clients.ts'
import { type ConnectionKey, digestOf } from './connection-store.ts'
import { ConnectProblem } from './problem.ts'

/** The data that is stored while a user signs in elsewhere. */
export interface ConnectAttempt extends ConnectionKey {
  readonly of: string
  readonly issuer: string
  readonly client: OAuthClient
  readonly resource: string
  readonly scopes?: readonly string[] | undefined
  readonly verifier: string
  /** The path at which the answer arrives. */
  readonly callback: string
  /**
   * Whether the answer must contain `iss`, according to the authorization server's metadata at the start of the
   * attempt.
   */
  readonly namesIssuer: boolean
}

/** The answer of an authorization server, and the URL at which it arrived. */
export interface AttemptAnswer {
  readonly state: string
  readonly callback: string
  readonly iss?: string | undefined
}

interface AttemptsDeps {
  readonly state: StateStore
  readonly sealer: SecretSealer
  readonly clock: Pick<Clock, 'wallMs'>
}

export const ATTEMPT_MS: number = 10 * 60_000
const ATTEMPTS = 'gateway/connection-attempts/'
const PART = /^[\w-]{43}$/

/**
 * The running attempts to connect, sealed in the state store.
 *
 * An attempt is found only with both its `state` and the secret in the browser's cookie, and only once.
 */
export class Attempts {
  readonly #deps: AttemptsDeps

  constructor(deps: AttemptsDeps) {
    this.#deps = deps
  }

  /**
   * Begins an attempt, which replaces an earlier one. Returns the `state` for the authorization server, and the secret
   * for the browser.
   */
  async begin(attempt: ConnectAttempt): Promise<{ readonly state: string; readonly secret: string }> {
    const { state: store, sealer, clock } = this.#deps
    const [code, secret] = [random(), random()]
    const owner = digestOf(attempt)
    // Each user has one attempt: the latest.
    for (const { key } of await store.list(`${ATTEMPTS}${owner}/`)) await store.take(key)
    const text = JSON.stringify({ attempt, secret: digest(secret) })
    const kept = { sealed: await sealer.seal(text, ['attempt', digest(code)]) }
    await store.set(`${ATTEMPTS}${owner}/${digest(code)}`, kept, { expiresAt: clock.wallMs() + ATTEMPT_MS })
    return { state: `${owner}.${code}`, secret }
  }

  /**
   * Ends an attempt, and returns it. @throws {ConnectProblem} for an attempt that is unknown, expired, used, or of
   * another browser, user or authorization server
   */
  async finish(
    { state, callback, iss }: AttemptAnswer,
    secret: string,
    person: Pick<ConnectionKey, 'user' | 'tenant'>,
  ): Promise<ConnectAttempt> {
    const [owner = '', code = ''] = state.split('.')
    if (!PART.test(owner) || !PART.test(code)) throw unknownAttempt()
    const key = `${ATTEMPTS}${owner}/${digest(code)}`
    const kept = (await this.#deps.state.get(key)) as { readonly sealed: string } | undefined
    const text = kept && (await this.#deps.sealer.open(kept.sealed, ['attempt', digest(code)]))
    if (text === undefined) throw unknownAttempt()
    const { attempt, secret: known } = readOwnJson(text) as {
      readonly attempt: ConnectAttempt
      readonly secret: string
    }
    const isSameBrowser = timingSafeEqual(Buffer.from(known), Buffer.from(digest(secret)))
    if (!isSameBrowser || attempt.user !== person.user || attempt.tenant !== person.tenant) throw unknownAttempt()
    const isOfIssuer = attempt.namesIssuer ? iss === attempt.issuer : iss === undefined || iss === attempt.issuer
    if (attempt.callback !== callback || !isOfIssuer) throw unknownAttempt()
    // The entry is removed after all other checks, so that nobody else can use up an attempt.
    if ((await this.#deps.state.take(key)) === undefined) throw unknownAttempt()
    return attempt
  }
}

/** Returns one error for all cases, so that a forged answer reveals nothing. */
function unknownAttempt(): ConnectProblem {
  return new ConnectProblem(
    'this attempt is over, or began in another browser, as another user or at another authorization server',
  )
}

function random(): string {
  return randomBytes(32).toString('base64url')
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url')
}
