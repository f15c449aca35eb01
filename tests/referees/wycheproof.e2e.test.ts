import { it } from 'node:test'
import { compactVerify, importJWK, type JWK } from 'jose'
import { isJwt, parseSigned } from '../../packages/gateway/src/auth/oauth/jwt.ts'
import { checkSignature, toSignatureKeys } from '../../packages/gateway/src/auth/oauth/signature-keys.ts'
import { TokenProblem } from '../../packages/gateway/src/auth/oauth/token-problem.ts'
import { checkScores, describeReferee, Score } from '../support/referees.ts'

type Keys = JWK | { readonly keys: readonly JWK[] }

interface Vectors {
  readonly testGroups: readonly {
    readonly comment: string
    readonly private?: Keys
    readonly public?: Keys
    readonly tests: readonly Test[]
  }[]
}

interface Test {
  readonly tcId: number
  readonly comment: string
  readonly jws?: string
  readonly result: 'valid' | 'invalid'
}

const FILES = ['json_web_signature_test.json', 'json_web_key_test.json', 'json_web_crypto_test.json']
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/** The signature is true, and the key is one that an issuer must not have: it can be factored (ROCA, CVE-2017-15361). */
const WEAK_KEYS = [
  'json_web_key_test.json 7 jws_rsa_roca_key: rejectsKeyWithRocaVulnerability',
  'json_web_crypto_test.json 46 jws_rsa_roca_key: rejectsKeyWithRocaVulnerability',
]

describeReferee('wycheproof', (data) => {
  it('is judged by the verifier of tokens, and by jose', async () => {
    const [ours, jose] = [new Score('Toolgate'), new Score('jose 6.2.17')]
    for (const file of FILES)
      for (const { comment, tests, ...keys } of (data.json(file) as Vectors).testGroups)
        for (const { tcId, comment: about, jws, result } of tests) {
          if (jws === undefined) continue
          const name = `${file} ${tcId} ${comment}: ${about}`
          const jwks = keysOf(keys.public ?? keys.private)
          ours.count(name, result === 'valid', accepts(jws, jwks.map(withoutPrivate)))
          jose.count(name, result === 'valid', await joseAccepts(jws, jwks))
        }
    for (const name of ours.refused) console.log(`  refused: ${name}`)
    for (const { who, accepted } of [ours, jose]) for (const name of accepted) console.log(`  ${who} accepts ${name}`)
    checkScores('wycheproof', [ours, jose], WEAK_KEYS)
  })
})

function keysOf(keys: Keys | undefined): readonly JWK[] {
  return !keys ? [] : 'keys' in keys ? (keys.keys as readonly JWK[]) : [keys as JWK]
}

/** An issuer publishes the public part. A secret key stays one. */
function withoutPrivate({ d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...rest }: JWK): JWK {
  return rest as JWK
}

function accepts(jws: string, jwks: readonly JWK[]): boolean {
  if (!isJwt(jws)) return false
  try {
    checkSignature(parseSigned(jws), toSignatureKeys(jwks, ALGORITHMS))
    return true
  } catch (error) {
    if (error instanceof TokenProblem) return false
    throw error
  }
}

async function joseAccepts(jws: string, jwks: readonly JWK[]): Promise<boolean> {
  for (const jwk of jwks) {
    try {
      await compactVerify(jws, await importJWK(jwk.kty === 'oct' ? jwk : withoutPrivate(jwk), jwk.alg))
      return true
    } catch {
      // The next key.
    }
  }
  return false
}
