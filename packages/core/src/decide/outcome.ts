import type { Reason } from './reason.ts'

/** What every layer answers, strictest last. */
export const OUTCOMES = ['allow', 'ask', 'wait', 'deny'] as const
export type OutcomeWord = (typeof OUTCOMES)[number]

/** The layers that are asked before a call, in the order in which their reasons are told. */
export const ASKED_LAYERS = [
  'catalog',
  'policy',
  'scopes',
  'app',
  'visibility',
  'step',
  'availability',
  'locks',
  'preferences',
  'pins',
  'halts',
] as const

/** Those, and what the door finds in a call itself. */
export const LAYER_ORDER = [...ASKED_LAYERS, 'input', 'hooks', 'limits', 'approval', 'door'] as const
export type Layer = (typeof LAYER_ORDER)[number]

/** What was decided of one tool for one caller. */
export interface Decision {
  readonly outcome: OutcomeWord
  /** Every reason that holds, the deciding one first. Empty only for a plain allow. */
  readonly reasons: readonly Reason[]
}

const RANK: Readonly<Record<OutcomeWord, number>> = { allow: 0, ask: 1, wait: 2, deny: 3 }

/** Compares by strictness: negative when `a` is the stricter. */
export function compareStrictness(a: OutcomeWord, b: OutcomeWord): number {
  return RANK[b] - RANK[a]
}

/**
 * Gives the strictest of several answers, with the reasons of all, the deciding ones first.
 *
 * Order does not matter and adding an answer never loosens the result, which is
 * why every layer of the gate is combined with this and nothing else.
 *
 * @example
 * strictest([ask, deny]).outcome // 'deny'
 */
export function strictest(answers: Iterable<Decision>): Decision {
  let outcome: OutcomeWord = 'allow'
  const reasons: Reason[] = []
  for (const answer of answers) {
    if (compareStrictness(answer.outcome, outcome) < 0) outcome = answer.outcome
    reasons.push(...answer.reasons)
  }
  return { outcome, reasons: sortReasons(reasons) }
}

/** Orders reasons by strictness and then by the layers' own order, so that equal decisions read equally. */
export function sortReasons(reasons: readonly Reason[]): readonly Reason[] {
  return reasons.toSorted(
    (a, b) =>
      compareStrictness(a.outcome, b.outcome) ||
      LAYER_ORDER.indexOf(a.layer) - LAYER_ORDER.indexOf(b.layer) ||
      a.order - b.order,
  )
}
