import type { Answer } from '../../heart/route.ts'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import { CountedAudit } from './counted-audit.ts'
import { createListCosts, type ListCosts } from './list-costs.ts'
import { type Counted, type OverviewFigures, noneCounted } from './sum.ts'
import { PERIODS, type Period } from './tally.ts'
import { createNamedCallers, type NamedCallers } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { oneOf, parseQuery } from '../http/request.ts'
import type { AttemptsRow, OverviewBody, OverviewServerRow } from '../../model/rows.ts'
import { maySeeLogs } from '../http/may.ts'

export const room: Room<Counts> = {
  name: 'overview',
  open(heart) {
    const { stores, clock, revisions } = heart
    const counts = { counted: new CountedAudit({ audit: stores.audit, clock }), costs: createListCosts() }
    const callers = createNamedCallers(() => revisions.current.callers)
    const answer = overviewRoute(heart, callers, counts)
    return { service: counts, routes: [{ method: 'GET', path: '/api/overview', by: 'person', answer }] }
  },
}

type OverviewHeart = Pick<Heart, 'gate' | 'clock' | 'servers' | 'redact'>

const MAX_TOOLS = 200
const MAX_DENIED = 20
const MAX_PENDING = 1000

/** The counts that several routes share. */
export interface Counts {
  readonly counted: CountedAudit
  readonly costs: ListCosts
}

/** `GET /api/overview?period=`: the calls of the last hour, day or week. */
export function overviewRoute(heart: OverviewHeart, callers: NamedCallers, { counted, costs }: Counts): Answer {
  return async ({ query, person }) => {
    const { period = '24h' } = parseQuery(query, { period: oneOf(Object.keys(PERIODS) as Period[]) })
    const { tenant } = person
    const pending = await heart.gate.approvals.list({
      status: 'pending',
      limit: MAX_PENDING,
      ...(tenant !== undefined && { tenant }),
    })
    const oldestAt = pending.at(-1)?.requestedAt
    const agents = [...callers(person).values()].filter((one) => one.for === 'mcp')
    const costly = await costs.all(agents, heart)
    const figures = await counted.read(period, tenant)
    return {
      period,
      since: figures.since,
      until: heart.clock.wallMs(),
      isComplete: figures.isComplete,
      ...(figures.countedTo !== undefined && { countedTo: figures.countedTo }),
      ...toRow(figures.all),
      bucketMs: figures.bucketMs,
      buckets: figures.buckets,
      tools: toToolRows(figures),
      moreTools: Math.max(0, figures.tools.size - MAX_TOOLS),
      servers: toServerRows(figures, heart, maySeeLogs(person)),
      denied: figures.denials.slice(0, MAX_DENIED).map(present),
      waiting: { count: pending.length, ...(oldestAt !== undefined && { oldestAt }) },
      ...costly,
    } satisfies OverviewBody
  }
}

function toRow({ outcomes, latencies }: Counted): AttemptsRow {
  const latency = latencies.percentiles()
  return { attempts: attemptsOf(outcomes), outcomes: { ...outcomes }, ...(latency && { latency }) }
}

function attemptsOf(outcomes: Counted['outcomes']): number {
  return AUDIT_OUTCOMES.reduce((sum, outcome) => sum + outcomes[outcome], 0)
}

/** Returns the most called tools. */
function toToolRows({ tools }: OverviewFigures): OverviewBody['tools'] {
  return [...tools]
    .map(([tool, counted]) => ({ tool, counted, attempts: attemptsOf(counted.outcomes) }))
    .toSorted((a, b) => b.attempts - a.attempts)
    .slice(0, MAX_TOOLS)
    .map(({ tool, counted }) => ({ ...(tool !== undefined && { tool }), ...toRow(counted) }))
}

const STDERR_LINES = 3

/**
 * Returns all servers, and other namespaces in which calls ran. Servers that are down come first, then those with the
 * most calls.
 */
function toServerRows(
  { servers: counts }: OverviewFigures,
  { servers: { fleet }, redact }: OverviewHeart,
  seesLogs: boolean,
): readonly OverviewServerRow[] {
  const states = new Map(fleet.rows().map((server) => [server.name, server]))
  const names = new Set([...states.keys(), ...counts.keys()])
  const rows = [...names].map((name) => {
    const state = states.get(name)
    const lines = state && seesLogs ? fleet.logs.of(name, { limit: 500 }) : []
    const stderr = lines.filter(({ level }) => level === 'stderr').slice(-STDERR_LINES)
    return {
      name,
      ...(state && { status: state.status, since: state.since, restarts: state.restarts }),
      ...(state?.reason !== undefined && { reason: state.reason }),
      ...(stderr.length > 0 && { stderr: stderr.map(({ text }) => redact.redactText(text)) }),
      ...toRow(counts.get(name) ?? noneCounted()),
    }
  })
  // Agents can invent namespaces too, but no call runs in those.
  const real = rows.filter(({ status, outcomes }) => status !== undefined || outcomes.done + outcomes.failed > 0)
  return real.toSorted((a, b) => Number(b.status === 'down') - Number(a.status === 'down') || b.attempts - a.attempts)
}

function present({
  tool,
  user,
  tenant,
  reason,
  count,
}: OverviewFigures['denials'][number]): OverviewBody['denied'][number] {
  return {
    ...(tool !== undefined && { tool }),
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    ...(reason !== undefined && { reason }),
    count,
  }
}
