import type { CallEvent, EarlierCall, Origin } from '../ports/fact-read.ts'
import type { Work } from '@toolgate/values'
import type { Selector } from '../tools/selector.ts'

/** The label of outputs of tools that the operator does not name as trusted. */
export const UNTRUSTED = 'untrusted'

/**
 * A question about earlier calls: `run.called('fraud:check', { 'input.order': input.order })`. Selectors and field names
 * are literals, so all questions are known when the policies are loaded, and a history keeps only what they need.
 */
export interface CallPattern {
  readonly event: CallEvent
  readonly selector: Selector
  /** Sorted, such as `input.order` and `output.ok`. A pattern without fields matches each call of the selector. */
  readonly fields: readonly string[]
  /** The same for equal patterns. */
  readonly key: string
}

/**
 * The facts about a run that conditions can read.
 *
 * Labels, `began`, and the origins `untrusted` and `unknown` can only tighten a condition; `called` and the other origins
 * can only loosen it. So an unknown run has well-defined strictest facts: {@link strictestFacts}.
 */
export interface RunFacts {
  /** Labels of the calls that began before this one. */
  readonly labels: readonly string[]
  /** Returns whether a call matched, with these values of `pattern.fields`, in order. `undefined` equals nothing. */
  matched(pattern: CallPattern, values: readonly unknown[]): boolean
  /**
   * Returns the worst origin within a value. Counts steps in `work`; if they run out, the answer is `untrusted`. Keys of
   * objects count as values.
   */
  origin(value: unknown, work?: Work): Origin
  /** Returns calls that raised a label, for people and models. */
  raisedBy?(label: string): readonly EarlierCall[]
  /** Returns calls that matched, for people and models. */
  matchedBy?(pattern: CallPattern, values: readonly unknown[]): readonly EarlierCall[]
  /** Whether these are the strictest facts, because the run's own are unknown. */
  readonly isUnknown?: boolean
}

/** The facts of a run that all policies together read. */
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
