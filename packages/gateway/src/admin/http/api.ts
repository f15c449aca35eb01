import { readFile } from 'node:fs/promises'
import { type Caller, ToolgateError } from '@toolgate/core'
import { type Context, Hono } from 'hono'
import {
  type AccessRules,
  type Admitted,
  admitToSocket,
  checkHeaders,
  findLogin,
  login,
  logout,
  sessionRoute,
  createSessions,
  type Sessions,
} from './access.ts'
import { agentRoutes } from '../agents/routes.ts'
import { mayCall, ownAgent } from '../trial/own-agent.ts'
import {
  type Asker,
  askingHost,
  askingPerson,
  endRunRoute,
  type RunRouteDeps,
  runsRoute,
  startRun,
} from '../runs/routes.ts'
import { SharedSessions } from '../login/shared-sessions.ts'
import { createApprovalPage } from '../approvals/approval-page.ts'
import { createConnectPage, PERSON_SECONDS } from '../connections/connect-page.ts'
import { createNamedCallers, findCaller, parseWhose } from './callers.ts'
import type { ApiDeps } from './deps.ts'
import { ApiFault, toErrorResponse } from '../../model/faults.ts'
import { policyRoute } from '../policy/routes.ts'
import { appsRoute, groupsRoute, needsRoute, warningsRoute } from '../groups/routes.ts'
import { OPENAPI } from '../../files.ts'
import type { RequestSource } from '../../util/client-address.ts'
import {
  approvalsRoute,
  compareRoute,
  findToCompare,
  verdictRoute,
  waitingApprovalsRoute,
} from '../approvals/routes.ts'
import {
  auditCountsRoute,
  auditEvidenceRoute,
  auditExportRoute,
  auditRotateRoute,
  auditRoute,
} from '../audit/routes.ts'
import { callersRoute, toolColumnsRoute, toolRoute, toolsRoute, whyRoute } from '../tools/routes.ts'
import { haltReachRoute, haltRoute, haltsRoute, releaseRoute } from '../halts/routes.ts'
import { matrixRoute } from '../matrix/routes.ts'
import { limitsRoute } from '../limits/routes.ts'
import { logsRoute } from '../servers/logs.ts'
import { restartRoute, serversRoute } from '../servers/routes.ts'
import { knownPeople } from '../halts/known-people.ts'
import { peopleRoute } from '../people/routes.ts'
import { acceptPinRoute, pinsRoute } from '../pins/routes.ts'
import { callsExportRoute, callsRoute } from '../calls/routes.ts'
import { CountedAudit } from '../overview/counted-audit.ts'
import { createListCosts } from '../overview/list-costs.ts'
import { type Counts, overviewRoute } from '../overview/routes.ts'
import { createKeyRoute, keysRoute, revokeKeyRoute } from '../keys/routes.ts'
import { connectionsRoute, disconnectRoute } from '../connections/routes.ts'
import { reloadRoute } from '../reload/routes.ts'
import { changeRoutes } from '../change/routes.ts'
import { ownCallRoute, readTrialText, whyInputRoute } from '../trial/routes.ts'
import { acceptReplicasRoute, replicasRoute } from '../replicas/routes.ts'
import { preferencesRoute, setPreferencesRoute } from '../preferences/routes.ts'
import { createOidcRoutes } from '../login/oidc.ts'
import { checkPath, jsonResponse, parseQuery, queryOf, type Route } from './request.ts'
import { ToolRows } from '../tools/tool-rows.ts'
import type { LoginsBody } from '../../model/rows.ts'

export interface Api {
  /** Every route, as `openapi.json` describes them. */
  readonly routes: readonly { readonly method: string; readonly path: string }[]
  /** `from` is where it came from, for counting failed logins. */
  fetch(request: Request, from?: RequestSource): Promise<Response>
  /** Serves the pages of approvals. */
  readonly approvalPage: ReturnType<typeof createApprovalPage>
  /** Serves the pages of connections. Absent if there are none. */
  readonly connectPage: ReturnType<typeof createConnectPage> | undefined
  /** Resolves when the logins are known that were made elsewhere. */
  opened(): Promise<void>
  /**
   * Returns the caller whose catalog a person asks for with `as` or `caller`; `undefined` for any other request, also one that
   * is refused.
   */
  shownIn(request: Request): Promise<Caller | undefined>
  /** Returns whose call a person compares with what is there; `undefined` for any other request, also one that is refused. */
  comparedIn(request: Request): Promise<Compared | undefined>
  /**
   * Returns what a person tries as a caller, with `POST /api/why` or `POST /api/tool/call`; `undefined` for any other request, also
   * one that is refused. The body is read if the person has a login.
   */
  triedIn(request: Request, readText: () => Promise<string>): Promise<Tried | undefined>
  /** Returns the person who requests a socket. Rejects with an `ApiFault` if the request is refused. */
  admit(request: Request): Promise<Admitted>
}

/** A call that a person compares with what is there. */
export interface Compared {
  readonly tool: string
  readonly caller: Caller
}

/** What a person tries as a caller. */
export interface Tried extends Compared {
  /** It is a call that the person may make, and no dry run. */
  readonly isCall: boolean
}

interface Client {
  readonly Bindings: { readonly from?: RequestSource | undefined }
}

type Handler = (context: Context<Client>) => Response | Promise<Response>

/**
 * Returns the HTTP API under `/api/`.
 *
 * Every request passes the same checks: Host and Origin, then a console key or a session. Every answer is JSON and not
 * cached.
 *
 * @example
 * const api = createApi(deps)
 * await api.fetch(new Request('http://127.0.0.1:8787/api/session', { headers }))
 */
export function createApi(deps: ApiDeps): Api {
  const { authenticator, origins, clock, cookieName = 'toolgate_session' } = deps
  const { sharedState: state, onFault = () => {} } = deps
  const openSessions = (use: 'console' | 'person', ttlMs?: number): Sessions & { opened?(): Promise<void> } => {
    const bounds = { clock, ...(ttlMs !== undefined && { ttlMs }) }
    return state ? new SharedSessions({ ...bounds, state, authenticator, use, onFault }) : createSessions(bounds)
  }
  const sessions = openSessions('console')
  const { onEnded, connections } = deps
  const people = openSessions('person', PERSON_SECONDS * 1000)
  onEnded?.((callers) => {
    sessions.replace(callers)
    people.replace(callers)
  })
  const hasTenants = (): boolean =>
    deps.hasTenants === true || new Set(deps.callers().map(({ caller }) => caller.tenant)).size > 1
  const access: AccessRules = { authenticator, origins, cookieName, sessions, onEnded, hasTenants }
  const callers = createNamedCallers(() => deps.callers())
  // A path has one spelling, as others look at it too, such as a replica that looks for the home of a user.
  const app = new Hono<Client>({ getPath: ({ url }) => new URL(url).pathname })

  app.use(async (context, next) => {
    await next()
    context.res.headers.set('cache-control', 'no-store')
    context.res.headers.set('x-content-type-options', 'nosniff')
  })
  app.use(async ({ req, env: { from } }, next) => {
    if (!from || !deps.isForwarded?.(from)) checkHeaders(req.raw, origins)
    checkPath(req.path)
    await next()
  })
  const agents = deps.agents ? agentRoutes({ authenticator, ...deps.agents }) : {}
  for (const [path, { method, answer }] of Object.entries(agents))
    serve(path, { [method]: ({ req }) => answer(req.raw) })
  const runs = deps.runs && { authenticator, ...deps.runs }
  const counts: Counts = { counted: new CountedAudit(deps), costs: createListCosts() }
  const listRuns = (asker: Asker): Route => runsRoute({ ...deps, ...counts, runs: runs?.runs }, asker)
  if (!runs) serve('/api/runs', { GET: asPerson((asked) => listRuns(askingPerson(asked.person))(asked)) })
  else {
    serve('/api/runs', {
      GET: asHostOrPerson(runs, listRuns),
      POST: async ({ req }) => jsonResponse(await startRun(req.raw, runs)),
    })
    serve('/api/runs/:id', { DELETE: asHostOrPerson(runs, (asker) => endRunRoute(runs, asker)) })
  }
  serve('/api/openapi.json', { GET: async ({ req }) => openapiAnswer(req.raw) })
  const oidc = deps.oidc && createOidcRoutes(deps.oidc)
  serve('/api/login', {
    GET: ({ req }) => {
      parseQuery(queryOf(req.raw), {})
      return Response.json(loginsOf(deps))
    },
    POST: ({ req }) => login(req.raw, access),
  })
  serve('/api/oidc/login', { GET: async ({ req }) => oidc?.begin(req.raw, access) ?? nothingAt(req.path) })
  serve('/api/oidc/callback', { GET: async ({ req }) => oidc?.finish(req.raw, access) ?? nothingAt(req.path) })
  serve('/api/logout', { POST: ({ req }) => logout(req.raw, access) })
  serve('/api/session', { GET: asPerson(sessionRoute(access)) })
  const toolRows = new ToolRows(deps)
  serve('/api/tools', { GET: asPerson(toolsRoute(deps, callers, toolRows)) })
  serve('/api/tools/columns', { GET: asPerson(toolColumnsRoute(deps, callers, toolRows)) })
  serve('/api/matrix', { GET: asPerson(matrixRoute(deps, callers, toolRows)) })
  serve('/api/groups', { GET: asPerson(groupsRoute(deps)) })
  serve('/api/policy', { GET: asPerson(policyRoute(deps)) })
  serve('/api/warnings', { GET: asPerson(warningsRoute(deps)) })
  serve('/api/apps', { GET: asPerson(appsRoute(deps)) })
  serve('/api/needs', { GET: asPerson(needsRoute(deps)) })
  serve('/api/preferences', {
    GET: asPerson(preferencesRoute(deps, callers)),
    PUT: asPerson(setPreferencesRoute(deps, callers)),
  })
  serve('/api/tool', { GET: asPerson(toolRoute(deps, callers)) })
  serve('/api/callers', { GET: asPerson(callersRoute(deps, callers)) })
  serve('/api/calls', { GET: asPerson(callsRoute(deps)) })
  serve('/api/calls/export', { GET: asPerson(callsExportRoute(deps)) })
  serve('/api/why', { GET: asPerson(whyRoute(deps, callers)), POST: asPerson(whyInputRoute(deps, callers)) })
  serve('/api/tool/call', { POST: asPerson(ownCallRoute(deps, callers)) })
  serve('/api/people', { GET: asPerson(peopleRoute(deps, callers, counts)) })
  serve('/api/overview', { GET: asPerson(overviewRoute(deps, callers, counts)) })
  serve('/api/audit', { GET: asPerson(auditRoute(deps)) })
  serve('/api/audit/counts', { GET: asPerson(auditCountsRoute(deps)) })
  serve('/api/audit/evidence', { GET: asPerson(auditEvidenceRoute(deps)) })
  serve('/api/audit/rotate', { POST: asPerson(auditRotateRoute(deps)) })
  serve('/api/audit/export', { GET: asPerson(auditExportRoute(deps)) })
  serve('/api/approvals', { GET: asPerson(approvalsRoute(deps)) })
  serve('/api/approvals/waiting', { GET: asPerson(waitingApprovalsRoute(deps)) })
  serve('/api/approvals/:id', { POST: asPerson(verdictRoute(deps)) })
  serve('/api/approvals/:id/compare', { POST: asPerson(compareRoute(deps)) })
  const signedIn = () => [
    ...deps.callers().map(({ caller }) => caller),
    ...(deps.keys?.list() ?? []),
    ...(deps.signedIn?.() ?? []),
    ...sessions.people(),
    ...people.people(),
  ]
  const known = (tenant: string | undefined) => knownPeople({ signedIn, counted: counts.counted }, tenant)
  serve('/api/halts', { GET: asPerson(haltsRoute(deps, known)), POST: asPerson(haltRoute(deps, known)) })
  serve('/api/halts/reach', { GET: asPerson(haltReachRoute(deps, known)) })
  serve('/api/halts/:id', { DELETE: asPerson(releaseRoute(deps, known)) })
  serve('/api/keys', { GET: asPerson(keysRoute(deps)), POST: asPerson(createKeyRoute(deps)) })
  serve('/api/keys/:id', { DELETE: asPerson(revokeKeyRoute(deps)) })
  serve('/api/connections', { GET: asPerson(connectionsRoute(deps)) })
  serve('/api/connections/:id', { DELETE: asPerson(disconnectRoute(deps)) })
  serve('/api/reload', { POST: asPerson(reloadRoute(deps)) })
  const changes = changeRoutes(deps)
  serve('/api/what-if', { POST: asPerson(changes.whatIf) })
  serve('/api/compare', { POST: asPerson(changes.compare) })
  serve('/api/test', { POST: asPerson(changes.test) })
  serve('/api/suggest', { POST: asPerson(changes.suggest) })
  serve('/api/replicas', { GET: asPerson(replicasRoute(deps)) })
  serve('/api/replicas/accept', { POST: asPerson(acceptReplicasRoute(deps)) })
  serve('/api/limits', { GET: asPerson(limitsRoute(deps)) })
  serve('/api/servers', { GET: asPerson(serversRoute(deps)) })
  serve('/api/servers/:id/restart', { POST: asPerson(restartRoute(deps)) })
  serve('/api/logs', { GET: asPerson(logsRoute(deps)) })
  serve('/api/pins', { GET: asPerson(pinsRoute(deps)) })
  serve('/api/pins/accept', { POST: asPerson(acceptPinRoute(deps)) })
  app.notFound(({ req }) => nothingAt(req.path))
  app.onError(async (error, { env }) => {
    if (error instanceof ApiFault && error.keyId !== undefined) await deps.logins?.failed(env.from, error.keyId)
    return toErrorResponse(error, deps.onFault, deps.redact)
  })
  return {
    // `ALL` are the checks, and the answers to other methods.
    routes: app.routes.filter(({ method }) => method !== 'ALL'),
    fetch: async (request, from) => app.fetch(request, { from }),
    approvalPage: createApprovalPage({ ...deps, access, oidc: loginsOf(deps).oidc }),
    connectPage: connections && createConnectPage({ ...deps, access, people, connections, oidc: loginsOf(deps).oidc }),
    admit: (request) => admitToSocket(request, access),
    async shownIn(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (!OF_CALLER.has(pathname)) return undefined
      try {
        const { person } = await findLogin(request, access)
        return findCaller(callers, parseWhose(searchParams), person).caller
      } catch (error) {
        if (error instanceof ApiFault) return undefined
        throw error
      }
    },
    async comparedIn(request) {
      const id = COMPARE.exec(new URL(request.url).pathname)?.[1]
      if (id === undefined || request.method !== 'POST') return undefined
      try {
        const { person } = await findLogin(request, access)
        const approval = await findToCompare(deps, person, decodeURIComponent(id))
        const caller = await deps.comparisons?.askerOf(approval.id)
        return caller && { tool: approval.tool, caller }
      } catch (error) {
        if (error instanceof ApiFault || error instanceof ToolgateError || error instanceof URIError) return undefined
        throw error
      }
    },
    async triedIn(request, readText) {
      const { pathname } = new URL(request.url)
      try {
        const { person } = await findLogin(request, access)
        const { tool, caller, app: at } = await readTrialText(await readText(), person, callers)
        if (pathname === '/api/why') return { tool, caller, isCall: false }
        return mayCall(person) && ownAgent(deps, { person, caller, app: at })
          ? { tool, caller, isCall: true }
          : undefined
      } catch (error) {
        if (error instanceof ApiFault) return undefined
        throw error
      }
    },
    opened: async () => void (await Promise.all([sessions.opened?.(), people.opened?.()])),
  }

  function serve(path: string, handlers: Readonly<Record<string, Handler>>): void {
    for (const [method, handler] of Object.entries(handlers)) app.on(method, path, handler)
    const allow = Object.keys(handlers)
      .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method))
      .join(', ')
    app.all(path, ({ req }) => {
      throw new ApiFault('method_not_allowed', `${req.method} is not served at ${path}; known are ${allow}.`, { allow })
    })
  }

  function asHostOrPerson(ofRuns: RunRouteDeps, routeOf: (asker: Asker) => Route): Handler {
    const ofPerson = asPerson((asked) => routeOf(askingPerson(asked.person))(asked))
    return async (context) => {
      const { req } = context
      const asker = await askingHost(req.raw, ofRuns)
      if (!asker?.host) return ofPerson(context)
      const query = queryOf(req.raw)
      const { caller: person } = asker.host
      const asked = { request: req.raw, query, person, loginAt: clock.wallMs(), id: req.param('id') ?? '' }
      return jsonResponse(await routeOf(asker)(asked))
    }
  }

  function asPerson(route: Route): Handler {
    return async (context) => {
      const { req } = context
      const { person, loginAt } = await findLogin(req.raw, access)
      const query = queryOf(req.raw)
      const body = await route({ request: req.raw, query, person, loginAt, id: req.param('id') ?? '' })
      return body instanceof Response ? body : jsonResponse(body)
    }
  }
}

const COMPARE = /^\/api\/approvals\/([^/]{1,300})\/compare$/
/** What people see of a caller's catalog. */
const OF_CALLER: ReadonlySet<string> = new Set(['/api/tools', '/api/tools/columns', '/api/tool', '/api/why'])

function nothingAt(path: string): never {
  throw new ApiFault('route_unknown', `Nothing is served at ${path.slice(0, 200)}.`)
}

/** `GET /api/openapi.json`, for everybody: it says nothing about this gateway. */
async function openapiAnswer(request: Request): Promise<Response> {
  parseQuery(queryOf(request), {})
  return new Response(await readFile(OPENAPI, 'utf8'), { headers: { 'content-type': 'application/json' } })
}

/** `GET /api/login`: how people can log in, for everybody. */
function loginsOf({ oidc }: ApiDeps): LoginsBody {
  return oidc ? { oidc: { name: oidc.config.server.name, url: '/api/oidc/login' } } : {}
}
