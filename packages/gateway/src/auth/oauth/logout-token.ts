import { hash } from 'node:crypto'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { Issuer } from './issuer.ts'
import { isJwt, parseJwt, verifyJwt } from './jwt.ts'
import type { ReportedLogout } from '../issued-to.ts'
import { textOf } from './read-claims.ts'
import { TokenProblem } from './token-problem.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** RFC 8417 §2.2. Many issuers use `JWT`, or no type. */
const TYPE = /^(?:application\/)?(?:logout\+)?jwt$/i
/** How old a logout token may be. Issuers give it two minutes. */
const MAX_AGE_MS = 10 * 60_000
const USED = 'gateway/oidc-logout/'

interface LogoutDeps {
  readonly clientId: string
  readonly clock: Pick<Clock, 'wallMs'>
  readonly state: Pick<StateStore, 'add' | 'take'>
}

/**
 * Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6) and passes it on, once.
 *
 * If `end` fails, the token can be sent again.
 *
 * @throws {TokenProblem | IssuerError}
 */
export async function useLogoutToken(
  token: string,
  issuer: Issuer,
  { clientId, clock, state }: LogoutDeps,
  end: (logout: ReportedLogout) => Promise<void>,
): Promise<void> {
  const claims = await verify(token, issuer, clock.wallMs())
  if (![claims['aud'] ?? []].flat().some((one) => one === clientId)) throw refuse('is for another client')
  if (claims['nonce'] !== undefined) throw refuse('has a "nonce", as only ID tokens have')
  if (!isObject(claims['events']) || !isObject(claims['events'][EVENT])) throw refuse('has no logout event in "events"')
  const [sub, sid, jti] = [textOf(claims, 'sub'), textOf(claims, 'sid'), textOf(claims, 'jti')]
  if (sub === undefined && sid === undefined) throw refuse('has neither "sub" nor "sid"')
  if (jti === undefined) throw refuse('has no "jti"')
  const atMs = (claims['iat'] as number) * 1000
  const key = USED + hash('sha256', JSON.stringify([issuer.config.issuer, jti]), 'hex')
  const expiresAt = atMs + MAX_AGE_MS + 2 * issuer.config.clockSkewMs
  if (!(await state.add(key, true, { expiresAt }))) throw refuse('was used before')
  try {
    await end({
      issuer: issuer.config.name,
      atMs,
      ...(sub !== undefined && { sub }),
      ...(sid !== undefined && { sid }),
    })
  } catch (error) {
    await state.take(key)
    throw error
  }
}

/** Verifies the signature, the issuer and the times. */
async function verify(token: string, issuer: Issuer, nowMs: number): Promise<JsonObject> {
  if (!isJwt(token)) throw new TokenProblem('malformed', 'the logout token is not a signed JWT')
  const jwt = parseJwt(token)
  const { iat } = jwt.claims
  if (jwt.typ !== undefined && !TYPE.test(jwt.typ)) throw refuse('is of another type')
  if (typeof iat !== 'number') throw refuse('has no "iat"')
  // Drafts of the specification have no "exp". A token is never valid for longer than this.
  const untilSeconds = iat + MAX_AGE_MS / 1000
  const exp = typeof jwt.claims.exp === 'number' ? Math.min(jwt.claims.exp, untilSeconds) : untilSeconds
  const { claims } = await verifyJwt({ ...jwt, claims: { ...jwt.claims, exp } }, issuer, nowMs)
  return claims
}

function refuse(problem: string): TokenProblem {
  return new TokenProblem('kind', `the logout token ${problem}`)
}
