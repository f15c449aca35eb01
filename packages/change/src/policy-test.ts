import type { Caller, OutcomeWord, ReasonCode } from '@toolgate/core'
import type { GroupState } from '@toolgate/core/groups'
import { shapeOf } from '@toolgate/values'

/** One test of a policy: a caller, a situation, and the expected answers. Data that a person who does not program can check. */
export interface PolicyTest {
  /** What the test shows, as a sentence. */
  readonly shows: string
  /** The name of a caller, or a caller. Default: an anonymous caller. */
  readonly caller?: string | Caller | undefined
  readonly app?: string | undefined
  /** The time of the test, in RFC 3339. Default: 2026-01-01T00:00:00Z. No time passes during a test. */
  readonly at?: string | undefined
  /** The availability of groups. Default: available. */
  readonly availability?: Readonly<Record<string, boolean | GroupState>> | undefined
  /** How the caller's session opened groups: `{ request: web }`. */
  readonly unlocked?: readonly Unlocking[] | undefined
  readonly visibility?: readonly string[] | undefined
  readonly activeTools?: readonly string[] | undefined
  readonly history?: StatedHistory | undefined
  /** The used part of limits, by their text: `{ 'files:write_file:5/60': 5 }`. */
  readonly used?: Readonly<Record<string, number>> | undefined
  /** The input of every call. */
  readonly input?: unknown
  readonly expect: ExpectedAnswers
}

/** A request, search or event that opens a locked group for the caller's session. */
export type Unlocking =
  | { readonly request: string }
  | { readonly event: string }
  | { readonly found: readonly string[] }

/** What has happened before. It is taken as it is stated, whether or not the policy under test would have allowed it. */
export interface StatedHistory {
  /** What the user has written. */
  readonly said?: string | readonly string[] | undefined
  /** Labels that have risen. */
  readonly labels?: readonly string[] | undefined
  /** Earlier calls, the earliest first. */
  readonly calls?: readonly EarlierCall[] | undefined
  /** `false`: the calls belong to no run, so what the caller has done lately counts. Default `true`. */
  readonly run?: boolean | undefined
  /** Nobody knows it: rules get their strictest answer. */
  readonly lost?: boolean | undefined
}

export interface EarlierCall {
  readonly tool: string
  readonly input?: unknown
  readonly output?: unknown
  /** Whether the call ended with an error. */
  readonly failed?: boolean | undefined
  /** The age of the call: `30s`, `5m`, `2h`, `1d`. Default: just now. */
  readonly ago?: string | undefined
}

export interface ExpectedAnswers {
  /** All visible ids, in order. */
  readonly visible?: readonly string[] | undefined
  /** Ids that must be visible. Others may be, too. */
  readonly sees?: readonly string[] | undefined
  /** Ids that are not visible. */
  readonly hides?: readonly string[] | undefined
  /** The texts for the model's instructions, in order. */
  readonly notices?: readonly string[] | undefined
  /** The outcome of a separate call of each id: `allow` means that it ran. */
  readonly call?: Readonly<Record<string, OutcomeWord>> | undefined
  /** The codes of a call's decision, the deciding one first. */
  readonly reasons?: Readonly<Record<string, readonly ReasonCode[]>> | undefined
  /** The clause that decides a call, such as `baseline#deny[1]`; or the policy, if it decides as a whole. */
  readonly clause?: Readonly<Record<string, string>> | undefined
  /** The exact text that the model gets. */
  readonly text?: Readonly<Record<string, string>> | undefined
}

export const TEST = shapeOf<PolicyTest>(
  {
    shows: true,
    caller: true,
    app: true,
    at: true,
    availability: true,
    unlocked: true,
    visibility: true,
    activeTools: true,
    history: true,
    used: true,
    input: true,
    expect: true,
  },
  'key',
)
export const STATED_HISTORY = shapeOf<StatedHistory>(
  { said: true, labels: true, calls: true, run: true, lost: true },
  'key',
)
export const EARLIER_CALL = shapeOf<EarlierCall>(
  { tool: true, input: true, output: true, failed: true, ago: true },
  'key',
)
export const EXPECTED = shapeOf<ExpectedAnswers>(
  { visible: true, sees: true, hides: true, notices: true, call: true, reasons: true, clause: true, text: true },
  'key',
)

export const GROUP_STATE = shapeOf<GroupState>(
  { available: true, unknown: true, reason: true, detail: true, suggestion: true, since: true },
  'key',
)

/** The expectations about calls, each keyed by the called id. */
export const OF_CALLS = ['call', 'reasons', 'clause', 'text'] as const

/** Returns the ids that are called, each once. */
export function calledIn({ expect }: Pick<PolicyTest, 'expect'>): readonly string[] {
  return [...new Set(OF_CALLS.flatMap((key) => Object.keys(expect[key] ?? {})))]
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Returns the milliseconds of `30s`, `5m`, `2h` or `1d`; `undefined` for any other text. */
export function parseAgo(text: unknown): number | undefined {
  const [, count, unit = ''] = (typeof text === 'string' && /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)) || []
  const ms = UNITS.get(unit)
  return count === undefined || ms === undefined ? undefined : Number(count) * ms
}
