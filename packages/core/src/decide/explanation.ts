import { compareStrictness, type Decision } from '../decision/outcome.ts'
import { ASKED_LAYERS, type Layer, type OutcomeWord } from '../decision/words.ts'
import type { SchemaWarning } from '../json-schema/skipped.ts'
import { schemaWarningsOf } from '../tools/schema-warnings.ts'
import type { Tool } from '../tools/tool.ts'

/** What one layer says of a tool. */
export interface LayerAnswer {
  readonly layer: Layer
  readonly outcome: OutcomeWord
}

/** A decision for people: beside the reasons against it, the answer of every layer. */
export interface Explanation extends Decision {
  /** The deciding layer first, the others in the order in which layers are told. */
  readonly answers: readonly LayerAnswer[]
  /** Keywords of the tool's input schema that are not checked, where there are some. */
  readonly schemaWarnings?: readonly SchemaWarning[]
}

export function toExplanation({ outcome, reasons }: Decision, tool: Tool | undefined): Explanation {
  const answers = ASKED_LAYERS.map((layer) => ({ layer, outcome: strictestOf(layer, reasons) }))
  const schemaWarnings = tool ? schemaWarningsOf(tool) : []
  return {
    outcome,
    reasons,
    answers: answers.toSorted((a, b) => compareStrictness(a.outcome, b.outcome)),
    ...(schemaWarnings.length > 0 ? { schemaWarnings } : {}),
  }
}

function strictestOf(layer: Layer, reasons: Decision['reasons']): OutcomeWord {
  const own = reasons.filter((reason) => reason.layer === layer).map(({ outcome }) => outcome)
  return own.toSorted(compareStrictness)[0] ?? 'allow'
}
