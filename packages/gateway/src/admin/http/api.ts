import { ToolgateError } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import { type Context, Hono } from 'hono'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Answer, FindSubject, Route, Subject } from '../../heart/route.ts'
import { ApiFault, toErrorResponse } from '../../model/faults.ts'
import type { RequestSource } from '../../util/client-address.ts'
import { type AccessRules, checkHeaders, findHost, findLogin } from './access.ts'
import { checkPath, jsonResponse, nothingAt, queryOf } from './request.ts'

export interface HttpApi {
  /** `from`: the source of the request, to count failed logins. */
  fetch(request: Request, from?: RequestSource): Promise<Response>
  /**
   * Returns the caller that a request is about, if its route has a subject and the request is accepted. The body is
   * read only for a person who is logged in.
   */
  subjectOf(request: Request, readText: () => Promise<string>): Promise<Subject | undefined>
}

interface ApiOptions extends Pick<Heart, 'redact' | 'onFault'> {
  readonly access: AccessRules
  readonly clock: Pick<Clock, 'wallMs'>
  /** Counts failed logins and delays their answers. */
  readonly logins: Pick<FailedLogins, 'failed'>
  /** Whether another replica forwarded a request after checking its origin. */
  readonly isForwarded: (from: RequestSource) => boolean
}

interface Client {
  readonly Bindings: { readonly from?: RequestSource | undefined }
}

type Handler = (context: Context<Client>) => Response | Promise<Response>

/**
 * Returns the HTTP API of some routes.
 *
 * Every request passes the same checks: first Host and Origin, then who may use the route. No answer is cached. Answers
 * are JSON unless the route returns another type.
 */
export function createApi(routes: readonly Route[], options: ApiOptions): HttpApi {
  const { access, logins, onFault, redact } = options
  // A path has one spelling, since other code reads it too, such as a replica that looks for the home of a user.
  const app = new Hono<Client>({ getPath: ({ url }) => new URL(url).pathname })
  app.use(async (context, next) => {
    await next()
    context.res.headers.set('cache-control', 'no-store')
    context.res.headers.set('x-content-type-options', 'nosniff')
  })
  app.use(async ({ req, env: { from } }, next) => {
    if (!from || !options.isForwarded(from)) checkHeaders(req.raw, access.origins)
    checkPath(req.path)
    await next()
  })
  for (const [path, own] of Map.groupBy(routes, (route) => route.path)) {
    for (const route of own) app.on(route.method, path, toHandler(route, options))
    const allow = own.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method)).join(', ')
    app.all(path, ({ req }) => {
      throw new ApiFault('method_not_allowed', `${req.method} is not served at ${path}; known are ${allow}.`, { allow })
    })
  }
  app.notFound(({ req }) => nothingAt(req.path))
  app.onError(async (error, { env }) => {
    if (error instanceof ApiFault && error.keyId !== undefined) await logins.failed(env.from, error.keyId)
    return toErrorResponse(error, onFault, redact)
  })
  const subjects = routes.flatMap(toSubjectRoute)
  return {
    fetch: async (request, from) => app.fetch(request, { from }),
    async subjectOf(request, readText) {
      const { pathname } = new URL(request.url)
      for (const { method, pattern, subject } of subjects) {
        const found = method === request.method ? pattern.exec(pathname) : null
        if (found) return readSubject(subject, { request, readText, id: found[1] ?? '' }, access)
      }
      return undefined
    },
  }
}

function toHandler(route: Route, options: ApiOptions): Handler {
  switch (route.by) {
    case 'agent':
    case 'host':
    case 'anyone':
      return async ({ req }) => toResponse(await route.answer(req.raw))
    case 'person':
      return (context) => answerPerson(route.answer, context, options)
    case 'host-or-person':
      return (context) => answerHost(route.answer, context, options)
  }
}

async function answerPerson(answer: Answer, { req }: Context<Client>, { access }: ApiOptions): Promise<Response> {
  const { person, loginAt } = await findLogin(req.raw, access)
  const query = queryOf(req.raw)
  return toResponse(await answer({ request: req.raw, query, person, loginAt, id: req.param('id') ?? '' }))
}

async function answerHost(answer: Answer, context: Context<Client>, options: ApiOptions): Promise<Response> {
  const { req } = context
  const host = await findHost(req.raw, options.access)
  if (!host) return answerPerson(answer, context, options)
  const asked = { request: req.raw, query: queryOf(req.raw), id: req.param('id') ?? '' }
  return toResponse(await answer({ ...asked, host, person: host.caller, loginAt: options.clock.wallMs() }))
}

function toResponse(body: object): Response {
  return body instanceof Response ? body : jsonResponse(body)
}

interface SubjectRoute {
  readonly method: string
  readonly pattern: RegExp
  readonly subject: FindSubject
}

function toSubjectRoute(route: Route): readonly SubjectRoute[] {
  if (!('subject' in route) || !route.subject) return []
  const { method, path, subject } = route
  return [{ method, pattern: new RegExp(`^${path.replace(':id', '([^/]{1,300})')}$`), subject }]
}

async function readSubject(
  subject: FindSubject,
  {
    request,
    readText,
    id,
  }: { readonly request: Request; readonly readText: () => Promise<string>; readonly id: string },
  access: AccessRules,
): Promise<Subject | undefined> {
  try {
    const { person } = await findLogin(request, access)
    return await subject({ request, person, readText, id: decodeURIComponent(id) })
  } catch (error) {
    if (error instanceof ApiFault || error instanceof ToolgateError || error instanceof URIError) return undefined
    throw error
  }
}
