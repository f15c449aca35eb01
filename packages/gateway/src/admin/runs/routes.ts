import type { Answer, Asked } from '../../heart/route.ts'
import type { Room } from '../../heart/room.ts'
import { room as overview } from '../overview/routes.ts'
import { ConfigError, type Policy } from '@toolgate/core'
import type { Approvals } from '@toolgate/core/call'
import { parsePolicies } from '@toolgate/core/policy'
import { type Authenticator, type Credential, isRefused, toKeyId } from '../../auth/credential.ts'
import type { ListedRun } from '../../auth/made-run.ts'
import type { NewRun, Runs } from '../../auth/runs.ts'
import type { CountedAudit } from '../overview/counted-audit.ts'
import type { CountedRun } from '../overview/run-tally.ts'
import { maySee } from '../http/callers.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, oneOf, parseQuery, queryOf, readBody, shortText, time, wholeNumber } from '../http/request.ts'
import type { EndedRunBody, RunRow, RunsBody, StartedRunBody } from '../../model/rows.ts'

/** Programs that run agents start, list and end runs. People see and end runs, but cannot start them. */
export const room: Room = {
  name: 'runs',
  needs: [overview],
  open({ door, catalog, gate }, rooms) {
    const { authenticator, runs } = door
    const checkPolicy = (policy: readonly Policy[]) => void parsePolicies(policy, catalog.selectors())
    const counted = rooms.ask(overview)?.counted
    const list = runsRoute({ runs, counted, approvals: gate.approvals })
    return {
      routes: [
        { method: 'GET', path: '/api/runs', by: 'host-or-person', answer: list },
        {
          method: 'POST',
          path: '/api/runs',
          by: 'host',
          answer: (request) => startRun(request, { authenticator, runs, checkPolicy }),
        },
        { method: 'DELETE', path: '/api/runs/:id', by: 'host-or-person', answer: endRunRoute(runs) },
      ],
    }
  },
}

/** The dependencies for starting a run. */
export interface RunRouteDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'challenge'>
  readonly runs: Pick<Runs, 'start'>
  /** @throws {ConfigError} for a policy that cannot be used now */
  readonly checkPolicy: (policy: readonly Policy[]) => void
}

const FIELDS = ['user', 'tenant', 'like', 'apps', 'tools', 'policy', 'userWords', 'ttlMs', 'parent']
/** The fields that a child inherits from its parent. */
const OF_ROOT = ['user', 'tenant', 'like', 'apps', 'userWords']
const MAX_TEXTS = 100
const MAX_NAME = 300
const DEFAULT_LIMIT = 100
const MAX_LISTED = 1000

/**
 * `POST /api/runs`: starts a run for a caller of the file, or for a sub-agent of a run. Only this answer contains its
 * token.
 */
async function startRun(request: Request, deps: RunRouteDeps): Promise<StartedRunBody> {
  parseQuery(queryOf(request), {})
  const host = await hostOf(request, deps)
  const asked = parseRun(await readBody(request, FIELDS))
  return safely(() => {
    deps.checkPolicy(asked.policy)
    return deps.runs.start(asked, host)
  })
}

const FILTERS = {
  user: shortText,
  tenant: shortText,
  label: shortText,
  text: shortText,
  state: oneOf(['open', 'ended'] as const),
  since: time,
  until: time,
}
type RunFilter = ReturnType<typeof parseQuery<typeof FILTERS>>

/** The sources of runs: the active ones, and the counts of the audit. */
interface RunsRead {
  readonly runs: Pick<Runs, 'list'>
  /** Absent: only active runs are known. */
  readonly counted: Pick<CountedAudit, 'readRuns'> | undefined
  readonly approvals: Pick<Approvals, 'list'>
}

/**
 * `GET /api/runs`: for a person the runs of the last week that they may see, latest first; for a host its own active
 * runs.
 */
function runsRoute(from: RunsRead): Answer {
  return async (asked) => {
    const { query, person } = asked
    const whose = askerOf(asked)
    const parameters = {
      ...FILTERS,
      limit: wholeNumber(1, MAX_LISTED),
      before: wholeNumber(0, Number.MAX_SAFE_INTEGER),
    }
    const { limit = DEFAULT_LIMIT, before, ...filter } = parseQuery(query, parameters)
    const { rows, ...soFar } = await readRuns(from, whose, person.tenant)
    const found = rows.filter((row) => matchesRun(row, filter))
    const left = before === undefined ? found : found.filter(({ seq = Infinity }) => seq < before)
    const shown = left.slice(0, limit)
    const next = shown.length < left.length ? shown.at(-1)?.seq : undefined
    const labels = [...new Set(rows.flatMap((row) => row.labels))].toSorted().slice(0, MAX_LISTED)
    return {
      runs: shown,
      total: found.length,
      labels,
      ...soFar,
      ...(next !== undefined && { next }),
    } satisfies RunsBody
  }
}

/** Returns every run that the asker may see: first those without a record yet, then those with the latest records. */
async function readRuns({ runs, counted, approvals }: RunsRead, whose: RunsReader, tenant: string | undefined) {
  const open = (await runs.list(whose.host)).filter((run) => whose.maySee(run))
  const left = new Map(open.map((run) => [keyOf(run), run]))
  const of = whose.host ? undefined : tenant
  const waiting = new Map<string, number>()
  for (const { run, tenant: ofTenant } of await approvals.list({ status: 'pending', limit: MAX_LISTED })) {
    const key = keyOf({ id: run ?? '', tenant: ofTenant })
    waiting.set(key, (waiting.get(key) ?? 0) + 1)
  }
  const { runs: all, ...soFar } = (await counted?.readRuns(of)) ?? { runs: [], isComplete: true }
  const rows = all.flatMap((run): readonly RunRow[] => {
    const key = keyOf(run)
    const listed = run.kind === 'run' ? left.get(key) : undefined
    if (listed) left.delete(key)
    return listed || !whose.host ? [toRow(listed, run, waiting.get(key) ?? 0)] : []
  })
  return { rows: [...[...left.values()].map((run) => toRow(run, undefined, 0)), ...rows], ...soFar }
}

function keyOf({ id, tenant }: { readonly id: string; readonly tenant?: string | undefined }): string {
  return JSON.stringify([tenant ?? null, id])
}

function matchesRun(row: RunRow, { user, tenant, label, text, state, since, until }: RunFilter): boolean {
  if ((user !== undefined && row.user !== user) || (tenant !== undefined && row.tenant !== tenant)) return false
  if (label !== undefined && !row.labels.includes(label)) return false
  if (state !== undefined && row.state !== state) return false
  if ((since !== undefined && row.lastAt < since) || (until !== undefined && row.startedAt >= until)) return false
  if (text === undefined) return true
  const asked = text.toLowerCase()
  const texts = [row.id, row.user, row.tenant, row.client, row.app, row.host]
  return texts.some((one) => one?.toLowerCase().includes(asked))
}

/** `DELETE /api/runs/<id>`: ends a run. After the answer, its token and those of its child runs open nothing. */
function endRunRoute(runs: Pick<Runs, 'end'>): Answer {
  return async (asked) => {
    const { id, query } = asked
    parseQuery(query, {})
    const whose = askerOf(asked)
    const { host, user: by } = whose
    if (!whose.mayEnd) throw new ApiFault('run_forbidden', 'A person ends runs with the role "operator" or "approver".')
    await safely(() => runs.end(id, { reason: host ? 'ended' : 'revoked', by }, whose.maySee, host))
    return { id } satisfies EndedRunBody
  }
}

/** The host or person who asks about runs. */
interface RunsReader {
  readonly user: string | undefined
  readonly host?: Credential
  readonly mayEnd: boolean
  maySee(run: ListedRun): boolean
}

function askerOf({ person, host }: Asked): RunsReader {
  const { user, roles = [] } = person
  if (host) return { user, host, mayEnd: true, maySee: () => true }
  const mayEnd = user !== undefined && roles.some((role) => role === 'operator' || role === 'approver')
  return { user, mayEnd, maySee: (run) => maySee(person, run) }
}

/** Returns the row of a run that is active, has records, or both. */
function toRow(open: ListedRun | undefined, counted: Readonly<CountedRun> | undefined, waiting: number): RunRow {
  const { id = '', kind = 'run', lastSeq: seq, user, tenant, client, app, ended, startedAt = 0 } = counted ?? {}
  const state = open ? 'open' : ended && 'ended'
  return {
    id: open?.id ?? id,
    kind,
    user: open?.user ?? user,
    tenant: open?.tenant ?? tenant,
    client,
    app,
    host: open?.hostUser ?? counted?.host,
    parent: open?.above[0],
    narrows: open?.narrows,
    startedAt: open?.createdAt ?? startedAt,
    lastAt: counted?.lastAt ?? open?.createdAt ?? 0,
    expiresAt: open?.expiresAt,
    state,
    ...(ended && { endedAt: ended.at, end: ended.reason }),
    seq,
    calls: counted?.calls ?? 0,
    refused: counted?.refused ?? 0,
    failed: counted?.failed ?? 0,
    waiting,
    labels: [...(counted?.labels ?? [])].toSorted(),
  }
}

/** Returns the host of a request. Cookies are ignored. @throws {ApiFault} `unauthenticated`, `key_not_for_hosts` */
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
