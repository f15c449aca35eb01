import { constants, createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { isObject } from '@toolgate/values/json'
import { withoutNullEntries } from '@toolgate/mcp'
import { TokenProblem } from './token-problem.ts'

/** A public key of an issuer, for one algorithm. */
export interface SignatureKey {
  readonly alg: string
  readonly kid: string | undefined
  /** `null` if the algorithm includes its own hash. */
  readonly hash: string | null
  readonly key: KeyObject
}

/** A signed text with its signature, and the header fields that select the key. */
export interface Signed {
  readonly alg: string
  readonly kid: string | undefined
  readonly text: string
  readonly signature: Uint8Array
}

/** No key of the issuer fits. The issuer may have a newer key. */
export class UnknownKey extends TokenProblem {}

interface Scheme {
  readonly kty: 'RSA' | 'EC' | 'OKP'
  readonly crv?: string
  readonly hash: string | null
  readonly options?: object
}

/** RFC 7518 §3.5: the salt is as long as the hash. */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
/** RFC 7518 §3.4: the signature is r and s concatenated, not DER. */
const P1363 = { dsaEncoding: 'ieee-p1363' }

/**
 * RFC 7518 §3.1, RFC 8037 §3.1 and RFC 9864 §2.2. Each algorithm accepts one type of key, so that algorithms cannot be
 * confused.
 */
const SCHEMES: ReadonlyMap<string, Scheme> = new Map(
  Object.entries<Scheme>({
    RS256: { kty: 'RSA', hash: 'sha256' },
    RS384: { kty: 'RSA', hash: 'sha384' },
    RS512: { kty: 'RSA', hash: 'sha512' },
    PS256: { kty: 'RSA', hash: 'sha256', options: PSS },
    PS384: { kty: 'RSA', hash: 'sha384', options: PSS },
    PS512: { kty: 'RSA', hash: 'sha512', options: PSS },
    ES256: { kty: 'EC', crv: 'P-256', hash: 'sha256', options: P1363 },
    ES384: { kty: 'EC', crv: 'P-384', hash: 'sha384', options: P1363 },
    ES512: { kty: 'EC', crv: 'P-521', hash: 'sha512', options: P1363 },
    Ed25519: { kty: 'OKP', crv: 'Ed25519', hash: null },
    EdDSA: { kty: 'OKP', crv: 'Ed25519', hash: null },
  }),
)

/** RFC 7518 §3.3. */
const MIN_RSA_BITS = 2048
/** The maximum number of keys to try for a token without a key id. */
const MAX_TRIED = 4

/**
 * Returns the usable keys of a JSON Web Key Set, for the algorithms that the issuer may use. Other keys are left out.
 */
export function toSignatureKeys(jwks: readonly unknown[], algorithms: readonly string[]): readonly SignatureKey[] {
  return jwks
    .map((jwk) => (isObject(jwk) ? withoutNullEntries(jwk) : jwk))
    .filter(isSignatureKey)
    .flatMap((jwk) => algorithms.flatMap((alg) => toKey(jwk, alg)))
}

/** RFC 7517 §4. A published secret key is rejected, as everybody who reads it could sign. */
function isSignatureKey(jwk: unknown): jwk is JsonWebKey {
  if (!isObject(jwk) || 'd' in jwk || 'k' in jwk) return false
  const { use, key_ops: operations, kid } = jwk
  if (use !== undefined && use !== 'sig') return false
  if (kid !== undefined && typeof kid !== 'string') return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

function toKey(jwk: JsonWebKey, alg: string): readonly SignatureKey[] {
  const scheme = SCHEMES.get(alg)
  if (!scheme || jwk.kty !== scheme.kty || (scheme.crv !== undefined && jwk.crv !== scheme.crv)) return []
  if (jwk['alg'] !== undefined && jwk['alg'] !== alg) return []
  try {
    // Options in an object around the key would cost 8 µs for each signature.
    const key = Object.assign(createPublicKey({ key: jwk, format: 'jwk' }), scheme.options)
    const { modulusLength = MIN_RSA_BITS } = key.asymmetricKeyDetails ?? {}
    return modulusLength < MIN_RSA_BITS ? [] : [{ alg, kid: jwk['kid'] as string | undefined, hash: scheme.hash, key }]
  } catch {
    // An entry that is not a valid key is left out.
    return []
  }
}

/**
 * Checks a signature with the key that its header names. Without a name, every key that fits is tried.
 *
 * @throws {UnknownKey | TokenProblem}
 */
export function checkSignature({ alg, kid, text, signature }: Signed, keys: readonly SignatureKey[]): void {
  const fitting = keys.filter((one) => one.alg === alg && (kid === undefined || one.kid === kid))
  const named = kid === undefined ? '' : ` with the "kid" ${JSON.stringify(kid)}`
  if (fitting.length === 0) throw new UnknownKey('key', `the issuer has no key for ${alg}${named}`)
  if (fitting.length > MAX_TRIED)
    throw new TokenProblem('key', `the issuer has more than ${MAX_TRIED} keys for ${alg}${named}`)
  const bytes = Buffer.from(text, 'latin1')
  if (fitting.some(({ hash, key }) => verify(hash, bytes, key, signature))) return
  const message = 'the signature is of no key of the issuer'
  throw kid === undefined ? new UnknownKey('signature', message) : new TokenProblem('signature', message)
}
