import type { CallEvent, EarlierCall, Origin } from '../ports/fact-read.ts'
import type { Work } from '@toolgate/values'
import type { Selector } from '../tools/selector.ts'

/** The label of an output whose tool the operator does not name as trusted. */
export const UNTRUSTED = 'untrusted'

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
  /** Its steps are counted in `work`; beyond it, the answer is `untrusted`. Every key of an object is a value. */
  origin(value: unknown, work?: Work): Origin
  /** Returns calls that raised a label, for people and models. */
  raisedBy?(label: string): readonly EarlierCall[]
  /** Returns calls that matched, likewise. */
  matchedBy?(pattern: CallPattern, values: readonly unknown[]): readonly EarlierCall[]
  /** Whether these are the strictest facts, as nobody knows the run's own. */
  readonly isUnknown?: boolean
}

/** The facts of a run that policies read, together. */
export interface HistoryUse {
  readonly readsRun: boolean
  readonly readsOrigin: boolean
  readonly patterns: readonly CallPattern[]
  /** The labels that conditions name, sorted. */
  readonly labels: readonly string[]
}

/** Enforced rules read one history of a run, shadows read another. */
export interface HistoryUses {
  readonly enforced: HistoryUse
  readonly shadows: HistoryUse
}

/** Returns the facts of a history that is unknown or lost. `labels` are all labels that the gate knows. */
export function strictestFacts(labels: readonly string[]): RunFacts {
  return { isUnknown: true, labels, matched: ({ event }) => event === 'began', origin: () => 'untrusted' }
}
