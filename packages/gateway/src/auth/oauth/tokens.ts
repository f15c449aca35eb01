import type { JWTPayload } from 'jose'
import type { Caller } from '@toolgate/core'
import { callerKey, type JsonObject, type MaybePromise, messageOf } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'
import type { OAuthConfig } from '../../config/oauth.ts'
import type { Bearer, Credential, CredentialSource, Refusal } from '../credential.ts'
import { toIdentity, TokenProblem } from './claims.ts'
import { IssuerError } from './fetch-json.ts'
import { Introspection } from './introspection.ts'
import { Issuer, type IssuerKeys } from './issuer.ts'
import { checkClaims, claimedIssuer, isJwt, verifyJwt } from './jwt.ts'

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
  readonly source: Source
  /** The keys that verified it. Absent for tokens that are no JWT. */
  readonly keys: IssuerKeys | undefined
  readonly expiresAtMs: number
  /** When the answer of an introspection ends, on the monotonic clock. */
  readonly activeUntilMs: number
  /** The token, if an introspection is asked about it again. */
  readonly bearer?: Bearer
}

/** An authorization server, and how its tokens are checked. */
interface Source {
  readonly issuer: Issuer
  readonly introspection: Introspection | undefined
}

const MAX_VERDICTS = 10_000
const MAX_REFUSED = 1_000
/** How long a known token goes on before an introspection that failed is tried again. */
const RETRY_MS = 5_000

/**
 * Verifies access tokens, and remembers those that it has verified.
 *
 * A verdict ends with the token, with the key that verified it, and with the answer of the introspection. While an issuer
 * cannot be reached, known tokens go on until they expire, and new ones are refused.
 */
export class Tokens implements CredentialSource {
  readonly #deps: TokensDeps
  readonly #sources: ReadonlyMap<string, Source>
  /** By the digest of the token, oldest first. */
  readonly #verdicts = new Map<string, Verdict>()
  readonly #checking = new Map<string, Promise<Verdict | Refusal | undefined>>()
  /** Tokens that an introspection does not know, until when. */
  readonly #inactive = new Map<string, number>()
  /** The digest of the token of each id that was used last, oldest first. */
  readonly #latest = new Map<string, string>()
  readonly #digests = new WeakMap<Credential, string>()
  /** Equal callers are one object, so that a refreshed token finds the same views. */
  readonly #callers = new Map<string, Caller>()

  constructor({ issuers }: OAuthConfig, deps: TokensDeps) {
    this.#deps = deps
    this.#sources = new Map(
      issuers.map((config) => {
        const issuer = new Issuer(config, deps.clock)
        const introspection = config.introspection && new Introspection(issuer, config.introspection)
        return [config.issuer, { issuer, introspection }]
      }),
    )
  }

  get issuers(): readonly Issuer[] {
    return [...this.#sources.values()].map(({ issuer }) => issuer)
  }

  /** Reads the keys of all issuers. */
  async start(): Promise<void> {
    await Promise.all(this.issuers.map((issuer) => issuer.refresh()))
  }

  find({ token, digest }: Bearer, resource: string): MaybePromise<Credential | Refusal | undefined> {
    const verdict = this.#verdicts.get(digest)
    if (verdict && this.#holds(verdict)) {
      const { id } = verdict.credential
      if (this.#latest.get(id) !== digest) remember(this.#latest, id, digest)
      return admit(verdict, resource)
    }
    return this.#check(token, digest).then((checked) =>
      checked && 'paths' in checked ? admit(checked, resource) : checked,
    )
  }

  current(id: string): Credential | undefined {
    return this.#today(this.#latest.get(id))
  }

  renewed(credential: Credential): Credential | undefined {
    return this.#today(this.#digests.get(credential))
  }

  /** An introspection that is due begins here, and its answer counts from the next time. */
  #today(digest: string | undefined): Credential | undefined {
    const verdict = digest === undefined ? undefined : this.#verdicts.get(digest)
    if (!verdict || !this.#isValid(verdict)) return undefined
    const { bearer, credential } = verdict
    if (bearer && !this.#holds(verdict)) void this.#check(bearer.token, bearer.digest)
    return credential
  }

  #holds(verdict: Verdict): boolean {
    return this.#isValid(verdict) && this.#deps.clock.monotonicMs() < verdict.activeUntilMs
  }

  #isValid({ source: { issuer }, keys, expiresAtMs }: Verdict): boolean {
    if (keys && !issuer.isFresh) void issuer.refresh()
    return (!keys || keys === issuer.keys) && this.#deps.clock.wallMs() < expiresAtMs
  }

  /** Verifies a token once for all requests that bring it now. */
  #check(token: string, digest: string): Promise<Verdict | Refusal | undefined> {
    const running = this.#checking.get(digest)
    if (running) return running
    const checking = this.#verify(token, digest)
      .then((verdict) => {
        if (verdict && 'paths' in verdict) this.#remember(digest, verdict)
        else this.#verdicts.delete(digest)
        return verdict
      })
      .finally(() => this.#checking.delete(digest))
    this.#checking.set(digest, checking)
    return checking
  }

  async #verify(token: string, digest: string): Promise<Verdict | Refusal | undefined> {
    try {
      return isJwt(token) ? await this.#verifyJwt(token, digest) : await this.#verifyOpaque(token, digest)
    } catch (error) {
      const refused = error instanceof IssuerError ? 'unavailable' : 'unknown'
      return { refused, detail: messageOf(error) }
    }
  }

  async #verifyJwt(token: string, digest: string): Promise<Verdict | undefined> {
    const source = this.#sources.get(claimedIssuer(token) ?? '')
    if (!source) return undefined
    const { issuer, introspection } = source
    const known = this.#verdicts.get(digest)
    const isKnown = known !== undefined && this.#isValid(known)
    if (!issuer.isFresh && !isKnown) {
      await issuer.refresh()
      if (!issuer.isFresh) throw new IssuerError(issuer.problem ?? 'the keys of the issuer are not known')
    }
    const verified = await verifyJwt(token, issuer, this.#deps.clock.wallMs())
    const verdict = this.#toVerdict(source, verified.claims, verified.keys)
    if (introspection?.config.tokens !== 'always') return verdict
    return this.#introspected(introspection, token, digest, isKnown, () => verdict)
  }

  async #verifyOpaque(token: string, digest: string): Promise<Verdict | undefined> {
    const known = this.#verdicts.get(digest)
    const sources = known ? [known.source] : [...this.#sources.values()]
    for (const source of sources) {
      const { introspection } = source
      if (!introspection) continue
      const isKnown = known !== undefined && this.#isValid(known)
      const toVerdict = (claims: JsonObject) => this.#toVerdict(source, this.#checkOpaque(claims, source), undefined)
      return this.#introspected(introspection, token, digest, isKnown, (claims) => (claims ? toVerdict(claims) : known))
    }
    return undefined
  }

  /** Asks whether the token is active. A known token goes on while the answer fails. */
  async #introspected(
    introspection: Introspection,
    token: string,
    digest: string,
    isKnown: boolean,
    toVerdict: (claims: JsonObject | undefined) => Verdict | undefined,
  ): Promise<Verdict | undefined> {
    const nowMs = this.#deps.clock.monotonicMs()
    if ((this.#inactive.get(digest) ?? nowMs) > nowMs) throw new TokenProblem('the token is not active')
    const { cacheMs } = introspection.config
    try {
      const claims = await introspection.ask(token, isKnown)
      if (claims) {
        const verdict = toVerdict(claims)
        return verdict && { ...verdict, activeUntilMs: nowMs + cacheMs, bearer: { token, digest } }
      }
    } catch (error) {
      const verdict = isKnown && error instanceof IssuerError ? toVerdict(undefined) : undefined
      if (!verdict) throw error
      return { ...verdict, activeUntilMs: nowMs + Math.min(RETRY_MS, cacheMs), bearer: { token, digest } }
    }
    remember(this.#inactive, digest, nowMs + cacheMs, MAX_REFUSED)
    throw new TokenProblem('the token is not active')
  }

  /** RFC 7662 §2.2: what is absent is not known. Without an end, a token is known for one answer only. */
  #checkOpaque(claims: JsonObject, { issuer: { config }, introspection }: Source): JWTPayload {
    const wallMs = this.#deps.clock.wallMs()
    const { exp = (wallMs + (introspection?.config.cacheMs ?? 0)) / 1000, nbf = 0, iss = config.issuer } = claims
    if (iss !== config.issuer) throw new TokenProblem('the token is of another issuer')
    if (typeof exp !== 'number' || typeof nbf !== 'number' || nbf * 1000 > wallMs + config.clockSkewMs)
      throw new TokenProblem('the token is not valid now')
    if (exp * 1000 + config.clockSkewMs <= wallMs) throw new TokenProblem('the token has expired')
    const checked = { ...claims, exp } as JWTPayload
    checkClaims(checked, wallMs + config.clockSkewMs)
    return checked
  }

  #toVerdict(source: Source, claims: JWTPayload, keys: IssuerKeys | undefined): Verdict {
    const { config } = source.issuer
    const nameOf = (issuer: string) => this.#sources.get(issuer)?.issuer.config.name
    const { caller, ...identity } = toIdentity(claims, config, nameOf)
    const expiresAtMs = (claims.exp as number) * 1000 + config.clockSkewMs
    const credential: Credential = Object.freeze({
      ...identity,
      for: 'mcp',
      caller: this.#intern(caller),
      issuer: config.issuer,
      expiresAtMs,
    })
    const paths = toPaths(claims.aud, config.audiences, this.#deps.publicUrl)
    return { credential, paths, source, keys, expiresAtMs, activeUntilMs: Number.POSITIVE_INFINITY }
  }

  #remember(digest: string, verdict: Verdict): void {
    remember(this.#verdicts, digest, verdict)
    remember(this.#latest, verdict.credential.id, digest)
    this.#digests.set(verdict.credential, digest)
  }

  #intern(caller: Caller): Caller {
    const key = callerKey(caller)
    const known = this.#callers.get(key) ?? caller
    remember(this.#callers, key, known)
    return known
  }
}

function remember<Value>(kept: Map<string, Value>, key: string, value: Value, max: number = MAX_VERDICTS): void {
  kept.delete(key)
  kept.set(key, value)
  if (kept.size > max) kept.delete(kept.keys().next().value as string)
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
