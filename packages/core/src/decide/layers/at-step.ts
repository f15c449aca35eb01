import type { RunFacts } from '../../history/facts.ts'
import { conditionWork } from '../../policy/condition.ts'
import type { Caller } from '../../ports/caller.ts'
import { bitsWhere, hasBit, isEmpty } from '../../tools/bits.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Reason } from '../decision.ts'
import type { Effect } from '../evaluation.ts'
import { type ClauseContext, decideAtStep } from './at-call.ts'
import type { PolicyIndex } from './clauses.ts'

/**
 * Returns the effects of a run's history on one step, from the clauses that read the run but not the input. A tool that
 * they deny is not offered in this step. They also decide its calls.
 */
export function factEffects(index: PolicyIndex, caller: Caller, facts: RunFacts): readonly Effect[] {
  const { snapshot, ofRun, hasStepClauses } = index
  if (!hasStepClauses) return []
  const reasons = new Map<string, Reason>()
  const work = conditionWork()
  const bits = bitsWhere(snapshot.size, (at) => {
    const tool = snapshot.tools[at] as Tool
    if (!hasBit(ofRun, at)) return false
    const context: ClauseContext = { caller, tool, input: undefined, facts, work }
    const {
      outcome,
      reasons: [first],
    } = decideAtStep(index, at, context)
    if (outcome !== 'deny' || !first) return false
    reasons.set(tool.id, first)
    return true
  })
  if (isEmpty(bits)) return []
  return [{ outcome: 'deny', bits, isOfStep: true, reason: ({ id }) => reasons.get(id) as Reason }]
}
