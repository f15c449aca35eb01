import type { Selector } from '../tools/selector.ts'

/** Where a value comes from, the worst first. The origin of a list or object is the worst of its values. */
export const ORIGINS = ['untrusted', 'unknown', 'trusted', 'user'] as const
export type Origin = (typeof ORIGINS)[number]

/** The label of an output whose tool the operator does not name as trusted. */
export const UNTRUSTED = 'untrusted'

/** `began`: a call that began, however it ends. `called`: one that ended `done`, and whose result reports no failure. */
export const CALL_EVENTS = ['began', 'called'] as const
export type CallEvent = (typeof CALL_EVENTS)[number]

/**
 * A question about earlier calls: `run.called('fraud:check', { 'input.order': input.order })`. Selector and names of fields are
 * literals, so all questions are known when the policies are loaded, and a history keeps nothing but what they ask.
 */
export interface CallPattern {
  readonly event: CallEvent
  readonly selector: Selector
  /** Sorted, such as `input.order` and `output.ok`. A pattern without fields matches each call of the selector. */
  readonly fields: readonly string[]
  /** Equal for equal patterns. */
  readonly key: string
}

/**
 * What conditions see of a run.
 *
 * Conditions can only be tightened by labels, `began`, and the origins `untrusted` and `unknown`, and only be loosened by
 * `called` and the other origins. So an answer that is not known has a strictest one: {@link strictestFacts}.
 */
export interface RunFacts {
  /** Labels of the calls that began before this one. */
  readonly labels: readonly string[]
  /** Whether a call matched, with these values of `pattern.fields`, in their order. `undefined` equals nothing. */
  matched(pattern: CallPattern, values: readonly unknown[]): boolean
  origin(value: unknown): Origin
  /** Returns calls that raised a label, for people and models. */
  raisedBy?(label: string): readonly EarlierCall[]
  /** Returns calls that matched, likewise. */
  matchedBy?(pattern: CallPattern, values: readonly unknown[]): readonly EarlierCall[]
  /** Whether these are the strictest facts, as nobody knows the run's own. */
  readonly isUnknown?: boolean
}

/** A call of the run that began before. A history keeps the first that raised a label, and one more. */
export interface EarlierCall {
  /** The id of its tool. */
  readonly tool: string
  /** Wall-clock milliseconds. */
  readonly atMs: number
}

/** A value in an input, and where it comes from. */
export interface OriginOfValue {
  /** The field that names it as an addressee. */
  readonly field?: string
  readonly value: unknown
  readonly origin: Origin
}

/** A fact that counted against a call. */
export interface FactRead {
  readonly kind: 'label' | CallEvent | 'origin'
  /** The label; the selector of a call; the expression of a value, such as `input.to`. */
  readonly of: string
  /** The fields of a call that had to be equal. */
  readonly fields?: readonly string[]
  /** The values of those fields, in their order; `undefined` for one that the call did not have. */
  readonly wanted?: readonly unknown[]
  readonly origin?: Origin
  /** Of an origin: the values that have it, the worst first. At most five. */
  readonly values?: readonly OriginOfValue[]
  /** The tools that raised the label, or that the selector names. */
  readonly tools?: readonly string[]
  /** The calls that raised the label, or that matched. */
  readonly calls?: readonly EarlierCall[]
}

/** What all loaded policies together read of a run. */
export interface HistoryUse {
  readonly readsRun: boolean
  readonly readsOrigin: boolean
  readonly patterns: readonly CallPattern[]
  /** The labels that conditions name, sorted. */
  readonly labels: readonly string[]
}

/** Returns the facts of a history that is unknown or lost. `labels` are all labels that the gate knows. */
export function strictestFacts(labels: readonly string[]): RunFacts {
  return { isUnknown: true, labels, matched: ({ event }) => event === 'began', origin: () => 'untrusted' }
}
