import type { Caller } from '@toolgate/core'
import { isRefused, toKeyId } from '../../auth/credential.ts'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import { type Connections, CONNECT_PATH } from '../../servers/connections/connections.ts'
import { ConnectProblem } from '../../servers/connections/problem.ts'
import type { RequestSource } from '../../util/client-address.ts'
import { type AccessRules, checkHeaders, readCookie, type LoginSessions } from '../http/access.ts'
import { type LoginLink, loginPage, messagePage, reloadPage } from '../http/approval-page-html.ts'
import { toName } from '../http/callers.ts'
import { connectPage, continuePage } from './connect-page-html.ts'
import { ApiFault } from '../../model/faults.ts'
import { CHALLENGE, checkSamePage, currentLogin, PAGE_HEADERS, readForm, toResponse } from '../http/page.ts'
import type { LoginsBody } from '../../model/rows.ts'

interface ConnectPageDeps {
  readonly access: AccessRules
  /** The sessions of people who may use these pages, but no other part of the console. */
  readonly people: LoginSessions
  readonly connections: PageConnections
  readonly logins?: Pick<FailedLogins, 'failed'> | undefined
  readonly onFault?: ((error: unknown) => void) | undefined
  /** The login at an authorization server. Absent: people log in with keys. */
  readonly oidc?: LoginsBody['oidc'] | undefined
}

/** The operations on connections that the pages need. */
export type PageConnections = Pick<
  Connections,
  'rowsOf' | 'begin' | 'finish' | 'disconnect' | 'clientDocument' | 'hostOf' | 'publicUrl'
>

const PERSON_SECONDS = 3600
const ATTEMPT_SECONDS = 600
/** The path of callbacks. No server can have this name. */
const CALLBACK = /^~callback(?:\/|$)/
const CLIENT = '~client.json'
const LABEL = 'Your key'

/** Serves the pages on which people connect servers to their accounts. They need no scripts. */
export function createConnectPage(deps: ConnectPageDeps): {
  fetch(request: Request, from?: RequestSource): Promise<Response>
} {
  return {
    async fetch(request, from) {
      try {
        checkHeaders(request, deps.access.origins)
        return await serve(request, deps)
      } catch (error) {
        return answerError(error, request, deps, from)
      }
    },
  }
}

async function serve(request: Request, deps: ConnectPageDeps): Promise<Response> {
  const name = nameOf(request)
  const { method } = request
  if (method === 'POST' && !name.startsWith('~')) return post(request, name, deps)
  if (method !== 'GET' && method !== 'HEAD')
    return toResponse(messagePage('Not allowed', 'This page takes GET and POST.'), 405, { allow: 'GET, HEAD, POST' })
  if (name === CLIENT) return clientDocument(deps)
  const { publicUrl } = deps.connections
  const { pathname, search } = new URL(request.url)
  // The cookies must belong to the host to which the person returns.
  if (publicUrl !== undefined && request.headers.get('host') !== new URL(publicUrl).host)
    return redirect(`${publicUrl}${pathname}${search}`)
  const person = await findPerson(request, deps)
  // Browsers send no cookie when a person follows a link from another site. They do when the page reloads itself.
  if (!person && request.headers.get('sec-fetch-site') === 'cross-site') return toResponse(reloadPage(), 200)
  if (!person) return toResponse(loginPage(linkFor(deps, name), undefined, LABEL), 401, CHALLENGE)
  return CALLBACK.test(name) ? finish(request, person, deps) : show(name, person, deps)
}

/** Returns the person of a console session, or one who has logged in here with their key. */
async function findPerson(request: Request, deps: ConnectPageDeps): Promise<Caller | undefined> {
  const { access, people } = deps
  const login = (await currentLogin(request, access)) ?? people.find(cookieIn(request, 'person', deps))
  return login?.person
}

function show(server: string, person: Caller, { connections }: ConnectPageDeps, problem?: string): Response {
  const row = connections.rowsOf(person).find((one) => one.server === server)
  if (!row) return toResponse(messagePage('Nothing here', 'No server of this name wants a connection.'), 404)
  const { connection } = row
  const view = { server, host: connections.hostOf(server), person: toName(person), connection, problem }
  return toResponse(connectPage(view), problem === undefined ? 200 : 409)
}

async function post(request: Request, server: string, deps: ConnectPageDeps): Promise<Response> {
  checkSamePage(request)
  const form = await readForm(request)
  const { connections } = deps
  const action = form.get('action')
  const person = await findPerson(request, deps)
  if (action === null || !person) return logIn(server, form.get('key') ?? '', deps)
  try {
    if (action === 'disconnect') {
      await connections.disconnect(server, person)
      return redirect(pathOf(server))
    }
    if (action !== 'connect') throw new ApiFault('body_invalid', 'The action must be "connect" or "disconnect".')
    const { url, secret } = await connections.begin(server, person)
    return toResponse(continuePage(server, url), 200, {
      'set-cookie': toCookie('attempt', secret, ATTEMPT_SECONDS, deps),
    })
  } catch (error) {
    if (error instanceof ConnectProblem) return show(server, person, deps, `Not connected: ${error.message}.`)
    throw error
  }
}

/** Handles the authorization server's answer. It must come from the browser and the person that began the attempt. */
async function finish(request: Request, person: Caller, deps: ConnectPageDeps): Promise<Response> {
  const secret = cookieIn(request, 'attempt', deps)
  const { server } = await deps.connections.finish(new URL(request.url), secret, person)
  return redirect(pathOf(server), { 'set-cookie': toCookie('attempt', '', 0, deps) })
}

/** Logs a user in with their key, for these pages only. A key that is restricted to apps opens no other pages. */
async function logIn(server: string, key: string, deps: ConnectPageDeps): Promise<Response> {
  const { access, people } = deps
  const answer = await access.authenticator.authenticate({ authorization: `Bearer ${key}` }, '/api')
  if (isRefused(answer) || answer.for === 'host' || answer.apps !== undefined || answer.caller.user === undefined)
    throw new ApiFault('unauthenticated', 'The key is not one of a user.', {}, toKeyId(`Bearer ${key}`))
  const { caller, id: credential, expiresAtMs: endsAtMs } = answer
  const secret = await people.open(caller, { credential, ...(endsAtMs !== undefined && { endsAtMs }) })
  const cookie = toCookie('person', secret, PERSON_SECONDS, deps)
  return redirect(pathOf(server), { 'set-cookie': cookie })
}

/** Returns the name of a cookie. With TLS, no other host of the same domain can set it. */
function cookieName(what: 'person' | 'attempt', { access, connections }: ConnectPageDeps): string {
  const prefix = connections.publicUrl?.startsWith('https:') === true ? '__Host-' : ''
  return `${prefix}${access.cookieName}_connect_${what}`
}

function cookieIn(request: Request, what: 'person' | 'attempt', deps: ConnectPageDeps): string {
  return readCookie(request.headers, cookieName(what, deps)) ?? ''
}

function toCookie(what: 'person' | 'attempt', value: string, seconds: number, deps: ConnectPageDeps): string {
  const name = cookieName(what, deps)
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${name.startsWith('__Host-') ? '; Secure' : ''}`
}

function clientDocument({ connections }: ConnectPageDeps): Response {
  const document = connections.clientDocument()
  return document ? Response.json(document) : toResponse(messagePage('Nothing here', 'There is no public URL.'), 404)
}

/** Returns the link to a login that leads back to the page of a server. */
function linkFor({ oidc }: ConnectPageDeps, name: string): LoginLink | undefined {
  return oidc && { name: oidc.name, href: `${oidc.url}?back=${encodeURIComponent(pathOf(name))}` }
}

function pathOf(server: string): string {
  return `${CONNECT_PATH}${encodeURIComponent(server)}`
}

function nameOf(request: Request): string {
  const text = new URL(request.url).pathname.slice(CONNECT_PATH.length)
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function redirect(location: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status: 303, headers: { ...PAGE_HEADERS, location, ...headers } })
}

async function answerError(
  error: unknown,
  request: Request,
  deps: ConnectPageDeps,
  from: RequestSource | undefined,
): Promise<Response> {
  const { logins, onFault } = deps
  if (error instanceof ConnectProblem) return toResponse(messagePage('Not connected', `${error.message}.`), 403)
  if (error instanceof ApiFault && error.keyId !== undefined) await logins?.failed(from, error.keyId)
  if (error instanceof ApiFault && error.code === 'unauthenticated') {
    const problem = 'The key is not known, or not one of a user.'
    return toResponse(loginPage(linkFor(deps, nameOf(request)), problem, LABEL), 401, CHALLENGE)
  }
  if (error instanceof ApiFault) return toResponse(messagePage('Not done', error.message), 403)
  onFault?.(error)
  return toResponse(messagePage('Not done', 'The gateway failed to answer; its log says why.'), 500)
}
