import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from 'jose'
import type { Caller } from '@toolgate/core'
import { callerKey, messageOf } from '@toolgate/core/internal'
import type { MaybePromise } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'
import type { OAuthConfig } from '../../config/oauth.ts'
import type { Bearer, Credential, CredentialSource, Refusal } from '../credential.ts'
import { toIdentity, TokenProblem } from './claims.ts'
import { Issuer, type IssuerKeys } from './issuer.ts'

export interface TokensDeps {
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  /** The origin of the resources: an endpoint is `<publicUrl>/mcp`. */
  readonly publicUrl: string
}

/** A verified token. */
interface Verdict {
  readonly credential: Credential
  /** The paths of the endpoints that it opens; `undefined`: every one. */
  readonly paths: ReadonlySet<string> | undefined
  readonly issuer: Issuer
  /** The keys that verified it. */
  readonly keys: IssuerKeys
  readonly expiresAtMs: number
}

const MAX_VERDICTS = 10_000
const JWT = /^[\w-]{1,4096}\.[\w-]{1,8192}\.[\w-]{0,2048}$/

/** Verifies access tokens, and remembers those that it has verified. */
export class Tokens implements CredentialSource {
  readonly issuers: readonly Issuer[]
  readonly #deps: TokensDeps
  readonly #byUrl: ReadonlyMap<string, Issuer>
  /** By the digest of the token, oldest first. */
  readonly #verdicts = new Map<string, Verdict>()
  /** The latest credential of each id, oldest first. */
  readonly #current = new Map<string, Verdict>()
  /** Equal callers are one object, so that a refreshed token finds the same views. */
  readonly #callers = new Map<string, Caller>()

  constructor({ issuers }: OAuthConfig, deps: TokensDeps) {
    this.#deps = deps
    this.issuers = issuers.map((config) => new Issuer(config, deps.clock))
    this.#byUrl = new Map(this.issuers.map((issuer) => [issuer.config.issuer, issuer]))
  }

  /** Reads the keys of all issuers. */
  async start(): Promise<void> {
    await Promise.all(this.issuers.map((issuer) => issuer.refresh()))
  }

  find({ token, digest }: Bearer, resource: string): MaybePromise<Credential | Refusal | undefined> {
    const verdict = this.#verdicts.get(digest)
    if (verdict && this.#holds(verdict)) return admit(verdict, resource)
    return JWT.test(token) ? this.#verify(token, digest, resource) : undefined
  }

  current(id: string): Credential | undefined {
    const verdict = this.#current.get(id)
    return verdict && this.#holds(verdict) ? verdict.credential : undefined
  }

  #holds({ issuer, keys, expiresAtMs }: Verdict): boolean {
    if (!issuer.isFresh) void issuer.refresh()
    return keys === issuer.keys && this.#deps.clock.wallMs() < expiresAtMs
  }

  async #verify(token: string, digest: string, resource: string): Promise<Credential | Refusal | undefined> {
    try {
      const issuer = this.#issuerOf(token)
      if (!issuer) return undefined
      if (!issuer.isFresh) await issuer.refresh()
      if (!issuer.isFresh) return { refused: 'unavailable', detail: issuer.problem ?? 'its keys are not known' }
      const verdict = await this.#verdictOf(token, issuer)
      remember(this.#verdicts, digest, verdict)
      remember(this.#current, verdict.credential.id, verdict)
      return admit(verdict, resource)
    } catch (error) {
      return { refused: 'unknown', detail: detailOf(error) }
    }
  }

  /** The issuer is only claimed here. It is checked with the signature. */
  #issuerOf(token: string): Issuer | undefined {
    const { iss } = decodeJwt(token)
    return iss === undefined ? undefined : this.#byUrl.get(iss)
  }

  async #verdictOf(token: string, issuer: Issuer): Promise<Verdict> {
    const header = decodeProtectedHeader(token)
    checkType(header.typ)
    try {
      return await this.#verifyWith(issuer.keys as IssuerKeys, token, issuer)
    } catch (error) {
      const before = issuer.keys
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      await issuer.refresh()
      if (!issuer.keys || issuer.keys === before) throw error
      return this.#verifyWith(issuer.keys, token, issuer)
    }
  }

  async #verifyWith(keys: IssuerKeys, token: string, issuer: Issuer): Promise<Verdict> {
    const { config } = issuer
    const { clock, publicUrl } = this.#deps
    const options: JWTVerifyOptions = {
      issuer: config.issuer,
      algorithms: [...config.algorithms],
      clockTolerance: config.clockSkewMs / 1000,
      currentDate: new Date(clock.wallMs()),
      requiredClaims: ['exp', 'aud'],
    }
    const { payload, protectedHeader } = await jwtVerify(token, keys.find, options)
    checkClaims(payload, protectedHeader.typ, clock.wallMs() + config.clockSkewMs)
    const { caller, ...identity } = toIdentity(payload, config, (iss) => this.#byUrl.get(iss)?.config.name)
    const expiresAtMs = (payload.exp as number) * 1000 + config.clockSkewMs
    const credential: Credential = Object.freeze({
      ...identity,
      for: 'mcp',
      caller: this.#intern(caller),
      issuer: config.issuer,
      expiresAtMs,
    })
    return { credential, paths: toPaths(payload.aud, config.audiences, publicUrl), issuer, keys, expiresAtMs }
  }

  #intern(caller: Caller): Caller {
    const key = callerKey(caller)
    const known = this.#callers.get(key) ?? caller
    remember(this.#callers, key, known)
    return known
  }
}

function remember<Value>(kept: Map<string, Value>, key: string, value: Value): void {
  kept.delete(key)
  kept.set(key, value)
  if (kept.size > MAX_VERDICTS) kept.delete(kept.keys().next().value as string)
}

function admit({ credential, paths }: Verdict, resource: string): Credential | Refusal {
  return paths === undefined || paths.has(resource) ? credential : OTHER_AUDIENCE
}

const OTHER_AUDIENCE: Refusal = Object.freeze({ refused: 'unknown', detail: 'the token is for another audience' })

/** Returns the paths of the endpoints that an audience names. A listed audience opens every one. */
function toPaths(
  aud: JWTPayload['aud'],
  listed: readonly string[],
  publicUrl: string,
): ReadonlySet<string> | undefined {
  const audiences = [aud ?? []].flat()
  if (audiences.some((one) => listed.includes(one))) return undefined
  const own = audiences.filter((one) => one.startsWith(`${publicUrl}/`))
  return new Set(own.map((one) => one.slice(publicUrl.length)))
}

/** RFC 9068 §2.1. Many issuers write `JWT`, or nothing. */
const ACCESS_TOKEN = /^(?:application\/)?at\+jwt$/i
const ANY_TOKEN = /^(?:application\/)?(?:at\+)?jwt$/i

function checkType(typ: string | undefined): void {
  if (typ !== undefined && !ANY_TOKEN.test(typ))
    throw new TokenProblem('the token is of a type that is no access token')
}

/** Claims that only ID tokens have (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11). */
const OF_ID_TOKENS = ['nonce', 'at_hash', 'c_hash', 's_hash'] as const

/** @throws {TokenProblem} */
function checkClaims(claims: JWTPayload, typ: string | undefined, latestMs: number): void {
  if (claims.iat !== undefined && claims.iat * 1000 > latestMs) throw new TokenProblem('the token is from the future')
  // Until the gateway checks the proof, the token would be one that anybody can use.
  if (claims['cnf'] !== undefined) throw new TokenProblem('the token is bound to a key, which the gateway cannot check')
  if (claims['events'] !== undefined) throw new TokenProblem('the token is a security event')
  if (typ !== undefined && ACCESS_TOKEN.test(typ)) return
  const isForClient = [claims.aud ?? []].flat().some((one) => one === claims['client_id'] || one === claims['azp'])
  const kind = claims['token_use'] ?? claims['typ']
  if (
    isForClient ||
    OF_ID_TOKENS.some((name) => claims[name] !== undefined) ||
    /^(?:id|refresh|offline)$/i.test(String(kind))
  )
    throw new TokenProblem('the token is no access token')
}

function detailOf(error: unknown): string {
  return error instanceof TokenProblem || error instanceof errors.JOSEError ? error.message : messageOf(error)
}
