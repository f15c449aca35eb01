import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { TokenProblem } from './claims.ts'
import type { Issuer, IssuerKeys } from './issuer.ts'

const JWT = /^[\w-]{1,4096}\.[\w-]{1,8192}\.[\w-]{0,2048}$/

/** Returns whether a token has the form of a signed JWT. */
export function isJwt(token: string): boolean {
  return JWT.test(token)
}

/** Returns the issuer that a JWT claims, which nothing has checked yet. */
export function claimedIssuer(token: string): string | undefined {
  return decodeJwt(token).iss
}

/** The claims of a verified access token. */
export interface VerifiedJwt {
  readonly claims: JWTPayload
  /** The keys that verified it. */
  readonly keys: IssuerKeys
}

/**
 * Verifies an access token of an issuer: signature, issuer, times and kind. The audience is the caller's to check.
 *
 * A key that is not known may be a new one: the keys are read again once.
 *
 * @throws {TokenProblem | errors.JOSEError}
 */
export async function verifyJwt(token: string, issuer: Issuer, nowMs: number): Promise<VerifiedJwt> {
  checkType(decodeProtectedHeader(token).typ)
  return withKeys(issuer, (keys) => verifyWith(keys, token, issuer, nowMs))
}

/** Verifies with the keys of an issuer, and once again with newer ones if the key is not among them. */
export async function withKeys<Value>(issuer: Issuer, verify: (keys: IssuerKeys) => Promise<Value>): Promise<Value> {
  const before = issuer.keys as IssuerKeys
  try {
    return await verify(before)
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
    await issuer.refresh()
    if (!issuer.keys || issuer.keys === before) throw error
    return verify(issuer.keys)
  }
}

async function verifyWith(keys: IssuerKeys, token: string, { config }: Issuer, nowMs: number): Promise<VerifiedJwt> {
  const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
    issuer: config.issuer,
    algorithms: [...config.algorithms],
    clockTolerance: config.clockSkewMs / 1000,
    currentDate: new Date(nowMs),
    requiredClaims: ['exp', 'aud'],
  })
  checkClaims(payload, nowMs + config.clockSkewMs)
  checkIsAccessToken(payload, protectedHeader.typ)
  return { claims: payload, keys }
}

/** RFC 9068 §2.1. Many issuers write `JWT`, or nothing. */
const ACCESS_TOKEN = /^(?:application\/)?at\+jwt$/i
const ANY_TOKEN = /^(?:application\/)?(?:at\+)?jwt$/i

function checkType(typ: string | undefined): void {
  if (typ !== undefined && !ANY_TOKEN.test(typ))
    throw new TokenProblem('the token is of a type that is no access token')
}

/**
 * Checks what neither a signature nor an introspection says: that the token is of the present, and a bearer token.
 *
 * @throws {TokenProblem}
 */
export function checkClaims(claims: JWTPayload, latestMs: number): void {
  if (claims.iat !== undefined && claims.iat * 1000 > latestMs) throw new TokenProblem('the token is from the future')
  // Until the gateway checks the proof, the token would be one that anybody can use.
  if (claims['cnf'] !== undefined) throw new TokenProblem('the token is bound to a key, which the gateway cannot check')
}

/** Claims that only ID tokens have (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11). */
const OF_ID_TOKENS = ['nonce', 'at_hash', 'c_hash', 's_hash'] as const
const OTHER_KIND = /^(?:id|refresh|offline)$/i

/** An ID token is for the client that asked for it, a logout token has events. */
function checkIsAccessToken(claims: JWTPayload, typ: string | undefined): void {
  if (claims['events'] !== undefined) throw new TokenProblem('the token is a security event')
  if (typ !== undefined && ACCESS_TOKEN.test(typ)) return
  const isForClient = [claims.aud ?? []].flat().some((one) => one === claims['client_id'] || one === claims['azp'])
  const hasIdClaim = OF_ID_TOKENS.some((name) => claims[name] !== undefined)
  const isOther = [claims['token_use'], claims['typ']].some((kind) => typeof kind === 'string' && OTHER_KIND.test(kind))
  if (isForClient || hasIdClaim || isOther) throw new TokenProblem('the token is no access token')
}
