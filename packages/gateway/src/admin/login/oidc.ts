import type { Caller } from '@toolgate/core'
import { messageOf } from '@toolgate/values'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { boundLines } from '../../auth/bounded-lines.ts'
import type { ReportedLogout } from '../../auth/issued-to.ts'
import type { OidcLoginDeps } from '../../auth/oauth/oidc-login.ts'
import type { OidcConfig } from '../../config/oidc.ts'
import { ApiFault } from '../../model/faults.ts'
import { once } from '../../util/lifecycle.ts'
import { type AccessRules, openSession, readCookie } from '../http/access.ts'
import { messagePage } from '../http/approval-page-html.ts'
import { readForm, toResponse } from '../http/page.ts'
import { invalidBody } from '../http/request.ts'

interface OidcDeps {
  readonly config: OidcConfig
  readonly naming?: OidcLoginDeps['naming']
  readonly publicUrl: string
  readonly clock: Clock
  readonly state: Pick<StateStore, 'get' | 'add' | 'take'>
  readonly log: (message: string, level?: 'info' | 'warn') => void
  /** Ends what the authorization server has ended. */
  readonly onLogout?: (logout: ReportedLogout) => Promise<void>
  /** Called with each person who has logged in. */
  readonly onLogin?: (person: Caller, label: string | undefined) => void
  /** Called with each person who may not log in. */
  readonly onRefused?: (person: Caller) => void
}

/** The routes of a login with OpenID Connect. */
export interface OidcRoutes {
  begin(request: Request, access: AccessRules): Promise<Response>
  finish(request: Request, access: AccessRules): Promise<Response>
  /** OpenID Connect Back-Channel Logout §2.5. */
  logOut(request: Request): Promise<Response>
}

/** The path at which the authorization server reports ended sessions. */
export const LOGOUT_PATH = '/api/oidc/backchannel-logout'

/** The pages to return to: only paths of this console, and nothing that a browser could read as another host. */
const BACK = /^\/(?:(?:approvals|connect)\/[\w%.~-]{1,300})?$/

/** Returns the routes. Their code is loaded at the first login. */
export function createOidcRoutes({
  config,
  naming,
  publicUrl,
  clock,
  state,
  log,
  onLogout,
  onLogin = () => {},
  onRefused = () => {},
}: OidcDeps): OidcRoutes {
  const isSecure = publicUrl.startsWith('https:')
  const logFailure = boundLines(log, clock)
  const open = once(async () => {
    const [{ ATTEMPT_MS, LoginProblem, OidcLogin }, { IssuerError }, { TokenProblem }] = await Promise.all([
      import('../../auth/oauth/oidc-login.ts'),
      import('../../auth/oauth/fetch-json.ts'),
      import('../../auth/oauth/token-problem.ts'),
    ])
    const [redirectUri, homeUrl] = [`${publicUrl}/api/oidc/callback`, `${publicUrl}/`]
    const login = new OidcLogin(config, { clock, state, redirectUri, homeUrl, naming })
    return { login, IssuerError, LoginProblem, TokenProblem, seconds: ATTEMPT_MS / 1000 }
  })
  const offer = once(() =>
    log(
      `${config.server.name} can report ended sessions: register ${publicUrl}${LOGOUT_PATH} as the back-channel logout URL of the client ${config.clientId}`,
      'info',
    ),
  )
  // No other host of the same domain can set this cookie, and so start a login in another person's browser.
  const nameOf = ({ cookieName }: AccessRules) => `${isSecure ? '__Host-' : ''}${cookieName}_oidc`
  // Lax: the authorization server's redirect comes from another site.
  const toCookie = (access: AccessRules, value: string, seconds: number) =>
    `${nameOf(access)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  const fail = async (error: unknown, access: AccessRules) => {
    logFailure(`a login failed: ${messageOf(error)}`)
    const isDown = error instanceof (await open()).IssuerError
    const page = isDown
      ? messagePage('Not logged in', `${config.server.name} does not answer as it should. Try again in a minute.`)
      : messagePage('Not logged in', 'The login failed. The log of the gateway says why.')
    return toResponse(page, isDown ? 503 : 403, { 'set-cookie': toCookie(access, '', 0) })
  }
  return {
    async begin(request, access) {
      const url = new URL(request.url)
      // The cookie must belong to the host to which the person returns.
      if (request.headers.get('host') !== new URL(publicUrl).host)
        return redirect(`${publicUrl}${url.pathname}${url.search}`)
      const back = url.searchParams.get('back') ?? '/'
      const isFresh = url.searchParams.has('fresh')
      try {
        const { login, seconds } = await open()
        const begun = await login.begin({ back: BACK.test(back) ? back : '/', isFresh })
        if (login.reportsLogouts) offer()
        return redirect(begun.url, { 'set-cookie': toCookie(access, begun.cookie, seconds) })
      } catch (error) {
        return fail(error, access)
      }
    },
    async finish(request, access) {
      try {
        const { login } = await open()
        const cookie = readCookie(request.headers, nameOf(access)) ?? ''
        const { person, back, ...session } = await login.finish(new URL(request.url).searchParams, cookie)
        onLogin(person, session.label)
        const headers = new Headers({ 'set-cookie': await openSession(access, { person }, { isSecure, ...session }) })
        headers.append('set-cookie', toCookie(access, '', 0))
        return redirect(back, headers)
      } catch (error) {
        if (error instanceof (await open()).LoginProblem && error.person) onRefused(error.person)
        return fail(error, access)
      }
    },
    async logOut(request) {
      const { login, IssuerError, TokenProblem } = await open()
      const token = (await readForm(request)).get('logout_token') ?? ''
      try {
        await login.useLogoutToken(token, async (logout) => onLogout?.(logout))
      } catch (error) {
        logFailure(`a logout of ${config.server.name} failed: ${messageOf(error)}`)
        if (error instanceof IssuerError) throw new ApiFault('issuer_unavailable', 'The issuer cannot be reached.')
        if (!(error instanceof TokenProblem)) throw error
        throw invalidBody('The logout token is not accepted. The log of the gateway says why.')
      }
      return new Response(null, { status: 200 })
    },
  }
}

function redirect(location: string, init: ConstructorParameters<typeof Headers>[0] = {}): Response {
  const headers = new Headers(init)
  headers.set('location', location)
  return new Response(null, { status: 303, headers })
}
