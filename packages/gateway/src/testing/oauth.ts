import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { text as readText } from 'node:stream/consumers'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose'
import { ALGORITHMS, type IssuerConfig } from '../config/oauth.ts'

/** An authorization server that signs whatever a test wants, including invalid tokens. */
export interface TestIssuer {
  readonly issuer: string
  readonly config: IssuerConfig
  /** The current public key. */
  readonly publicKey: JWK
  /** The number of requests by path. */
  readonly asked: Readonly<Record<string, number>>
  /** Replaces the answer at a path. */
  answers: Record<string, (request: IncomingMessage, response: ServerResponse) => void>
  /** The introspection answers, by token. */
  active: Record<string, object>
  /** Signs a token that opens `/mcp`, with changed claims and header. `undefined` removes a field. */
  sign(
    claims?: Record<string, unknown>,
    header?: Record<string, unknown>,
    sealed?: { readonly key: CryptoKey | Uint8Array },
  ): Promise<string>
  rotate(): Promise<void>
  close(): Promise<void>
}

export const PUBLIC_URL = 'https://tools.example.com'

/** Starts an issuer on loopback. It uses the test's time: tokens are issued at 0 and expire at 600 s. */
export async function startIssuer(t: TestContext, given: Partial<IssuerConfig> = {}): Promise<TestIssuer> {
  const asked: Record<string, number> = {}
  let current = await newKey()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked[path] = (asked[path] ?? 0) + 1
    const special = issuer.answers[path]
    if (special) return special(request, response)
    if (path === '/.well-known/oauth-authorization-server') return json(response, metadata())
    if (path === '/jwks') return json(response, { keys: [current.jwk] })
    if (path === '/introspect')
      return void readText(request).then((body) => {
        const token = new URLSearchParams(body).get('token') ?? ''
        json(response, issuer.active[token] ?? { active: false })
      })
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const metadata = () => ({ issuer: url, jwks_uri: `${url}/jwks`, introspection_endpoint: `${url}/introspect` })
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  t.after(close)
  const issuer: TestIssuer = {
    issuer: url,
    config: {
      issuer: url,
      name: 'corp',
      audiences: [],
      algorithms: ALGORITHMS,
      clockSkewMs: 30_000,
      claims: { user: 'sub' },
      users: new Map(),
      ...given,
    },
    get publicKey() {
      return current.jwk
    },
    asked,
    answers: {},
    active: {},
    sign(claims = {}, header = {}, { key } = { key: current.privateKey }) {
      const all = { iss: url, aud: `${PUBLIC_URL}/mcp`, sub: 'vera', client_id: 'app', iat: 0, exp: 600, ...claims }
      const protectedHeader = { alg: 'ES256', kid: current.jwk.kid, typ: 'at+jwt', ...header } as JWTHeaderParameters
      return new SignJWT(all).setProtectedHeader(protectedHeader).sign(key, { crit: { x: true } })
    },
    async rotate() {
      current = await newKey()
    },
    close,
  }
  return issuer
}

async function newKey(): Promise<{ readonly privateKey: CryptoKey; readonly jwk: JWK }> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig', kid: crypto.randomUUID() } }
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
