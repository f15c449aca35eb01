import assert from 'node:assert/strict'
import {
  constants,
  createHmac,
  createSecretKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto'
import { describe, it } from 'node:test'
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import { ALGORITHMS } from '../../config/oauth.ts'
import { Issuer } from './issuer.ts'
import { isJwt, parseJwt, verifyJwt } from './jwt.ts'
import { toSignatureKeys } from './signature-keys.ts'
import { TokenProblem } from './token-problem.ts'

/** Our verification against that of `jose`: they must agree about every token, but for what is named as stricter. */

const ISSUER = 'https://login.example.com'
const CLAIMS = { iss: ISSUER, aud: 'a', sub: 'vera', iat: 0, exp: 600 }
const NOW_MS = 1000

interface Key {
  readonly jwk: JsonWebKey
  readonly privateKey: KeyObject
}

const rsa = (modulusLength = 2048) => toKey(generateKeyPairSync('rsa', { modulusLength }))
const ec = (namedCurve: string) => toKey(generateKeyPairSync('ec', { namedCurve }))

function toKey({ publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject }): Key {
  return { jwk: publicKey.export({ format: 'jwk' }), privateKey }
}

const KEYS = {
  rsa: rsa(),
  other: rsa(),
  weak: rsa(1024),
  p256: ec('P-256'),
  p384: ec('P-384'),
  p521: ec('P-521'),
  ed: toKey(generateKeyPairSync('ed25519')),
}

const FITTING: Readonly<Record<string, keyof typeof KEYS>> = {
  RS: 'rsa',
  PS: 'rsa',
  ES256: 'p256',
  ES384: 'p384',
  ES512: 'p521',
  Ed: 'ed',
}

function keyOf(alg: string): Key {
  return KEYS[(FITTING[alg] ?? FITTING[alg.slice(0, 2)]) as keyof typeof KEYS]
}

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING }

/** Signs as the algorithm says, with changes. */
function signed(
  alg: string,
  header: object | string = { alg },
  { key = keyOf(alg).privateKey, claims = CLAIMS as object | string, options = {} } = {},
): string {
  const text = `${part(header)}.${part(claims)}`
  const digest = alg.startsWith('Ed') ? null : `sha${alg.slice(2)}`
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  const all = {
    key,
    dsaEncoding: 'ieee-p1363' as const,
    ...(alg.startsWith('PS') ? { ...PSS, saltLength } : {}),
    ...options,
  }
  return `${text}.${sign(digest, Buffer.from(text), all).toString('base64url')}`
}

const hmac = (secret: Buffer | string, alg = 'HS256') => {
  const text = `${part({ alg })}.${part(CLAIMS)}`
  return `${text}.${createHmac('sha256', createSecretKey(Buffer.from(secret)))
    .update(text)
    .digest('base64url')}`
}

interface Case {
  readonly token: string
  /** Default: every key, each with its "kid". */
  readonly jwks?: readonly object[]
}

const ALL = [KEYS.rsa, KEYS.p256, KEYS.p384, KEYS.p521, KEYS.ed].map(({ jwk }) => jwk)

/** Returns whether the gateway and `jose` accept a token. */
async function verdicts({ token, jwks = ALL }: Case): Promise<{ readonly ours: boolean; readonly theirs: boolean }> {
  const theirs = verifiesWithJose(token, jwks)
  return { ours: await verifies(token, jwks), theirs: await theirs.then(Boolean, () => false) }
}

async function verifies(token: string, jwks: readonly object[]): Promise<boolean> {
  try {
    return isJwt(token) && (await verifyJwt(parseJwt(token), issuerWith(jwks), NOW_MS)) !== undefined
  } catch (error) {
    assert.ok(error instanceof TokenProblem, String(error))
    return false
  }
}

const config = {
  issuer: ISSUER,
  name: 'corp',
  audiences: [],
  algorithms: ALGORITHMS,
  clockSkewMs: 0,
  claims: { user: 'sub' },
  users: new Map(),
}

/** An issuer that has read its keys. */
function issuerWith(jwks: readonly object[]): Issuer {
  const issuer = new Issuer(config, { monotonicMs: () => 0 })
  const keys = { keys: toSignatureKeys(jwks, ALGORITHMS) }
  return Object.defineProperties(issuer, { keys: { value: keys }, refresh: { value: async () => {} } })
}

function verifiesWithJose(token: string, jwks: readonly object[]): Promise<{ payload: JWTPayload }> {
  const options = {
    issuer: ISSUER,
    algorithms: [...ALGORITHMS],
    currentDate: new Date(NOW_MS),
    requiredClaims: ['exp'],
  }
  return jwtVerify(token, createLocalJWKSet({ keys: [...jwks] as never }), options)
}

const withoutEnd = (token: string) => token.slice(0, token.lastIndexOf('.'))
const signatureOf = (token: string) => Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url')
const withSignature = (token: string, signature: Uint8Array) =>
  `${withoutEnd(token)}.${Buffer.from(signature).toString('base64url')}`

const RS = signed('RS256')
const ES = signed('ES256')

const REFUSED: Readonly<Record<string, Case>> = {
  'a signature of another key': { token: signed('RS256', undefined, { key: KEYS.other.privateKey }) },
  'a changed claim': { token: RS.replace(/\.[^.]+\./, `.${part({ ...CLAIMS, sub: 'admin' })}.`) },
  'a changed header': { token: RS.replace(/^[^.]+/, part({ alg: 'RS256', kid: undefined, x: 1 })) },
  'alg none': { token: `${part({ alg: 'none' })}.${part(CLAIMS)}.` },
  'alg none in other letters': { token: `${part({ alg: 'nOnE' })}.${part(CLAIMS)}.` },
  'alg none with the signature of another token': {
    token: `${part({ alg: 'none' })}.${RS.split('.').slice(1).join('.')}`,
  },
  'no alg': { token: signed('RS256', {}) },
  'an alg that is a list': { token: signed('RS256', { alg: ['RS256'] }) },
  'an alg of another hash': { token: signed('RS256', { alg: 'RS512' }) },
  'an alg of another padding': { token: signed('RS256', { alg: 'PS256' }) },
  'RS256 that is named by its curve': { token: signed('RS256', { alg: 'ES256' }) },
  'an alg that objects have': { token: signed('RS256', { alg: 'constructor' }) },
  'HS256 with the modulus': { token: hmac(KEYS.rsa.jwk.n ?? '') },
  'HS256 with the public key': { token: hmac(Buffer.from(KEYS.rsa.jwk.n ?? '', 'base64url')) },
  'HS256 with a secret key of the set': {
    token: hmac('secret'),
    jwks: [{ kty: 'oct', k: part('secret'), alg: 'HS256' }],
  },
  'a secret key of the set that says RS256': {
    token: hmac('secret', 'RS256'),
    jwks: [{ kty: 'oct', k: part('secret'), alg: 'RS256' }],
  },
  'a signature with bytes behind it': { token: withSignature(RS, Buffer.concat([signatureOf(RS), Buffer.of(0)])) },
  'a signature that is too short': { token: withSignature(RS, signatureOf(RS).subarray(1)) },
  'no signature': { token: `${withoutEnd(RS)}.` },
  'a further part': { token: `${RS}.${part(CLAIMS)}` },
  'a signature in base64': { token: `${withoutEnd(RS)}.${signatureOf(RS).toString('base64').replace(/=+$/, '')}+/` },
  'a signature of impossible length': { token: `${withoutEnd(RS)}.AAAAA` },
  'claims that are no JSON': { token: signed('RS256', undefined, { claims: '{' }) },
  'claims that are a list': { token: signed('RS256', undefined, { claims: '[]' }) },
  'claims that are null': { token: signed('RS256', undefined, { claims: 'null' }) },
  'a header that is no JSON': { token: signed('RS256', '{"alg":"RS256"') },
  'a header that is a list': { token: signed('RS256', '["RS256"]') },
  'a header that repeats alg': { token: signed('RS256', '{"alg":"RS256","alg":"none"}') },
  'claims that repeat exp': {
    token: signed('RS256', undefined, { claims: JSON.stringify(CLAIMS).replace('}', ',"exp":1}') }),
  },
  'claims that repeat iss': {
    token: signed('RS256', undefined, { claims: JSON.stringify(CLAIMS).replace('}', ',"iss":"https://evil"}') }),
  },
  'a critical extension': { token: signed('RS256', { alg: 'RS256', crit: ['x'], x: 1 }) },
  'an empty list of critical extensions': { token: signed('RS256', { alg: 'RS256', crit: [] }) },
  'critical extensions that are a text': { token: signed('RS256', { alg: 'RS256', crit: 'b64' }) },
  'ES256 as DER': { token: signed('ES256', undefined, { options: { dsaEncoding: 'der' } }) },
  'ES256 with bytes behind it': { token: withSignature(ES, Buffer.concat([signatureOf(ES), Buffer.of(0, 0)])) },
  'ES256 that is too short': { token: withSignature(ES, signatureOf(ES).subarray(2)) },
  'ES256 of zeros': { token: withSignature(ES, new Uint8Array(64)) },
  'ES256 of a key on another curve': { token: signed('ES256', undefined, { key: KEYS.p384.privateKey }) },
  'ES256 with the key of ES384': {
    token: signed('ES256', { alg: 'ES256', kid: 'k' }),
    jwks: [{ ...KEYS.p384.jwk, kid: 'k' }],
  },
  'PS256 with a short salt': { token: signed('PS256', undefined, { options: { saltLength: 20 } }) },
  'PS256 with no salt': { token: signed('PS256', undefined, { options: { saltLength: 0 } }) },
  'an RSA key of 1,024 bits': {
    token: signed('RS256', undefined, { key: KEYS.weak.privateKey }),
    jwks: [KEYS.weak.jwk],
  },
  'a key for encryption': { token: RS, jwks: [{ ...KEYS.rsa.jwk, use: 'enc' }] },
  'a key with another purpose': { token: RS, jwks: [{ ...KEYS.rsa.jwk, key_ops: ['encrypt'] }] },
  'a key with a purpose that is a text': { token: RS, jwks: [{ ...KEYS.rsa.jwk, key_ops: 'verify' }] },
  'a key for another algorithm': { token: RS, jwks: [{ ...KEYS.rsa.jwk, alg: 'RS512' }] },
  'a key of another type': { token: RS, jwks: [{ ...KEYS.rsa.jwk, kty: 'EC' }] },
  'a private key': { token: RS, jwks: [KEYS.rsa.privateKey.export({ format: 'jwk' })] },
  'a key that is none': { token: RS, jwks: [{ ...KEYS.rsa.jwk, n: '!' }] },
  'a point that is on no curve': { token: ES, jwks: [{ ...KEYS.p256.jwk, y: KEYS.p256.jwk.x }] },
  'another kid': { token: signed('RS256', { alg: 'RS256', kid: 'a' }), jwks: [{ ...KEYS.rsa.jwk, kid: 'b' }] },
  'a kid where the key has none': { token: signed('RS256', { alg: 'RS256', kid: 'a' }), jwks: [KEYS.rsa.jwk] },
  'a kid that is a number': { token: signed('RS256', { alg: 'RS256', kid: 1 }), jwks: [{ ...KEYS.rsa.jwk, kid: 1 }] },
  'another issuer': { token: signed('RS256', undefined, { claims: { ...CLAIMS, iss: `${ISSUER}/` } }) },
  'a list of issuers': { token: signed('RS256', undefined, { claims: { ...CLAIMS, iss: [ISSUER] } }) },
  'an end that has passed': { token: signed('RS256', undefined, { claims: { ...CLAIMS, exp: 1 } }) },
  'an end that is a text': { token: signed('RS256', undefined, { claims: { ...CLAIMS, exp: '600' } }) },
  'no end': { token: signed('RS256', undefined, { claims: { ...CLAIMS, exp: undefined } }) },
  'a beginning to come': { token: signed('RS256', undefined, { claims: { ...CLAIMS, nbf: 2 } }) },
  'a beginning that is a text': { token: signed('RS256', undefined, { claims: { ...CLAIMS, nbf: '0' } }) },
  'a time of issue that is a text': { token: signed('RS256', undefined, { claims: { ...CLAIMS, iat: '0' } }) },
  'bytes that are no UTF-8': { token: withBytes(Buffer.from([0xff, 0xfe])) },
}

/** What `jose` accepts and we do not. */
const STRICTER: Readonly<Record<string, Case>> = {
  'a signature that is padded': { token: `${RS}==` },
  'an extension that jose knows (b64)': { token: signed('RS256', { alg: 'RS256', crit: ['b64'], b64: true }) },
  'an endless end': { token: signed('RS256', undefined, { claims: JSON.stringify(CLAIMS).replace('600', '1e999') }) },
  'a token from the future': { token: signed('RS256', undefined, { claims: { ...CLAIMS, iat: 2 } }) },
}

function withBytes(bytes: Buffer): string {
  const claims = Buffer.concat([
    Buffer.from('{"iss":"https://login.example.com","exp":600,"sub":"'),
    bytes,
    Buffer.from('"}'),
  ])
  const text = `${part({ alg: 'RS256' })}.${claims.toString('base64url')}`
  return `${text}.${sign('sha256', Buffer.from(text), KEYS.rsa.privateKey).toString('base64url')}`
}

describe('verifyJwt', () => {
  for (const alg of ALGORITHMS)
    it(`accepts ${alg}, with and without a "kid", as jose does`, async () => {
      const { jwk } = keyOf(alg)
      const cases: readonly Case[] = [
        { token: signed(alg), jwks: [jwk] },
        { token: signed(alg, { alg, kid: 'k' }), jwks: [{ ...jwk, kid: 'k', alg, use: 'sig', key_ops: ['verify'] }] },
        { token: signed(alg, { typ: 'JWT', alg }), jwks: ALL },
      ]
      for (const each of cases) assert.deepEqual(await verdicts(each), { ours: true, theirs: true })
    })

  for (const [what, each] of Object.entries(REFUSED))
    it(`refuses ${what}, as jose does`, async () => {
      assert.deepEqual(await verdicts(each), { ours: false, theirs: false })
    })

  for (const [what, each] of Object.entries(STRICTER))
    it(`refuses ${what}, which jose does not`, async () => {
      assert.deepEqual(await verdicts(each), { ours: false, theirs: true })
    })

  it('agrees with jose about every token with one byte changed', async () => {
    const token = signed('ES256')
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === 'A' ? 'B' : 'A'
      const changed = token.slice(0, at) + other + token.slice(at + 1)
      const { ours: isOurs, theirs: isTheirs } = await verdicts({ token: changed, jwks: [KEYS.p256.jwk] })
      assert.equal(isOurs, false, `byte ${at}`)
      // The last character has bits that jose ignores.
      if (at < token.length - 1) assert.equal(isTheirs, false, `byte ${at}`)
    }
  })

  describe('without a "kid"', () => {
    const token = signed('RS256')
    const others = Array.from({ length: 4 }, () => rsa().jwk)

    it('tries the keys that fit', async () => {
      assert.ok(
        await verifyJwt(parseJwt(token), issuerWith([...others.slice(1), KEYS.rsa.jwk, ...ALL.slice(1)]), NOW_MS),
      )
    })

    it('tries at most four', async () => {
      const verify = () => verifyJwt(parseJwt(token), issuerWith([KEYS.rsa.jwk, ...others]), NOW_MS)
      await assert.rejects(verify, /more than 4 keys/)
    })

    it('tries no key of another name', async () => {
      const named = parseJwt(signed('RS256', { alg: 'RS256', kid: 'a' }))
      const issuer = issuerWith([
        { ...KEYS.rsa.jwk, kid: 'b' },
        { ...others[0], kid: 'a' },
      ])
      await assert.rejects(verifyJwt(named, issuer, NOW_MS), /is of no key/)
    })
  })
})

describe('parseJwt', () => {
  const token = (header: string, claims: string) =>
    [header, claims, 'x'].map((text) => Buffer.from(text).toString('base64url')).join('.')
  const HEADER = '{"alg":"RS256"}'

  it('reads a claim with an escape in its name as it is written, after any earlier text', () => {
    JSON.parse(String.raw`{"zz":1,"pat\\":1}`)
    assert.deepEqual(parseJwt(token(HEADER, String.raw`{"zz":1,"pat\u0068":1}`)).claims, { zz: 1, path: 1 })
  })

  it('refuses a name that occurs twice, in the header and in the claims', () => {
    for (const [header, claims] of [
      [HEADER, String.raw`{"sub":"a","\u0073ub":"b"}`],
      ['{"alg":"RS256","alg":"HS256"}', '{}'],
      ['[]', '{}'],
      [HEADER, '{"sub":1e400}'],
    ] as const)
      assert.throws(() => parseJwt(token(header, claims)), { reason: 'malformed' })
  })
})
