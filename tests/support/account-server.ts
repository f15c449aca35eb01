import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import {
  type AuthInfo,
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  oauthMetadataResponse,
  OAuthError,
  OAuthErrorCode,
  ProtocolError,
  requireBearerAuth,
  Server,
} from '@modelcontextprotocol/server'
import type { AuthorizationServer } from './authorization-server.ts'

/** An MCP server whose users have accounts: it takes tokens of one authorization server, for itself only. */
export interface AccountServer {
  readonly url: string
  /** The `Authorization` of each request to the endpoint, in order. */
  readonly seen: readonly (string | undefined)[]
  /** Answers 401 to this `Authorization` from here on. */
  refuse(authorization: string): void
  close(): Promise<void>
}

export interface AccountServerOptions {
  readonly login: AuthorizationServer
  /** Requests other than `tools/call` need no token. */
  readonly listsForAll?: boolean
  /** The status of every place but the root for metadata of the resource, and of a challenge that names none. */
  readonly rootOnly?: number
  /** Tools beside `whoami`. */
  readonly toolsOf?: (account: string) => readonly string[]
}

/** The client by which the server asks about tokens. */
export const CHECKER = {
  client_id: 'account-server',
  client_secret: 'secret-of-the-account-server',
  grant_types: [],
  redirect_uris: [],
  response_types: [],
} as const

export async function startAccountServer(options: AccountServerOptions): Promise<AccountServer> {
  const { login, listsForAll = false, toolsOf = () => [], rootOnly } = options
  const seen: (string | undefined)[] = []
  let fetch: (request: Request) => Promise<Response> = () => Promise.reject(new Error('it starts'))
  const listener = getRequestListener((request) => fetch(request))
  const http = createServer((request, response) => void listener(request, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`)
  const refused = new Set<string>()

  const handler = createMcpHandler(({ authInfo }) => {
    const server = new Server({ name: 'accounts', version: '1' }, { capabilities: { tools: {} } })
    const account = textOf(authInfo?.extra?.['sub'])
    server.setRequestHandler('tools/list', () => ({
      tools: ['whoami', ...toolsOf(account)].map((name) => ({ name, inputSchema: { type: 'object' as const } })),
    }))
    server.setRequestHandler('tools/call', ({ params }) => {
      // A careless server: it repeats the token in an error.
      if (params.name === 'leak') throw new ProtocolError(-32_000, `cannot use ${authInfo?.token}`)
      return { content: [{ type: 'text' as const, text: account }] }
    })
    return server
  })
  const auth = requireBearerAuth({
    verifier: { verifyAccessToken: (token) => introspect(login, token) },
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
    expectedResource: url,
  })
  fetch = async (request) => {
    if (rootOnly !== undefined) {
      const { pathname } = new URL(request.url)
      if (pathname === '/.well-known/oauth-protected-resource')
        return Response.json({ resource: url.href, authorization_servers: [login.issuer], resource_name: null })
      if (pathname !== url.pathname) return new Response('<!doctype html>', { status: rootOnly })
    }
    const metadata = {
      issuer: login.issuer,
      authorization_endpoint: `${login.issuer}/auth`,
      token_endpoint: `${login.issuer}/token`,
      response_types_supported: ['code'],
    }
    const answer = oauthMetadataResponse(request, {
      oauthMetadata: metadata,
      resourceServerUrl: url,
      scopesSupported: ['tools'],
      dangerouslyAllowInsecureIssuerUrl: true,
    })
    if (answer) return answer
    const authorization = request.headers.get('authorization')
    seen.push(authorization ?? undefined)
    if (authorization !== null && refused.has(authorization)) return new Response(null, { status: 401 })
    if (listsForAll && !(await request.clone().text()).includes('"tools/call"')) return handler.fetch(request)
    if (rootOnly !== undefined && authorization === null)
      return new Response(null, { status: 401, headers: { 'www-authenticate': 'Bearer' } })
    const authInfo = await auth(request)
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo })
  }
  return {
    url: url.href,
    seen,
    refuse: (authorization) => void refused.add(authorization),
    async close() {
      await handler.close()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

/** RFC 7662, so that a token that was withdrawn is refused at once. */
async function introspect({ issuer }: AuthorizationServer, token: string): Promise<AuthInfo> {
  const answer = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${CHECKER.client_id}:${CHECKER.client_secret}`).toString('base64')}`,
    },
    body: new URLSearchParams({ token }),
  })
  const body = (await answer.json()) as Readonly<Record<string, unknown>>
  if (body['active'] !== true) throw new OAuthError(OAuthErrorCode.InvalidToken, 'the token is not active')
  return {
    token,
    clientId: String(body['client_id']),
    scopes: textOf(body['scope']).split(' '),
    expiresAt: Number(body['exp']),
    resource: new URL(String(body['aud'])),
    extra: { sub: body['sub'] },
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
