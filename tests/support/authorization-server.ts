import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { type Configuration, type KoaContextWithOIDC, Provider } from 'oidc-provider'

export interface AuthorizationServerOptions {
  /** The scopes of the resources. */
  readonly scopes?: readonly string[]
  readonly format?: 'jwt' | 'opaque'
  readonly clients?: Configuration['clients']
  /** How long access tokens live. Default 600 s. */
  readonly tokenSeconds?: number
  /** Claims of each account, in its tokens. */
  readonly claims?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Writes a JSON answer in another way. */
  readonly rewrite?: Rewrite
}

type Rewrite = (
  path: string,
  body: Record<string, unknown>,
) => { readonly status: number; readonly body: unknown } | undefined

/** A real authorization server of a test's own: `oidc-provider`, with people who log in and consent at once. */
export interface AuthorizationServer {
  readonly issuer: string
  /** Who logs in next. */
  account: string
  /** How long ago the next one who logs in has shown who they are. */
  loggedInSecondsAgo: number
  /** The scopes that people consent to. */
  consents: readonly string[]
  /** The grants of the token endpoint, in order: `authorization_code`, `refresh_token`. */
  readonly grants: readonly string[]
  /** Every token that it gave to a user's client, in order. */
  readonly tokens: readonly string[]
  /** Withdraws all grants of users: their refresh tokens are no longer accepted. */
  endGrants(): Promise<void>
  /** Tells a client that an account was logged out: OpenID Connect Back-Channel Logout. Throws unless it accepts. */
  logOut(client: string, account: string): Promise<void>
  /** Requests by path. */
  readonly asked: ReadonlyMap<string, number>
  /** Signs with a new key from here on. The earlier ones stay, or are withdrawn. */
  rotate(earlier: 'stay' | 'withdrawn'): Promise<void>
  /** Revokes a token of a client. */
  revoke(client: string, secret: string, token: string): Promise<void>
  /** Opens a link as a browser with its own cookies does, and returns where it is sent outside of this server. */
  open(url: string | URL): Promise<URL>
  /** Gets a token for a client that acts for itself. */
  clientToken(client: string, secret: string, fields: Readonly<Record<string, string>>): Promise<string>
  close(): Promise<void>
}

export async function startAuthorizationServer(options: AuthorizationServerOptions = {}): Promise<AuthorizationServer> {
  const { scopes = ['tools'], format = 'jwt', tokenSeconds = 600 } = options
  const grants: string[] = []
  const tokens: string[] = []
  const grantIds = new Set<string>()
  let endGrants = async () => {}
  let logOut = async (_client: string, _account: string) => {}
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown = () => {}
  const http = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const people: People = { account: 'vera', consents: scopes, loggedInSecondsAgo: 0 }

  const asked = new Map<string, number>()
  let keys: readonly JWK[] = []

  const configure = (): Configuration => ({
    jwks: { keys: [...keys] },
    clients: [...(options.clients ?? [])],
    scopes: ['openid', 'offline_access', ...scopes],
    claims: { openid: ['sub', 'groups'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...options.claims?.[id] }),
    }),
    extraTokenClaims: (_context, token) => ('accountId' in token ? { ...options.claims?.[token.accountId] } : {}),
    // Its own one reaches no gateway on loopback.
    fetch: (url, init) => fetch(url, withoutDispatcher(init)),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    ttl: { AccessToken: tokenSeconds, RefreshToken: 600, IdToken: 600, Session: 600, Grant: 600, Interaction: 600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      rpInitiatedLogout: { enabled: true },
      backchannelLogout: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_context, _client, oneOf) => oneOf?.[0] ?? [],
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenFormat: format,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })

  const begin = async (earlier: readonly JWK[]) => {
    keys = [await newKey(), ...earlier]
    const provider = new Provider(issuer, configure())
    provider.on('server_error', (_context: KoaContextWithOIDC, error: Error) => console.error(error))
    provider.on('grant.success', ({ oidc, body }: KoaContextWithOIDC) => {
      grants.push(textOf(oidc.params?.['grant_type']))
      const given = body as Readonly<Record<string, unknown>>
      tokens.push(...[given['access_token'], given['refresh_token']].filter((one) => typeof one === 'string'))
      const grantId = oidc.entities.AuthorizationCode?.grantId ?? oidc.entities.RefreshToken?.grantId
      if (grantId !== undefined) grantIds.add(grantId)
    })
    endGrants = async () => {
      for (const id of grantIds) {
        await provider.RefreshToken.revokeByGrantId(id)
        await provider.AccessToken.revokeByGrantId(id)
        await (await provider.Grant.find(id))?.destroy()
      }
    }
    logOut = async (client, account) => {
      const found = (await provider.Client.find(client)) as LogoutClient | undefined
      await found?.backchannelLogout(account)
    }
    const answer = provider.callback()
    handle = (request, response) => {
      const { pathname } = new URL(request.url ?? '/', issuer)
      asked.set(pathname, (asked.get(pathname) ?? 0) + 1)
      if (options.rewrite) rewriteAnswer(response, pathname, options.rewrite)
      return pathname.startsWith('/interaction/')
        ? interact(provider, request, response, people).catch((error: unknown) =>
            response.writeHead(500).end(String(error)),
          )
        : answer(request, response)
    }
  }
  await begin([])

  const post = (path: string, client: string, secret: string, fields: Readonly<Record<string, string>>) =>
    fetch(issuer + path, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${client}:${secret}`).toString('base64')}` },
      body: new URLSearchParams(fields),
    })

  return Object.assign(people, {
    issuer,
    grants,
    tokens,
    endGrants: () => endGrants(),
    logOut: (client: string, account: string) => logOut(client, account),
    asked,
    rotate: (earlier: 'stay' | 'withdrawn') => begin(earlier === 'stay' ? keys : []),
    open: (url: string | URL) => browse(new URL(url), issuer),
    async clientToken(client: string, secret: string, fields: Readonly<Record<string, string>>) {
      const answer = await post('/token', client, secret, { grant_type: 'client_credentials', ...fields })
      const body = (await answer.json()) as { access_token?: string }
      if (body.access_token === undefined) throw new Error(JSON.stringify(body))
      return body.access_token
    },
    async revoke(client: string, secret: string, token: string) {
      const { status } = await post('/token/revocation', client, secret, { token })
      if (status !== 200) throw new Error(`the revocation was answered with ${status}`)
    },
    close: () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  })
}

function withoutDispatcher({
  dispatcher: _,
  ...init
}: RequestInit & { readonly dispatcher?: unknown } = {}): RequestInit {
  return init
}

/** The types of the package leave it out. */
interface LogoutClient {
  backchannelLogout(sub: string): Promise<void>
}

/** Replaces the JSON that a handler will send. */
function rewriteAnswer(response: ServerResponse, path: string, rewrite: Rewrite): void {
  const end = response.end.bind(response) as (text?: unknown) => ServerResponse
  response.end = ((text?: unknown) => {
    const isJson = response.getHeader('content-type')?.toString().includes('json') === true
    const other = isJson && typeof text === 'string' ? rewrite(path, JSON.parse(text)) : undefined
    if (!other) return end(text)
    response.statusCode = other.status
    response.removeHeader('content-length')
    return end(JSON.stringify(other.body))
  }) as ServerResponse['end']
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: crypto.randomUUID() }
}

type People = Pick<AuthorizationServer, 'account' | 'consents' | 'loggedInSecondsAgo'>

/** Logs in the account and consents, without a page. */
async function interact(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  { account, consents, loggedInSecondsAgo }: People,
): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    const ts = Math.floor(Date.now() / 1000) - loggedInSecondsAgo
    await provider.interactionFinished(request, response, { login: { accountId: account, ts } })
    return
  }
  const existing = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant =
    existing ?? new provider.Grant({ accountId: session?.accountId ?? account, clientId: textOf(params['client_id']) })
  grant.addOIDCScope(textOf(params['scope']) || 'openid')
  const asked = textOf(params['scope']).split(' ')
  for (const resource of [params['resource'] ?? []].flat())
    grant.addResourceScope(textOf(resource), asked.filter((scope) => consents.includes(scope)).join(' '))
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const MAX_HOPS = 20

/** Follows the redirects of one server, with its cookies, until one leads elsewhere. */
async function browse(start: URL, origin: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let url = start
  for (let hop = 0; hop < MAX_HOPS; hop++) {
    if (url.origin !== origin) return url
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null) throw new Error(`${url.href} answered ${answer.status}: ${await answer.text()}`)
    url = new URL(location, url)
  }
  throw new Error('too many redirects')
}
