import { compareStrictness, type Decision } from '../decision/outcome.ts'
import { ASKED_LAYERS, type Layer, type OutcomeWord } from '../decision/words.ts'

/** What one layer says of a tool. */
export interface LayerAnswer {
  readonly layer: Layer
  readonly outcome: OutcomeWord
}

/** A decision for people: beside the reasons against it, the answer of every layer. */
export interface Explanation extends Decision {
  /** The deciding layer first, the others in the order in which layers are told. */
  readonly answers: readonly LayerAnswer[]
}

export function toExplanation({ outcome, reasons }: Decision): Explanation {
  const answers = ASKED_LAYERS.map((layer) => ({ layer, outcome: strictestOf(layer, reasons) }))
  return { outcome, reasons, answers: answers.toSorted((a, b) => compareStrictness(a.outcome, b.outcome)) }
}

function strictestOf(layer: Layer, reasons: Decision['reasons']): OutcomeWord {
  const own = reasons.filter((reason) => reason.layer === layer).map(({ outcome }) => outcome)
  return own.toSorted(compareStrictness)[0] ?? 'allow'
}
