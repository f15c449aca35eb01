import type { Caller } from '../caller.ts'
import { compareStrictness, type Decision, sortReasons } from '../decision/outcome.ts'
import type { OutcomeWord } from '../decision/words.ts'
import { type Reason, reason } from '../decision/reason.ts'
import { decideInput, type PolicyIndex } from '../layers/policy.ts'
import { conditionWork } from '../policy/input-work.ts'
import { hasBit } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { PolicySnapshot } from './policy-snapshot.ts'
import { outcomeAt, reasonsAt, type Evaluation } from './evaluation.ts'

/** What a run may at most: as it was when its view was made, whatever was narrowed since. */
export interface RunBounds {
  readonly caller: Caller
  readonly evaluation: Evaluation
  /** The policies in force then, for what they say about inputs. */
  readonly policies: readonly PolicyIndex[]
}

/**
 * The one decision: the stricter of what the view was given and what is so today.
 *
 * VisibleTools, calling, resuming and explaining all ask this. `tool` is today's, and present only
 * where the id is known to both.
 */
export interface Decided {
  readonly outcome: OutcomeWord
  readonly tool: Tool | undefined
  /** Index of the tool in the view's snapshot, and in today's. */
  readonly atFirst: number
  readonly now: number
}

export function decide({ evaluation, caller }: RunBounds, today: PolicySnapshot, id: string | undefined): Decided {
  if (id === undefined) return NOT_FOUND
  const atFirst = evaluation.snapshot.indexOf(id)
  const now = today.snapshot === evaluation.snapshot ? atFirst : today.snapshot.indexOf(id)
  if (atFirst === -1 || now === -1) return NOT_FOUND
  const current = today.evaluation(caller)
  const outcome = outcomeAt(evaluation, atFirst)
  return {
    outcome: current === evaluation ? outcome : stricter(outcome, outcomeAt(current, now)),
    tool: today.snapshot.tools[now],
    atFirst,
    now,
  }
}

/** Gives the reasons of a decision, from the same effects that decided it. */
export function explain(bounds: RunBounds, today: PolicySnapshot, decided: Decided): Decision {
  if (decided.tool === undefined) return UNKNOWN
  const current = today.evaluation(bounds.caller)
  const reasons = reasonsAt(bounds.evaluation, decided.atFirst)
  const all = current === bounds.evaluation ? reasons : [...reasons, ...reasonsAt(current, decided.now)]
  return { outcome: decided.outcome, reasons: sortReasons(withoutRepeats(all)) }
}

/** Gives what the clauses that want the input say of it, then and now. */
export function decideWithInput(
  bounds: RunBounds,
  today: PolicySnapshot,
  { tool, atFirst, now }: Decided,
  input: unknown,
): Decision {
  const same = today.policies === bounds.policies
  if (!wantInput(bounds.policies, atFirst) && (same || !wantInput(today.policies, now))) return ALLOWED
  const context = { caller: bounds.caller, tool: tool as Tool, input, work: conditionWork() }
  const answers = bounds.policies.map((policy) => decideInput(policy, atFirst, context))
  if (!same) answers.push(...today.policies.map((policy) => decideInput(policy, now, context)))
  const reasons = answers.flatMap((answer) => answer.reasons)
  if (reasons.length === 0) return ALLOWED
  return {
    outcome: answers.reduce<OutcomeWord>((word, answer) => stricter(word, answer.outcome), 'allow'),
    reasons: sortReasons(withoutRepeats(reasons)),
  }
}

function wantInput(policies: readonly PolicyIndex[], at: number): boolean {
  return policies.some(({ wantsInput }) => hasBit(wantsInput, at))
}

const ALLOWED: Decision = { outcome: 'allow', reasons: [] }
const NOT_FOUND: Decided = { outcome: 'deny', tool: undefined, atFirst: -1, now: -1 }
const UNKNOWN: Decision = { outcome: 'deny', reasons: [reason('catalog', 'tool_not_found', 'no tool has this id')] }

function stricter(a: OutcomeWord, b: OutcomeWord): OutcomeWord {
  return compareStrictness(a, b) < 0 ? a : b
}

function withoutRepeats(reasons: readonly Reason[]): readonly Reason[] {
  const seen = new Set<string>()
  return reasons.filter((one) => {
    const key = `${one.layer}\0${one.code}\0${one.text}\0${one.message}`
    return !seen.has(key) && seen.add(key)
  })
}
