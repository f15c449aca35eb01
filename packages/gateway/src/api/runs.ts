import { type Caller, ConfigError, type Policy } from '@toolgate/core'
import { type Authenticator, type Credential, isRefused, toKeyId } from '../auth/credential.ts'
import type { ListedRun } from '../auth/made-run.ts'
import type { NewRun, Runs } from '../auth/runs.ts'
import { maySee } from './callers.ts'
import { ApiFault } from './faults.ts'
import { invalidBody, parseQuery, readBody, type Route, shortText, wholeNumber } from './request.ts'
import type { EndedRunBody, RunRow, RunsBody, StartedRunBody } from './wire.ts'

/** What hosts reach: programs that run agents. People see and end runs, and start none. */
export interface RunRouteDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'challenge'>
  readonly runs: Pick<Runs, 'start' | 'end' | 'list'>
  /** @throws {ConfigError} for a policy that cannot be used now */
  readonly checkPolicy: (policy: readonly Policy[]) => void
}

const FIELDS = ['user', 'tenant', 'like', 'apps', 'tools', 'policy', 'userWords', 'ttlMs', 'parent']
/** A child has these of its parent. */
const OF_ROOT = ['user', 'tenant', 'like', 'apps', 'userWords']
const MAX_TEXTS = 100
const MAX_NAME = 300
const DEFAULT_LIMIT = 100
const MAX_LISTED = 1000

/** `POST /api/runs`: starts a run for a caller of the file, or for a sub-agent of one. The answer alone has its token. */
export async function startRun(request: Request, deps: RunRouteDeps): Promise<StartedRunBody> {
  parseQuery(new URL(request.url).searchParams, {})
  const host = await hostOf(request, deps)
  const asked = parseRun(await readBody(request, FIELDS))
  return safely(() => {
    deps.checkPolicy(asked.policy)
    return deps.runs.start(asked, host)
  })
}

/** `GET /api/runs?limit=&user=`: of a host its own, of a person those that they may see. */
export function runsRoute({ runs }: Pick<RunRouteDeps, 'runs'>, whose: Asker): Route {
  return async ({ query }) => {
    const { limit = DEFAULT_LIMIT, user } = parseQuery(query, { limit: wholeNumber(1, MAX_LISTED), user: shortText })
    const seen = (await runs.list(whose.host)).filter(
      (run) => whose.maySee(run) && (user === undefined || run.user === user),
    )
    return { runs: seen.slice(0, limit).map(toRow), total: seen.length } satisfies RunsBody
  }
}

/** `DELETE /api/runs/<id>`: the token opens nothing once this has answered, nor do those below it. */
export function endRunRoute({ runs }: Pick<RunRouteDeps, 'runs'>, whose: Asker): Route {
  return async ({ id, query }) => {
    parseQuery(query, {})
    const { host, user: by } = whose
    if (!whose.mayEnd) throw new ApiFault('run_forbidden', 'A person ends runs with the role "operator" or "approver".')
    await safely(() => runs.end(id, { reason: host ? 'ended' : 'revoked', by }, whose.maySee, host))
    return { id } satisfies EndedRunBody
  }
}

/** Who asks about runs: a host, or a person. */
export interface Asker {
  readonly user: string | undefined
  readonly host?: Credential
  readonly mayEnd: boolean
  maySee(run: ListedRun): boolean
}

/** Returns the host of a request; `undefined` for any other credential, and for none. */
export async function askingHost(request: Request, { authenticator }: RunRouteDeps): Promise<Asker | undefined> {
  const authorization = request.headers.get('authorization') ?? undefined
  if (authorization === undefined) return undefined
  const answer = await authenticator.authenticate({ authorization }, '/api')
  if (isRefused(answer) || answer.for !== 'host' || answer.caller.run !== undefined) return undefined
  return { user: answer.caller.user, host: answer, mayEnd: true, maySee: () => true }
}

export function askingPerson(person: Caller): Asker {
  const { user, roles = [] } = person
  const mayEnd = user !== undefined && roles.some((role) => role === 'operator' || role === 'approver')
  return { user, mayEnd, maySee: (run) => maySee(person, run) }
}

function toRow({
  id,
  user,
  tenant,
  hostUser: host,
  above: [parent],
  narrows,
  createdAt,
  expiresAt,
}: ListedRun): RunRow {
  return { id, user, tenant, host, parent, narrows, createdAt, expiresAt }
}

/** A cookie opens nothing here. @throws {ApiFault} `unauthenticated`, `key_not_for_hosts` */
async function hostOf(request: Request, { authenticator }: RunRouteDeps): Promise<Credential> {
  const authorization = request.headers.get('authorization') ?? undefined
  const answer = await authenticator.authenticate({ authorization }, '/api')
  if (isRefused(answer)) {
    const headers = { 'www-authenticate': authenticator.challenge(answer.refused, '/api') }
    throw new ApiFault('unauthenticated', 'A key of a host is needed.', headers, toKeyId(authorization))
  }
  if (answer.for !== 'host' || answer.caller.run !== undefined)
    throw new ApiFault('key_not_for_hosts', 'Runs are started with a key "for: host" only.')
  return answer
}

function parseRun(body: ReadonlyMap<string, unknown>): NewRun {
  const text = (field: string) => {
    const value = body.get(field)
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.length > MAX_NAME))
      throw invalidBody(`The field "${field}" must be a text of 1 to ${MAX_NAME} characters.`)
    return value
  }
  const texts = (field: string) => {
    const value = body.get(field)
    if (value !== undefined && !isTexts(value))
      throw invalidBody(`The field "${field}" must be a list of at most ${MAX_TEXTS} texts.`)
    return value
  }
  const parent = text('parent')
  const foreign = parent === undefined ? undefined : OF_ROOT.find((field) => body.has(field))
  if (foreign !== undefined) throw invalidBody(`The field "${foreign}" is that of the parent's run: a child has none.`)
  const ttlMs = body.get('ttlMs')
  if (ttlMs !== undefined && typeof ttlMs !== 'number') throw invalidBody('The field "ttlMs" must be a number.')
  const [tools, policy = []] = [texts('tools'), body.get('policy')]
  if (!Array.isArray(policy) || policy.length > MAX_TEXTS)
    throw invalidBody(`The field "policy" must be a list of at most ${MAX_TEXTS} policies.`)
  const narrower = tools ? [{ name: 'tools of the run', allow: tools }] : []
  return {
    user: text('user'),
    tenant: text('tenant'),
    like: text('like'),
    apps: texts('apps'),
    userWords: texts('userWords'),
    parent,
    ttlMs,
    policy: [...narrower, ...(policy as readonly Policy[])],
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_TEXTS && value.every((text) => typeof text === 'string')
}

async function safely<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change()
  } catch (error) {
    if (error instanceof ConfigError) throw invalidBody(`${error.path}: ${error.problem}.`)
    throw error
  }
}
