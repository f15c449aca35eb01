import type { JWTPayload } from 'jose'
import { isObject, type JsonObject, readJson, readUtf8 } from '@toolgate/values/json'
import type { IssuerConfig } from '../../config/oauth.ts'
import { CLIENT_CLAIMS } from './claims.ts'
import type { Issuer, IssuerKeys } from './issuer.ts'
import { remember } from './remember.ts'
import { checkSignature, type Signed, UnknownKey } from './signature-keys.ts'
import { TokenProblem } from './token-problem.ts'

const JWT = /^[\w-]{1,4096}\.[\w-]{1,8192}\.[\w-]{0,2048}$/

/** Returns whether a token is formatted as a signed JWT. */
export function isJwt(token: string): boolean {
  return JWT.test(token)
}

/** A parsed JWT that is not verified yet. */
interface Jwt extends Signed {
  readonly typ: string | undefined
  readonly claims: JWTPayload
}

/** @throws {TokenProblem} */
export function parseJwt(token: string): Jwt {
  const signed = parseSigned(token)
  const claims: JWTPayload = objectIn(token.slice(token.indexOf('.') + 1, token.lastIndexOf('.')), 'claims')
  return { ...signed, claims }
}

/** Returns the header, the signed text and the signature, without the claims. @throws {TokenProblem} */
export function parseSigned(token: string): Signed & Pick<Jwt, 'typ'> {
  const end = token.lastIndexOf('.')
  const header = headerOf(token)
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  // A different text that decodes to the same bytes is a different token, so it is rejected.
  if (signature.toString('base64url') !== token.slice(end + 1))
    throw new TokenProblem('malformed', 'the signature is not base64url')
  return { ...header, text: token.slice(0, end), signature }
}

type Header = Pick<Jwt, 'alg' | 'kid' | 'typ'>

const MAX_HEADERS = 100
/** Parsed headers, by their text. All tokens of a key have the same header. */
const headers = new Map<string, Header>()

function headerOf(token: string): Header {
  const text = token.slice(0, token.indexOf('.'))
  const known = headers.get(text)
  if (known) return known
  const { alg, kid, typ, crit } = objectIn(text, 'header')
  if (typeof alg !== 'string') throw new TokenProblem('malformed', 'the header has no "alg"')
  if (!isText(kid) || !isText(typ)) throw new TokenProblem('malformed', 'the "kid" or "typ" of the header is no text')
  // RFC 7515 §4.1.11: the gateway supports no extensions.
  if (crit !== undefined) throw new TokenProblem('malformed', 'the header has a critical extension')
  const header = { alg, kid, typ }
  remember(headers, text, header, MAX_HEADERS)
  return header
}

/** Parses a part of a token, which is base64url of a JSON object in UTF-8 (RFC 7515 §5.2). */
function objectIn(part: string, name: 'header' | 'claims'): JsonObject {
  let value: unknown
  try {
    value = readJson(readUtf8(Buffer.from(part, 'base64url')))
  } catch (cause) {
    throw new TokenProblem('malformed', `the ${name} cannot be read: ${(cause as Error).message}`, { cause })
  }
  if (!isObject(value)) throw new TokenProblem('malformed', `the ${name} are not a JSON object`)
  return value
}

function isText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}

/** The claims of a verified token. */
interface VerifiedJwt {
  readonly claims: JWTPayload
  /** The keys that verified it. */
  readonly keys: IssuerKeys
}

/**
 * Verifies a token of an issuer: signature, issuer, and times.
 *
 * For an unknown key, the issuer's keys are read again once.
 *
 * @throws {TokenProblem}
 */
export async function verifyJwt(jwt: Jwt, issuer: Issuer, nowMs: number): Promise<VerifiedJwt> {
  const before = issuer.keys
  try {
    return verifyWith(before, jwt, issuer, nowMs)
  } catch (error) {
    if (!(error instanceof UnknownKey)) throw error
    await issuer.refresh()
    if (issuer.keys === before) throw error
    return verifyWith(issuer.keys, jwt, issuer, nowMs)
  }
}

function verifyWith(keys: IssuerKeys | undefined, jwt: Jwt, { config }: Issuer, nowMs: number): VerifiedJwt {
  if (!config.algorithms.includes(jwt.alg))
    throw new TokenProblem('algorithm', `the "alg" ${JSON.stringify(jwt.alg)} is not accepted`)
  if (!keys) throw new UnknownKey('key', 'the keys of the issuer are not known')
  checkSignature(jwt, keys.keys)
  const { claims } = jwt
  if (!isOf(config, claims.iss)) throw new TokenProblem('issuer', 'the "iss" is of another issuer')
  if (claims.exp === undefined) throw new TokenProblem('claims', 'the token has no "exp"')
  checkTimes(claims, config, nowMs)
  return { claims, keys }
}

/** Whether an `iss` is of an issuer. */
export function isOf({ issuer, issuerAliases = [] }: IssuerConfig, iss: unknown): boolean {
  return iss === issuer || issuerAliases.some((alias) => alias === iss)
}

/**
 * Checks the times of a token: it must not be expired, and not lie in the future.
 *
 * @throws {TokenProblem}
 */
export function checkTimes(
  claims: JsonObject,
  { clockSkewMs }: Pick<IssuerConfig, 'clockSkewMs'>,
  nowMs: number,
): void {
  const exp = timeOf(claims, 'exp')
  const nbf = timeOf(claims, 'nbf')
  const iat = timeOf(claims, 'iat')
  if (exp !== undefined && exp + clockSkewMs <= nowMs)
    throw new TokenProblem('expired', 'the token has expired ("exp")')
  if (nbf !== undefined && nbf > nowMs + clockSkewMs)
    throw new TokenProblem('early', 'the token is not valid yet ("nbf")')
  if (iat !== undefined && iat > nowMs + clockSkewMs)
    throw new TokenProblem('early', 'the token is from the future ("iat")')
}

/** Returns the time in a claim, in milliseconds. */
function timeOf(claims: JsonObject, name: string): number | undefined {
  const value = claims[name]
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TokenProblem('claims', `the claim "${name}" is not a number`)
  return value * 1000
}

/** RFC 9068 §2.1. Many issuers use `JWT`, or no type. */
const ACCESS_TOKEN = /^(?:application\/)?at\+jwt$/i
const ANY_TOKEN = /^(?:application\/)?(?:at\+)?jwt$/i
/** Claims that only ID tokens have (OpenID Connect Core §2, §3.1.3.6, §3.3.2.11). */
const OF_ID_TOKENS = ['nonce', 'at_hash', 'c_hash', 's_hash'] as const
const OTHER_KIND = /^(?:id|refresh|offline)$/i

/**
 * Checks that a token is an access token. An ID token is meant for the client that requested it, and a logout token has
 * `events`.
 *
 * @throws {TokenProblem}
 */
export function checkIsAccessToken({ typ, claims }: Pick<Jwt, 'typ' | 'claims'>): void {
  checkIsBearer(claims)
  if (typ !== undefined && !ANY_TOKEN.test(typ))
    throw new TokenProblem('kind', 'the token is of a type that is no access token')
  if (claims['events'] !== undefined) throw new TokenProblem('kind', 'the token is a security event')
  if (typ !== undefined && ACCESS_TOKEN.test(typ)) return
  const audiences = new Set<unknown>([claims.aud ?? []].flat())
  const client = CLIENT_CLAIMS.map((name) => claims[name]).find((one) => audiences.has(one))
  const hasIdClaim = OF_ID_TOKENS.some((name) => claims[name] !== undefined)
  const isOther = [claims['token_use'], claims['typ']].some((kind) => typeof kind === 'string' && OTHER_KIND.test(kind))
  if (client !== undefined)
    throw new TokenProblem(
      'kind',
      `the token is no access token: its audience is the client ${JSON.stringify(client)} that got it. It is an ID token, or the client asked for a token for itself: register this gateway at the issuer apart from its clients`,
    )
  if (hasIdClaim || isOther) throw new TokenProblem('kind', 'the token is no access token')
}

/** Rejects a token that is bound to a key. The gateway does not check the proof, so anybody could use a stolen one. */
export function checkIsBearer(claims: JsonObject): void {
  if (claims['cnf'] !== undefined)
    throw new TokenProblem('bound', 'the token is bound to a key, which the gateway cannot check')
}
