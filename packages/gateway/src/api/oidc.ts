import { messageOf } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'
import type { OidcLogin } from '../auth/oauth/oidc-login.ts'
import type { OidcConfig } from '../config/oidc.ts'
import { once } from '../lifecycle.ts'
import { type AccessRules, openSession, readCookie } from './access.ts'
import { messagePage } from './approval-page-html.ts'
import { toResponse } from './approval-page.ts'

export interface OidcDeps {
  readonly config: OidcConfig
  readonly publicUrl: string
  readonly clock: Clock
  readonly log: (message: string) => void
}

/** The routes of a login with OpenID Connect. */
export interface OidcRoutes {
  begin(request: Request, access: AccessRules): Promise<Response>
  finish(request: Request, access: AccessRules): Promise<Response>
}

const ATTEMPT_SECONDS = 600
/** Pages of this console, and nothing that a browser could take for another host. */
const BACK = /^\/(?:approvals\/[\w%.~-]{1,300})?$/

/** Returns the routes. What they need is loaded at the first login. */
export function createOidcRoutes({ config, publicUrl, clock, log }: OidcDeps): OidcRoutes {
  const open = once(async (): Promise<OidcLogin> => {
    const { OidcLogin: Login } = await import('../auth/oauth/oidc-login.ts')
    return new Login(config, { clock, redirectUri: `${publicUrl}/api/oidc/callback`, homeUrl: `${publicUrl}/` })
  })
  const fail = (error: unknown, access: AccessRules) => {
    log(`a login failed: ${messageOf(error)}`)
    const page = messagePage('Not logged in', 'The login failed. The log of the gateway says why.')
    return toResponse(page, 403, { 'set-cookie': toCookie(access, '', 0) })
  }
  const toCookie = ({ cookieName }: AccessRules, secret: string, maxAgeSeconds: number) =>
    // Lax: the authorization server's redirect comes from another site.
    `${cookieName}_oidc=${secret}; Path=/api/oidc; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${publicUrl.startsWith('https:') ? '; Secure' : ''}`
  return {
    async begin(request, access) {
      const url = new URL(request.url)
      // The cookie must belong to the host that the person comes back to.
      if (request.headers.get('host') !== new URL(publicUrl).host)
        return redirect(`${publicUrl}${url.pathname}${url.search}`)
      const back = url.searchParams.get('back') ?? '/'
      try {
        const begun = await (await open()).begin(BACK.test(back) ? back : '/')
        return redirect(begun.url, { 'set-cookie': toCookie(access, begun.secret, ATTEMPT_SECONDS) })
      } catch (error) {
        return fail(error, access)
      }
    },
    async finish(request, access) {
      try {
        const secret = readCookie(request.headers, `${access.cookieName}_oidc`) ?? ''
        const { person, back, ...session } = await (await open()).finish(new URL(request.url).searchParams, secret)
        const isSecure = publicUrl.startsWith('https:')
        const headers = new Headers({ 'set-cookie': openSession(access, person, { isSecure, ...session }) })
        headers.append('set-cookie', toCookie(access, '', 0))
        return redirect(back, headers)
      } catch (error) {
        return fail(error, access)
      }
    },
  }
}

function redirect(location: string, init: ConstructorParameters<typeof Headers>[0] = {}): Response {
  const headers = new Headers(init)
  headers.set('location', location)
  return new Response(null, { status: 303, headers })
}
