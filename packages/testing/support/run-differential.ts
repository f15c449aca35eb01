import assert from 'node:assert/strict'
import fc from 'fast-check'
import { compareStrictness, OUTCOMES } from '../../core/src/decide/decision.ts'
import { defineCaller, defineTool, type OutcomeWord, type Tool } from '@toolgate/core'
import { outcomeAt } from '../../core/src/decide/decide.ts'
import { evaluate } from '../../core/src/decide/evaluation.ts'
import { decideAtCall } from '../../core/src/decide/layers/at-call.ts'
import { indexPolicy } from '../../core/src/decide/layers/clauses.ts'
import { callerEffects, fixedEffects } from '../../core/src/decide/layers/policy.ts'
import type { RunFacts } from '../../core/src/history/facts.ts'
import { parsePolicies } from '@toolgate/core/policy'
import { createToolset } from '@toolgate/core/toolset'
import { decideRun, type Json, naiveFacts, type RunPolicy, toRunPolicy, type Trace } from './naive-history.ts'
import {
  ADDRESSED,
  ASKED,
  callArbitrary,
  inputArbitrary,
  ORIGINS_OF,
  runPolicyArbitrary,
  traceArbitrary,
} from './run-worlds.ts'

const tool = defineTool({ namespace: 'mail', name: 'send', addressees: ADDRESSED })
const tools = createToolset([tool])
const caller = defineCaller({ user: 'vera' })

/** Returns a function that decides a call by compiled rules, in lists and with its input. The facts may be absent. */
export function compileRun(policy: RunPolicy): (input: Json, facts?: RunFacts) => OutcomeWord {
  const [index] = parsePolicies(toRunPolicy(policy, ASKED), new Map()).map((one, i) => indexPolicy(one, i, tools))
  assert.ok(index)
  const inLists = outcomeAt(evaluate(tools, [...fixedEffects(index), ...callerEffects(index, caller)]), 0)
  return (input, facts) => {
    const { outcome } = decideAtCall(index, 0, { caller, tool: tools.tools[0] as Tool, input, facts })
    return compareStrictness(inLists, outcome) < 0 ? inLists : outcome
  }
}

const TRACES_PER_POLICY = 50
/** The policies of each run of fast-check. */
const POLICIES = 20

/** Compares compiled rules with the naive evaluator over whole traces. Returns the number of compared traces. */
export function compareRules({ cases, seed }: { readonly cases: number; readonly seed: number }): number {
  let compared = 0
  const moments = fc.array(fc.tuple(traceArbitrary, inputArbitrary), {
    minLength: TRACES_PER_POLICY,
    maxLength: TRACES_PER_POLICY,
  })
  const property = fc.property(runPolicyArbitrary, moments, (policy, all) => {
    const decide = compileRun(policy)
    for (const [trace, input] of all) {
      const subject = { trace, input, origins: ORIGINS_OF, addressees: ADDRESSED }
      assert.equal(decide(input, naiveFacts(subject)), decideRun(policy, subject))
      compared++
    }
  })
  for (let left = cases; left > 0; left -= POLICIES * TRACES_PER_POLICY)
    fc.assert(property, { numRuns: POLICIES, seed: seed + left })
  return compared
}

/**
 * Whether a decision is at least as strict. An error denies, but an `ask` may replace it with a person's decision, so
 * the two count as equal.
 */
function isNoLooser(after: OutcomeWord, before: OutcomeWord): boolean {
  return OUTCOMES.indexOf(after) >= OUTCOMES.indexOf(before) || (after === 'ask' && before === 'deny')
}

export const runProperties = {
  /** Invariant 11: a call that began and did not succeed only tightens. */
  onlyTightens: fc.property(
    runPolicyArbitrary,
    traceArbitrary,
    callArbitrary,
    inputArbitrary,
    (policy, { calls }, { ended: _, ...began }, input) => {
      const decide = compileRun(policy)
      const wordOf = (trace: Trace) => decide(input, naiveFacts({ trace, origins: ORIGINS_OF }))
      assert.ok(isNoLooser(wordOf({ calls: [...calls, began] }), wordOf({ calls })))
    },
  ),
  /** Without a history, the answer is the strictest of all possible histories. */
  unknownIsStrictest: fc.property(runPolicyArbitrary, traceArbitrary, inputArbitrary, (policy, trace, input) => {
    const decide = compileRun(policy)
    assert.ok(isNoLooser(decide(input), decide(input, naiveFacts({ trace, origins: ORIGINS_OF }))))
  }),
} as const
