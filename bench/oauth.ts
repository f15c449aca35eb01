import { createPublicKey, hash, type JsonWebKey, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createAuthenticator } from '../packages/gateway/src/auth/credential.ts'
import { Tokens } from '../packages/gateway/src/auth/oauth/tokens.ts'
import { measure, printFigures } from './lib.ts'

const PUBLIC_URL = 'https://tools.example.com'
const ALG = 'RS256'

const { privateKey, publicKey } = await generateKeyPair(ALG, { extractable: true })
const jwk = { ...(await exportJWK(publicKey)), alg: ALG, use: 'sig', kid: 'k' }
const server = createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const nowSeconds = Math.floor(Date.now() / 1000)
const token = await new SignJWT({ client_id: 'app', scope: 'tools tools:write' })
  .setProtectedHeader({ alg: ALG, kid: 'k', typ: 'at+jwt' })
  .setIssuer(issuer)
  .setAudience(`${PUBLIC_URL}/mcp`)
  .setSubject('vera')
  .setIssuedAt(nowSeconds)
  .setExpirationTime(nowSeconds + 3600)
  .sign(privateKey)

const tokens = new Tokens(
  {
    issuers: [
      {
        issuer,
        jwksUri: `${issuer}/jwks`,
        name: 'corp',
        audiences: [],
        algorithms: [ALG],
        clockSkewMs: 0,
        claims: { user: 'sub' },
        users: new Map(),
      },
    ],
    scopes: [],
    stepUp: [],
  },
  { clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() }, publicUrl: PUBLIC_URL },
)
await tokens.start()
server.close()
const authenticator = createAuthenticator([tokens])
const headers = { authorization: `Bearer ${token}` }
const [head = '', claims = '', signature = ''] = token.split('.')
const signed = Buffer.from(`${head}.${claims}`)
const bytes = Buffer.from(signature, 'base64url')
const key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
let accepted = 0
let seen = 0

printFigures(
  `Authentication by a token (${ALG}, ${token.length} characters)`,
  await measure([
    {
      name: 'its signature alone',
      run: (count) => {
        for (let i = 0; i < count; i++) if (verify('sha256', signed, key, bytes)) accepted++
      },
    },
    {
      name: 'seen for the first time, with a known key',
      run: async (count) => {
        for (let i = 0; i < count; i++) if (await tokens.find({ token, digest: `${seen++}` }, '/mcp')) accepted++
      },
      budget: '≤ 30 µs',
    },
    {
      name: 'its SHA-256 alone',
      run: (count) => {
        for (let i = 0; i < count; i++) accepted += hash('sha256', token, 'base64').length
      },
    },
    {
      name: 'seen before',
      run: (count) => {
        for (let i = 0; i < count; i++) if (authenticator.authenticate(headers, '/mcp')) accepted++
      },
      budget: '≤ 2 µs',
    },
  ]),
  'its signature alone',
)
if (accepted === -1) console.log(accepted)
