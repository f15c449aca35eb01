import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

export type Claims = Readonly<Record<string, unknown>>

/** A person of a provider: what its directory knows of them. */
export interface Person {
  readonly id: string
  readonly name: string
  readonly email: string
  /** The values of the claim that brings roles. */
  readonly groups: readonly string[]
}

/** What a token is made for. */
export interface Made {
  readonly issuer: string
  /** The client that gets it. */
  readonly client: string
  /** The audience of an access token. */
  readonly audience: string
  /** The session at the provider. */
  readonly session: string
}

/** How a provider answers, as data: its documents and its tokens, with all that is special about them. */
export interface Provider {
  readonly name: string
  /** The path of its issuer. */
  readonly path: string
  readonly people: Readonly<Record<string, Person>>
  /** The documents at their paths. `base` is the origin. */
  documents(base: string): Readonly<Record<string, Claims>>
  /** The paths of its endpoints. */
  readonly endpoints: Readonly<Record<'authorize' | 'token' | 'keys' | 'userinfo', string>>
  /** Whether an answer names the issuer (RFC 9207). */
  readonly namesIssuer: boolean
  readonly lifeSeconds: number
  idToken(person: Person, made: Made): Claims
  /** `undefined`: its access tokens are opaque. */
  accessToken(person: Person, made: Made): Claims | undefined
  readonly opaquePrefix?: string
  userinfo(person: Person, client: string): Claims
}

/** A running stand-in of a provider. */
export interface StandIn {
  readonly issuer: string
  /** Who logs in next. */
  account: string
  /** The audience of access tokens. */
  audience: string
  /** The session at the provider of the next tokens. */
  session: string
  /** Changed claims of the next ID tokens. `undefined` removes a claim. */
  inIdToken: Claims
  inUserinfo: Claims
  readonly provider: Provider
  /** The directory, which an administrator may change. */
  readonly people: Record<string, Person>
  /** Returns an access token of a person, with changed claims. */
  accessToken(person: string, changed?: Claims, header?: Claims): Promise<string>
  sign(claims: Claims, header?: Claims): Promise<string>
  /** Goes to the page of a login as a browser does, and returns where the provider sends it. */
  login(url: string): Promise<URL>
  /** Replaces the answers of a path. */
  answers: Record<string, (request: IncomingMessage, response: ServerResponse) => void>
  /** The requests to the token endpoint. */
  readonly exchanges: readonly URLSearchParams[]
  close(): Promise<void>
}

const CLIENT = 'mcp-client'

/** Starts a stand-in on loopback. */
export async function startProvider(provider: Provider): Promise<StandIn> {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const kid = randomUUID()
  const keys = [{ ...(await exportJWK(publicKey)), alg: 'RS256', use: 'sig', kid }]
  const codes = new Map<string, { readonly person: Person; readonly asked: URLSearchParams }>()
  const tokens = new Map<string, { readonly person: Person; readonly client: string }>()
  const exchanges: URLSearchParams[] = []
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', base)
    const special = standIn.answers[pathname]
    if (special) return special(request, response)
    const document = provider.documents(base)[pathname]
    if (document) return json(response, document)
    const { authorize, token, keys: jwks, userinfo } = provider.endpoints
    if (pathname === jwks) return json(response, { keys })
    if (pathname === authorize) return answerAuthorize(response, searchParams)
    if (pathname === token) return void readText(request).then((body) => exchange(request, response, body))
    if (pathname === userinfo) return answerUserinfo(request, response)
    json(response, { error: 'not_found' }, 404)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = base + provider.path

  const sign = (claims: Claims, header: Claims = {}) => {
    const now = Math.floor(Date.now() / 1000)
    const all = { iss: issuer, iat: now, exp: now + provider.lifeSeconds, ...claims }
    return new SignJWT(all).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid, ...header }).sign(privateKey)
  }
  const made = (client: string): Made => ({ issuer, client, audience: standIn.audience, session: standIn.session })
  const accessToken = async (person: Person, client: string, changed: Claims = {}, header: Claims = {}) => {
    const claims = provider.accessToken(person, made(client))
    const token = claims ? await sign({ ...claims, ...changed }, header) : `${provider.opaquePrefix}${randomUUID()}`
    tokens.set(token, { person, client })
    return token
  }
  function answerAuthorize(response: ServerResponse, asked: URLSearchParams): void {
    const person = standIn.people[standIn.account]
    const code = randomUUID()
    if (person) codes.set(code, { person, asked })
    const back = new URL(asked.get('redirect_uri') ?? '')
    const answer = person ? { code } : { error: 'access_denied', error_description: 'nobody of this name' }
    const more = { state: asked.get('state') ?? '', ...(provider.namesIssuer ? { iss: issuer } : {}) }
    for (const [name, value] of Object.entries({ ...answer, ...more })) back.searchParams.set(name, value)
    response.writeHead(302, { location: back.href }).end()
  }
  async function exchange(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const form = new URLSearchParams(body)
    exchanges.push(form)
    const { person, asked } = codes.get(form.get('code') ?? '') ?? {}
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const hasSecret = request.headers.authorization?.startsWith('Basic ') === true || form.has('client_secret')
    if (!person || !asked || asked.get('code_challenge') !== challenge || !hasSecret)
      return json(response, { error: 'invalid_grant', error_description: 'the code is not valid' }, 400)
    const client = asked.get('client_id') ?? ''
    const claims = provider.idToken(person, made(client))
    const idToken = await sign({ ...claims, aud: client, nonce: asked.get('nonce'), ...standIn.inIdToken })
    json(response, { id_token: idToken, access_token: await accessToken(person, client), token_type: 'Bearer' })
  }
  function answerUserinfo({ headers }: IncomingMessage, response: ServerResponse): void {
    const known = tokens.get(headers.authorization?.slice('Bearer '.length) ?? '')
    if (!known) return json(response, { error: 'invalid_token' }, 401)
    json(response, { ...provider.userinfo(known.person, known.client), ...standIn.inUserinfo })
  }
  const standIn: StandIn = {
    issuer,
    provider,
    account: 'ann',
    audience: 'https://elsewhere.example',
    session: randomUUID(),
    inIdToken: {},
    inUserinfo: {},
    people: { ...provider.people },
    answers: {},
    exchanges,
    sign,
    accessToken: (name, changed, header) => accessToken(standIn.people[name] as Person, CLIENT, changed, header),
    async login(url) {
      const answer = await fetch(url, { redirect: 'manual' })
      return new URL(answer.headers.get('location') ?? '', url)
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return standIn
}

function json(response: ServerResponse, body: Claims, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
