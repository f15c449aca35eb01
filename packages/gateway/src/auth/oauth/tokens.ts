import type { JWTPayload } from 'jose'
import type { Caller } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import type { OAuthConfig } from '../../config/oauth.ts'
import type { NamingIssuer } from '../../config/other-names.ts'
import type { Bearer, Credential, CredentialSource, Refusal } from '../credential.ts'
import { Identities, labelOf, lackOf } from './claims.ts'
import { IssuerError } from './fetch-json.ts'
import { hintFor, opaqueHint } from './hints.ts'
import { Introspection } from './introspection.ts'
import { Issuer, type IssuerKeys } from './issuer.ts'
import { checkIsAccessToken, checkIsBearer, checkTimes, isJwt, isOf, parseJwt, verifyJwt } from './jwt.ts'
import type { IssuedTo } from '../issued-to.ts'
import type { Logouts } from './logouts.ts'
import type { TokenRefusals } from './refusals.ts'
import { remember } from './remember.ts'
import { shown, toPaths } from './audience.ts'
import { TokenCredential } from './token-credential.ts'
import { TokenProblem, type TokenReason } from './token-problem.ts'

export interface TokensDeps {
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  /** The origin of the endpoints: the main one is `<publicUrl>/mcp`. */
  readonly publicUrl: string
  readonly refusals: Pick<TokenRefusals, 'add' | 'note'>
  /** The logouts that issuers have reported. */
  readonly logouts?: Pick<Logouts, 'hasEnded' | 'isRead'>
  /** All issuers that name people. Default: those of the tokens. */
  readonly naming?: readonly NamingIssuer[] | undefined
}

/** A verified token. */
interface VerifiedToken {
  readonly credential: Credential
  /** The paths of the endpoints that the token opens; `undefined` for all endpoints. */
  readonly paths: readonly string[] | undefined
  readonly audience: JWTPayload['aud']
  readonly source: TokenSource
  readonly issuedTo: IssuedTo
  /** Absent if the token does not say. */
  readonly issuedAtMs: number | undefined
  /** The keys that verified the token. Absent for tokens that are not a JWT. */
  readonly keys: IssuerKeys | undefined
  readonly expiresAtMs: number
  /** When the introspection's answer expires, on the monotonic clock. */
  readonly activeUntilMs: number
  /** The token itself. Present if it must be introspected again. */
  readonly bearer?: Bearer
}

/** Why a token is refused. `undefined` means that the token is from no configured issuer. */
interface TokenRefusal extends Refusal {
  readonly reason: TokenReason
  readonly detail: string
}

type Checked = VerifiedToken | TokenRefusal | undefined

/** An authorization server, and how its tokens are checked. */
interface TokenSource {
  readonly issuer: Issuer
  readonly introspection: Introspection | undefined
}

const MAX_VERDICTS = 10_000
const EXPIRED: TokenRefusal = { refused: 'unknown', reason: 'expired', detail: 'the token has expired ("exp")' }

/**
 * Verifies access tokens, and caches those that are valid.
 *
 * A cached token ends when the token expires, the key that verified it is withdrawn, or the introspection's answer
 * expires. While an issuer cannot be reached, known tokens stay valid until they expire, and new ones are refused.
 */
export class Tokens implements CredentialSource {
  readonly #deps: TokensDeps
  readonly #sources: ReadonlyMap<string, TokenSource>
  /** By the digest of the token, oldest first. */
  readonly #verdicts = new Map<string, VerifiedToken>()
  readonly #checking = new Map<string, Promise<Checked>>()
  /** The digest of the last used token of each id, oldest first. */
  readonly #latest = new Map<string, string>()
  /**
   * The expiries that were noticed, by the digest of the token, oldest first. If the clock is set back, they stay
   * expired.
   */
  readonly #over = new Map<string, number>()
  readonly #identities: Identities

  constructor({ issuers }: OAuthConfig, deps: TokensDeps) {
    this.#deps = deps
    const nameOf = (issuer: string) => this.#sources.get(issuer)?.issuer.config.name
    this.#identities = new Identities(nameOf, deps.naming ?? issuers)
    this.#sources = new Map(
      issuers
        .map((config) => {
          const issuer = new Issuer(config, deps.clock)
          const introspection = config.introspection && new Introspection(issuer, config.introspection, deps.clock)
          return [config, { issuer, introspection }] as const
        })
        .flatMap(([{ issuer, issuerAliases = [] }, source]) => [issuer, ...issuerAliases].map((iss) => [iss, source])),
    )
  }

  get issuers(): readonly Issuer[] {
    return [...new Set([...this.#sources.values()].map(({ issuer }) => issuer))]
  }

  /** Reads the keys of all issuers. */
  async start(): Promise<void> {
    await Promise.all(this.issuers.map((issuer) => issuer.refresh()))
  }

  /** Returns the callers of the tokens that are valid now, one for each token. */
  callers(): readonly Caller[] {
    return [...this.#verdicts.values()].flatMap((verdict) => (this.#holds(verdict) ? [verdict.credential.caller] : []))
  }

  async find(bearer: Bearer, resource: string): Promise<Credential | Refusal | undefined> {
    const { digest } = bearer
    const verdict = this.#verdicts.get(digest)
    if (verdict && this.#holds(verdict)) {
      const { id } = verdict.credential
      if (this.#latest.get(id) !== digest) remember(this.#latest, id, digest, MAX_VERDICTS)
      return this.#answer(verdict, bearer, resource)
    }
    return this.#answer(await this.#check(bearer), bearer, resource)
  }

  #answer(checked: Checked, { token }: Bearer, resource: string): Credential | Refusal | undefined {
    if (checked && 'paths' in checked && (checked.paths === undefined || checked.paths.includes(resource)))
      return checked.credential
    const { publicUrl, refusals } = this.#deps
    if (checked && 'paths' in checked) {
      const hint = hintFor('audience', this.#claimedBy(token).claims ?? {})
      const detail = `the audience is ${shown(checked.audience)}, expected ${publicUrl}${resource}${hint}`
      refusals.add(checked.source.issuer.config.name, 'audience', detail)
      return { refused: 'unknown', detail }
    }
    const { claims, source } = this.#claimedBy(token)
    const opaque = claims ? undefined : opaqueHint(token)
    if (checked) {
      const detail = checked.detail + hintFor(checked.reason, claims ?? {})
      refusals.add(source?.issuer.config.name ?? 'unknown', checked.reason, detail)
    } else if (claims) {
      const detail = `the issuer is ${shown(claims.iss)}, which is not configured${hintFor('issuer', claims)}`
      refusals.add('unknown', 'issuer', detail)
    } else if (opaque !== undefined) refusals.add('unknown', 'malformed', opaque)
    return checked
  }

  /** Returns the claims of a token and the issuer that it names, without verifying them. */
  #claimedBy(token: string): { readonly claims?: JWTPayload; readonly source: TokenSource | undefined } {
    if (!isJwt(token)) return { source: this.#opaqueSource }
    try {
      const { claims } = parseJwt(token)
      return { claims, source: this.#sources.get(claims.iss ?? '') }
    } catch {
      return { source: undefined }
    }
  }

  current(id: string): Credential | undefined {
    return this.#today(this.#latest.get(id))
  }

  renewed(credential: Credential): Credential | undefined {
    return this.#today(TokenCredential.digestOf(credential))
  }

  /**
   * Returns the current credential. It starts an introspection that is due, whose answer applies from the next request
   * on.
   */
  #today(digest: string | undefined): Credential | undefined {
    const verdict = digest === undefined ? undefined : this.#verdicts.get(digest)
    if (!verdict || !this.#isValid(verdict)) return undefined
    const { bearer, credential } = verdict
    if (bearer && !this.#holds(verdict)) void this.#check(bearer)
    return credential
  }

  #holds(verdict: VerifiedToken): boolean {
    return this.#isValid(verdict) && this.#deps.clock.monotonicMs() < verdict.activeUntilMs
  }

  #isValid(verdict: VerifiedToken): boolean {
    const { keys } = verdict
    const { issuer } = verdict.source
    if (keys && !issuer.isFresh) void issuer.refresh()
    return (!keys || keys === issuer.keys) && !this.#isOver(verdict) && !this.#isLoggedOut(verdict)
  }

  #isLoggedOut({ source, issuedTo, issuedAtMs }: Pick<VerifiedToken, 'source' | 'issuedTo' | 'issuedAtMs'>): boolean {
    return this.#deps.logouts?.hasEnded(source.issuer.config.name, issuedTo, issuedAtMs) === true
  }

  /** Forgets the tokens whose session has ended at the issuer. Returns their callers that no other token has. */
  dropLoggedOut(): readonly Caller[] {
    const dropped = [...this.#verdicts].filter(([, verdict]) => this.#isLoggedOut(verdict))
    for (const [digest] of dropped) this.#verdicts.delete(digest)
    const left = new Set(this.callers())
    return [...new Set(dropped.map(([, { credential }]) => credential.caller))].filter((caller) => !left.has(caller))
  }

  #isOver({ credential, expiresAtMs }: VerifiedToken): boolean {
    const digest = TokenCredential.digestOf(credential) ?? ''
    if ((this.#over.get(digest) ?? -Infinity) >= expiresAtMs) return true
    const isOver = this.#deps.clock.wallMs() >= expiresAtMs
    if (isOver) remember(this.#over, digest, expiresAtMs, MAX_VERDICTS)
    return isOver
  }

  /** Verifies a token once for all concurrent requests that send it. */
  #check(bearer: Bearer): Promise<Checked> {
    const { digest } = bearer
    const running = this.#checking.get(digest)
    if (running) return running
    const checking = this.#verify(bearer)
      .then((checked) => this.#keep(bearer, checked))
      .finally(() => this.#checking.delete(digest))
    this.#checking.set(digest, checking)
    return checking
  }

  #keep({ digest, token }: Bearer, checked: Checked): Checked {
    if (checked && 'paths' in checked && !this.#isOver(checked)) {
      remember(this.#verdicts, digest, checked, MAX_VERDICTS)
      remember(this.#latest, checked.credential.id, digest, MAX_VERDICTS)
      return checked
    }
    this.#verdicts.delete(digest)
    if (checked && 'paths' in checked) return EXPIRED
    // The signature is verified before the times, and a JWT's expiry never changes.
    if (checked?.reason === 'expired' && isJwt(token)) remember(this.#over, digest, Infinity, MAX_VERDICTS)
    return checked
  }

  async #verify(bearer: Bearer): Promise<Checked> {
    try {
      return await (isJwt(bearer.token) ? this.#verifyJwt(bearer) : this.#verifyOpaque(bearer))
    } catch (error) {
      return toRefusal(error)
    }
  }

  async #verifyJwt(bearer: Bearer): Promise<VerifiedToken | undefined> {
    const jwt = parseJwt(bearer.token)
    const source = this.#sources.get(jwt.claims.iss ?? '')
    if (!source) return undefined
    checkIsAccessToken(jwt)
    const known = this.#known(bearer)
    const { issuer, introspection } = source
    if (!issuer.isFresh && !known) {
      await issuer.refresh()
      if (!issuer.isFresh) throw new IssuerError(issuer.problem ?? 'the keys of the issuer are not known')
    }
    const { claims, keys } = await verifyJwt(jwt, issuer, this.#deps.clock.wallMs())
    const verdict = this.#toVerdict(bearer.digest, source, claims, keys)
    if (introspection?.config.tokens !== 'always') return verdict
    return withActivity(introspection, bearer, known && verdict, () => verdict)
  }

  /** The issuer that introspects tokens that are not a JWT, as these do not name their issuer. */
  get #opaqueSource(): TokenSource | undefined {
    return [...this.#sources.values()].find(({ introspection }) => introspection)
  }

  async #verifyOpaque(bearer: Bearer): Promise<VerifiedToken | undefined> {
    const { digest } = bearer
    const before = this.#verdicts.get(digest)
    const source = before?.source ?? this.#opaqueSource
    if (!source?.introspection) return undefined
    return withActivity(source.introspection, bearer, this.#known(bearer), (claims) =>
      this.#toVerdict(digest, source, this.#checkOpaque(claims, source), undefined),
    )
  }

  #known({ digest }: Bearer): VerifiedToken | undefined {
    const verdict = this.#verdicts.get(digest)
    return verdict && this.#isValid(verdict) ? verdict : undefined
  }

  /** RFC 7662 §2.2: most fields are optional. Without an expiry, a token is cached only as long as one answer. */
  #checkOpaque(claims: JsonObject, { issuer: { config }, introspection }: TokenSource): JWTPayload {
    const wallMs = this.#deps.clock.wallMs()
    const { exp = (wallMs + (introspection?.config.cacheMs ?? 0)) / 1000, iss = config.issuer } = claims
    if (!isOf(config, iss)) throw new TokenProblem('issuer', 'the token is of another issuer')
    const checked = { ...claims, exp } as JWTPayload
    checkTimes(checked, config, wallMs)
    checkIsBearer(checked)
    return checked
  }

  #toVerdict(digest: string, source: TokenSource, claims: JWTPayload, keys: IssuerKeys | undefined): VerifiedToken {
    const { config } = source.issuer
    const expiresAtMs = (claims.exp as number) * 1000 + config.clockSkewMs
    const identity = this.#identities.of(claims, config)
    const issued = { source, issuedTo: toIssuedTo(claims), issuedAtMs: claims.iat && claims.iat * 1000 }
    if (this.#deps.logouts?.isRead === false) throw new IssuerError('the logouts of the issuer are not known yet')
    if (this.#isLoggedOut(issued)) throw new TokenProblem('logged_out', 'the issuer has ended the session of the token')
    const lack = lackOf(claims, identity.caller, config)
    if (lack !== undefined) this.#deps.refusals.note(config.name, lack)
    const label = labelOf(claims)
    const credential = new TokenCredential(digest, identity, { issuer: config.issuer, expiresAtMs, label })
    const paths = toPaths(claims.aud, config.audiences, this.#deps.publicUrl)
    return {
      credential,
      paths,
      audience: claims.aud,
      ...issued,
      keys,
      expiresAtMs,
      activeUntilMs: Number.POSITIVE_INFINITY,
    }
  }
}

/** Introspects a token. If the request fails, a token that was verified before stays valid. */
async function withActivity(
  introspection: Introspection,
  bearer: Bearer,
  known: VerifiedToken | undefined,
  toVerdict: (claims: JsonObject) => VerifiedToken,
): Promise<VerifiedToken> {
  const { claims, untilMs } = await introspection.ask(bearer, known !== undefined)
  const verdict = claims ? toVerdict(claims) : (known as VerifiedToken)
  return { ...verdict, activeUntilMs: untilMs, bearer }
}

function toIssuedTo({ sub, sid }: JsonObject): IssuedTo {
  return { ...(typeof sub === 'string' && { sub }), ...(typeof sid === 'string' && { sid }) }
}

function toRefusal(error: unknown): TokenRefusal {
  const detail = messageOf(error)
  if (error instanceof IssuerError) return { refused: 'unavailable', reason: 'issuer_down', detail }
  return { refused: 'unknown', reason: error instanceof TokenProblem ? error.reason : 'malformed', detail }
}
