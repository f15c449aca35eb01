/** The periods in which calls can be searched. */
export const TIME_RANGES = ['last hour', 'last day', 'last week', 'from … to'] as const
export type TimeRange = (typeof TIME_RANGES)[number]

const HOUR = 3_600_000
const LENGTHS: ReadonlyMap<string, number> = new Map<TimeRange, number>([
  ['last hour', HOUR],
  ['last day', 24 * HOUR],
  ['last week', 7 * 24 * HOUR],
])

/** The fields behind "All fields": the parameter, its label and an example. */
export const MORE_FILTERS: readonly (readonly [name: string, label: string, example: string])[] = [
  ['run', 'Run', 'run-7'],
  ['session', 'Session', 'any'],
  ['tenant', 'Tenant', 'acme'],
  ['app', 'App', 'research'],
  ['reason', 'Reason', 'policy_denied'],
  ['clause', 'Clause', 'writes#deny[0]'],
  ['approval', 'Approval', 'any'],
  ['agent', 'Agent', 'any'],
  ['actor', 'Actor', 'any'],
  ['client', 'Client', 'any'],
  ['chat', 'Chat', 'any'],
  ['model', 'Model', 'any'],
  ['kind', 'Kind', 'resource'],
  ['trace', 'Trace', 'any'],
  ['call', 'Call', 'any'],
  ['slower', 'Duration at least (ms)', '1000'],
]

const DIRECT = ['outcome', 'text', 'tool', 'user', ...MORE_FILTERS.map(([name]) => name)]

/** All choices in the address that filter calls. */
export const CALL_FILTERS: readonly string[] = ['range', 'from', 'to', ...DIRECT]

/**
 * Returns the parameters of `GET /api/calls` for the choices in the address. Times without a time zone are in the
 * user's zone.
 */
export function queryOf(choices: ReadonlyMap<string, string>, nowMs: number): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  for (const name of DIRECT) {
    const value = choices.get(name) ?? ''
    if (value !== '') query[name] = value
  }
  const lengthMs = LENGTHS.get(choices.get('range') ?? '')
  const [since, until] =
    lengthMs === undefined ? [timeOf(choices.get('from')), timeOf(choices.get('to'))] : [nowMs - lengthMs, undefined]
  return {
    ...query,
    ...(since !== undefined && { since: `${since}` }),
    ...(until !== undefined && { until: `${until}` }),
  }
}

function timeOf(text = ''): number | undefined {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}
