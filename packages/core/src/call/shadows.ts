import { type CallFacts, decideShadows } from '../decide/decide.ts'
import { compareStrictness, type OutcomeWord, type Reason, ruleText } from '../decide/decision.ts'
import type { Attempt } from './attempt.ts'

/** Notes what shadow policies would decide. Never stops a call. */
export function noteShadows(attempt: Attempt, call?: CallFacts): void {
  const { decided, withInput, ports } = attempt
  try {
    const { outcome = 'allow', reasons = [] } = decideShadows(decided, call) ?? {}
    const [first] = reasons
    const isStricter = [decided, withInput].every((by) => !by || compareStrictness(outcome, by.outcome) < 0)
    const isShadow = outcome === 'ask' || outcome === 'deny'
    attempt.would =
      isShadow && isStricter
        ? { outcome: isUnknown(reasons, outcome) ? 'unknown' : outcome, clause: first && ruleText(first) }
        : undefined
  } catch (error) {
    ports.onFault(error)
  }
}

/** Returns whether all reasons for an outcome depend on an unknown history. */
function isUnknown(reasons: readonly Reason[], outcome: OutcomeWord): boolean {
  return reasons.every((one) => one.outcome !== outcome || one.code === 'history_unknown')
}
