import { hash, verify } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createAuthenticator } from '../packages/gateway/src/auth/credential.ts'
import { toSignatureKeys } from '../packages/gateway/src/auth/oauth/signature-keys.ts'
import { Tokens } from '../packages/gateway/src/auth/oauth/tokens.ts'
import { type Case, measure, printFigures } from './lib.ts'

const PUBLIC_URL = 'https://tools.example.com'
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'Ed25519']
/** Tokens of each algorithm, and their users. */
const TOKENS = 3000
const USERS = 300

const pairs = new Map(
  await Promise.all(ALGORITHMS.map(async (alg) => [alg, await generateKeyPair(alg, { extractable: true })] as const)),
)
const keys = await Promise.all(
  [...pairs].map(async ([alg, { publicKey }]) => ({ ...(await exportJWK(publicKey)), alg, use: 'sig', kid: alg })),
)
const issuer = 'https://login.example.com'
// The keys cost nothing to read, as each round begins with a gateway that has seen no token.
globalThis.fetch = () => Promise.resolve(Response.json({ keys }))
const clock = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }
const config = {
  issuer,
  jwksUri: `${issuer}/jwks`,
  name: 'corp',
  audiences: [],
  algorithms: ALGORITHMS,
  clockSkewMs: 0,
  claims: { user: 'sub' },
  users: new Map(),
}

async function openTokens(): Promise<ReturnType<typeof createAuthenticator>> {
  const tokens = new Tokens(
    { issuers: [config], scopes: [], stepUp: [] },
    { clock, publicUrl: PUBLIC_URL, refusals: { add() {}, note() {} } },
  )
  await tokens.start()
  return createAuthenticator([tokens])
}

const nowSeconds = Math.floor(Date.now() / 1000)
const sign = (alg: string, n: number) =>
  new SignJWT({ client_id: 'app', scope: 'tools tools:write', jti: `${n}` })
    .setProtectedHeader({ alg, kid: alg, typ: 'at+jwt' })
    .setIssuer(issuer)
    .setAudience(`${PUBLIC_URL}/mcp`)
    .setSubject(`user-${n % USERS}`)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + 3600)
    .sign(pairs.get(alg)?.privateKey as Parameters<SignJWT['sign']>[0])

let accepted = 0

/** What a token costs at its first request, header to caller, and its bare signature. */
async function casesOf(alg: string): Promise<readonly Case[]> {
  const signed: string[] = []
  for (let n = 0; n < TOKENS; n++) signed.push(await sign(alg, n))
  const requests = signed.map((token) => ({ authorization: `Bearer ${token}` }))
  const [own] = toSignatureKeys(keys, [alg])
  if (!own) throw new Error(`there is no key for ${alg}`)
  const end = signed[0]?.lastIndexOf('.') ?? 0
  const [text, bytes] = [
    Buffer.from(signed[0]?.slice(0, end) ?? ''),
    Buffer.from(signed[0]?.slice(end + 1) ?? '', 'base64url'),
  ]
  return [
    {
      name: `${alg}: its signature alone`,
      run: (count) => {
        for (let i = 0; i < count; i++) if (verify(own.hash, text, own.key, bytes)) accepted++
      },
    },
    {
      name: `${alg}: first seen, with a known key`,
      run: async (count) => {
        for (let done = 0; done < count; done += TOKENS) {
          const authenticator = await openTokens()
          for (const request of requests.slice(0, count - done))
            if ('caller' in authenticator.authenticate(request, '/mcp')) accepted++
        }
      },
      ...(alg.endsWith('S256') && !alg.startsWith('E') ? { budget: '≤ 30 µs' } : {}),
    },
  ]
}

const cases: Case[] = []
for (const alg of ALGORITHMS) cases.push(...(await casesOf(alg)))
const known = await sign('RS256', 0)
const authenticator = await openTokens()
const request = { authorization: `Bearer ${known}` }
printFigures(
  `Authentication by a token (RS256: ${known.length} characters; ${TOKENS} tokens of ${USERS} users)`,
  await measure(
    [
      ...cases,
      {
        name: 'its SHA-256 alone',
        run: (count) => {
          for (let i = 0; i < count; i++) accepted += hash('sha256', known, 'base64').length
        },
      },
      {
        name: 'seen before',
        run: (count) => {
          for (let i = 0; i < count; i++) if ('caller' in authenticator.authenticate(request, '/mcp')) accepted++
        },
        budget: '≤ 2 µs',
      },
    ],
    { roundMs: 300 },
  ),
  'RS256: its signature alone',
)
if (accepted === -1) console.log(accepted)
