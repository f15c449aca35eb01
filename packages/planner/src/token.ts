import { createHmac, timingSafeEqual } from 'node:crypto'
import { checkShape, ConfigError, shapeOf } from '@toolgate/core'

/** Signs tokens, and verifies those that it signed. */
export interface TokenKey {
  /** Stands in each token: 1 to 32 of `[A-Za-z0-9_-]`. */
  readonly id: string
  /** At least 32 bytes, of a random source; a text counts its UTF-8 bytes. */
  readonly secret: string | Uint8Array
}

/** What a token is good for. */
export interface TokenClaims {
  /** The pause: 43 characters of base64url. */
  readonly pause: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
}

/** Who a token is for. It is signed, and stands nowhere in the token: who has another cannot tell in what. */
export interface TokenBinding {
  readonly identity: string
  /** The deployment. */
  readonly audience: string
}

export interface Tokens {
  sign(claims: TokenClaims, binding: TokenBinding): string
  /** `undefined` for whatever is not, byte by byte, a token that one of the keys has signed for this binding, in time. */
  open(token: unknown, binding: TokenBinding, nowMs: number): TokenClaims | undefined
}

const KEY = shapeOf<TokenKey>({ id: true, secret: true }, 'field')
const VERSION = 'tgr1'
/** Keeps a signature of ours from being one of anything else. */
const DOMAIN = 'toolgate.resume.v1'
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/
const TOKEN = /^tgr1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{43})\.([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/
const MIN_SECRET_BYTES = 32

/**
 * Gives what signs and opens resume tokens: HMAC-SHA-256, by the first key; all of them verify, so that keys can be
 * rotated: put the new one first, and take the old one out when its last token has expired.
 *
 * @throws {ConfigError} for no key, two of one id, or a secret that is too short
 */
export function createTokens(keys: readonly TokenKey[]): Tokens {
  const secrets = readKeys(keys)
  const [[firstId, firstSecret]] = secrets as unknown as [[string, Uint8Array]]
  return {
    sign(claims, binding) {
      const body = [VERSION, firstId, claims.pause, claims.expiresAt.toString(36)].join('.')
      return `${body}.${signatureOf(firstSecret, body, binding)}`
    },
    open(token, binding, nowMs) {
      const parts = typeof token === 'string' ? TOKEN.exec(token) : null
      const [text, keyId = '', pause = '', expires = '', signature = ''] = parts ?? []
      const secret = secrets.get(keyId)
      if (text === undefined || secret === undefined) return undefined
      // The texts are compared, not what they stand for: base64 has several for the same bytes.
      const expected = signatureOf(secret, text.slice(0, text.lastIndexOf('.')), binding)
      if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return undefined
      const expiresAt = Number.parseInt(expires, 36)
      return nowMs < expiresAt ? { pause, expiresAt } : undefined
    },
  }
}

function readKeys(keys: readonly TokenKey[]): ReadonlyMap<string, Uint8Array> {
  if (!Array.isArray(keys) || keys.length === 0) throw new ConfigError('keys', 'must have at least one key')
  const secrets = new Map<string, Uint8Array>()
  for (const [i, key] of keys.entries()) {
    checkShape(`keys[${i}]`, key, KEY)
    if (typeof key.id !== 'string' || !KEY_ID.test(key.id))
      throw new ConfigError(`keys[${i}].id`, 'must be 1 to 32 of A-Z, a-z, 0-9, _ and -')
    if (secrets.has(key.id)) throw new ConfigError(`keys[${i}].id`, `"${key.id}" is the id of another key`)
    const secret = secretOf(key)
    if (!secret) throw new ConfigError(`keys[${i}].secret`, 'must be a text or a Uint8Array')
    if (secret.byteLength < MIN_SECRET_BYTES)
      throw new ConfigError(`keys[${i}].secret`, `must have at least ${MIN_SECRET_BYTES} bytes`)
    secrets.set(key.id, secret)
  }
  return secrets
}

/** A copy, as the host may wipe its own. Of anything else, such as a number, an array of bytes could be made: of zeros. */
function secretOf({ secret }: TokenKey): Uint8Array | undefined {
  if (typeof secret === 'string') return Buffer.from(secret)
  return secret instanceof Uint8Array ? new Uint8Array(secret) : undefined
}

function signatureOf(secret: Uint8Array, body: string, { identity, audience }: TokenBinding): string {
  // A list in JSON, so that no two bindings have one text.
  const text = JSON.stringify([DOMAIN, body, audience, identity])
  return createHmac('sha256', secret).update(text).digest('base64url')
}
