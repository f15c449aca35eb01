import { redactor } from '@toolgate/core/redact'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import { CountedAudit } from '../../overview/counted-audit.ts'
import { createListCosts } from '../../overview/list-costs.ts'
import { Latencies } from '../../overview/latency.ts'
import { addOutcomes, type Figures, noOutcomes, PERIODS, type Period } from '../../overview/tally.ts'
import { maySee, type NamedCallers } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { oneOf, parseQuery, type Route } from '../request.ts'
import type { AttemptsRow, OverviewBody, OverviewServerRow } from '../wire.ts'
import { maySeeLogs } from './logs.ts'

const MAX_TOOLS = 200
const MAX_DENIED = 20
const MAX_PENDING = 1000

/** `GET /api/overview?period=`: what happened in the last hour, day or week. */
export function overviewRoute(deps: ApiDeps, callers: NamedCallers): Route {
  const counted = new CountedAudit(deps)
  const costs = createListCosts()
  return async ({ query, person }) => {
    const { period = '24h' } = parseQuery(query, { period: oneOf(Object.keys(PERIODS) as Period[]) })
    const { tenant } = person
    const figures = await counted.read(period, tenant)
    const pending = await deps.approvals.list({
      status: 'pending',
      limit: MAX_PENDING,
      ...(tenant !== undefined && { tenant }),
    })
    const oldestAt = pending.at(-1)?.requestedAt
    const agents = [...callers().values()].filter((one) => one.for === 'mcp' && maySee(person, one.caller))
    const tools = toToolRows(figures)
    return {
      period,
      since: figures.since,
      until: deps.clock.wallMs(),
      isComplete: figures.isComplete,
      ...sumOf([...figures.tools.values()]),
      bucketMs: figures.bucketMs,
      buckets: figures.buckets,
      tools: tools.slice(0, MAX_TOOLS),
      moreTools: Math.max(0, tools.length - MAX_TOOLS),
      servers: toServerRows(figures, deps, maySeeLogs(person)),
      denied: figures.denials.slice(0, MAX_DENIED).map(present),
      waiting: { count: pending.length, ...(oldestAt !== undefined && { oldestAt }) },
      ...(await costs(agents, deps)),
    } satisfies OverviewBody
  }
}

type Counted = Figures['tools'] extends ReadonlyMap<unknown, infer Value> ? Value : never

function sumOf(all: readonly Counted[]): AttemptsRow {
  const outcomes = noOutcomes()
  const latencies = new Latencies()
  for (const one of all) {
    addOutcomes(outcomes, one.outcomes)
    latencies.merge(one.latencies)
  }
  const latency = latencies.percentiles()
  const attempts = AUDIT_OUTCOMES.reduce((sum, outcome) => sum + outcomes[outcome], 0)
  return { attempts, outcomes, ...(latency && { latency }) }
}

function toToolRows({ tools }: Figures): OverviewBody['tools'] {
  return [...tools]
    .map(([tool, counted]) => ({ ...(tool !== undefined && { tool }), ...sumOf([counted]) }))
    .toSorted((a, b) => b.attempts - a.attempts)
}

const STDERR_LINES = 3

/** Returns all servers, and the namespaces of no server where calls ran. Those that are down come first, then the most called. */
function toServerRows(
  { tools }: Figures,
  { servers, logs, redact = redactor }: ApiDeps,
  seesLogs: boolean,
): readonly OverviewServerRow[] {
  const byServer = new Map<string, Counted[]>(servers().map(({ name }) => [name, []]))
  for (const [tool, counted] of tools) {
    if (tool === undefined) continue
    const server = serverOf(tool)
    byServer.set(server, [...(byServer.get(server) ?? []), counted])
  }
  const states = new Map(servers().map((server) => [server.name, server]))
  const rows = [...byServer].map(([name, counted]) => {
    const state = states.get(name)
    const lines = state && seesLogs ? (logs?.(name, { limit: 500 }) ?? []) : []
    const stderr = lines.filter(({ level }) => level === 'stderr').slice(-STDERR_LINES)
    return {
      name,
      ...(state && { status: state.status, since: state.since, restarts: state.restarts }),
      ...(state?.reason !== undefined && { reason: state.reason }),
      ...(stderr.length > 0 && { stderr: stderr.map(({ text }) => redact.redactText(text)) }),
      ...sumOf(counted),
    }
  })
  // Agents can make up namespaces, too, and nothing runs there.
  const real = rows.filter(({ status, outcomes }) => status !== undefined || outcomes.done + outcomes.failed > 0)
  return real.toSorted((a, b) => Number(b.status === 'down') - Number(a.status === 'down') || b.attempts - a.attempts)
}

/** `files` of `files:read`, and of `resource:files:…` and `prompt:files:…`. */
function serverOf(id: string): string {
  const [first = '', second = ''] = id.split(':')
  return first === 'resource' || first === 'prompt' ? second : first
}

function present({ tool, user, tenant, reason, count }: Figures['denials'][number]): OverviewBody['denied'][number] {
  return {
    ...(tool !== undefined && { tool }),
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    ...(reason !== undefined && { reason }),
    count,
  }
}
