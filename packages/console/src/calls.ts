/** The periods in which calls can be searched. */
export const TIME_RANGES = ['last hour', 'last day', 'last week', 'from … to'] as const
export type TimeRange = (typeof TIME_RANGES)[number]

const HOUR = 3_600_000
const LENGTHS: ReadonlyMap<string, number> = new Map<TimeRange, number>([
  ['last hour', HOUR],
  ['last day', 24 * HOUR],
  ['last week', 7 * 24 * HOUR],
])

/** The keys of the filter of calls, except outcome and text. The value says what a key selects. */
export const CALL_KEYS: readonly (readonly [name: string, about: string])[] = [
  ['tool', 'the tool, such as files:read_file or files:*'],
  ['user', 'the user'],
  ['tenant', 'the tenant'],
  ['run', 'the run of an agent'],
  ['session', 'the session of a client'],
  ['app', 'the app'],
  ['reason', 'the code of the reason, such as policy_denied'],
  ['clause', 'the clause that decided, such as writes#deny[0]'],
  ['approval', 'the id of the approval'],
  ['agent', 'the agent'],
  ['actor', 'who acted for the user'],
  ['client', 'the OAuth client'],
  ['chat', 'the chat'],
  ['model', 'the model'],
  ['kind', 'tool, resource or prompt'],
  ['trace', 'the trace'],
  ['call', 'the id of the call'],
  ['slower', 'the duration is at least so many milliseconds'],
]

const DIRECT = ['outcome', 'text', ...CALL_KEYS.map(([name]) => name)]

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
