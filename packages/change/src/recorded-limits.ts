import { CostError, type LimitUseOf, Uses, withCosts } from '@toolgate/core/call'
import { type AmountContext, takeUnknownRead } from '@toolgate/core/policy'
import type { RecordedSince } from './recorded-runs.ts'

/** `over`: the limit refuses the call, even if some costs are unknown. */
type LimitVerdict = 'within' | 'over' | 'unknown'

interface Log {
  uses: Uses | undefined
  /** Until this time, calls with an unknown cost count. */
  inexactUntilMs: number
}

const MAX_KEYS = 200_000

/** The counts that limits would have: every recorded call that ran, at the time of its record. */
export class RecordedLimits {
  readonly #logs = new Map<string, Log>()

  /** Returns whether a call is within one limit. */
  judge(use: LimitUseOf, context: AmountContext, nowMs: number, since: RecordedSince): LimitVerdict {
    const log = this.#logs.get(use.key)
    const cost = costOf(use, context)
    if (cost === 'invalid' || (cost ?? 0) > use.max) return 'over'
    const used = log?.uses?.usedIn(use.windowMs, nowMs) ?? 0
    const isOver = used + (cost ?? 0) > use.max
    // The audit does not record the cost of a call after it was settled or refunded, so such counts are uncertain.
    const isSettled = use.costing !== undefined && (use.costing.settle !== undefined || use.costing.refundsFailed)
    const isFixed = !isSettled || used === 0
    if (isOver && isFixed) return 'over'
    const isWhole = since.isWhole || nowMs >= since.ms + use.windowMs
    return isWhole && isFixed && cost !== undefined && nowMs >= (log?.inexactUntilMs ?? 0) ? 'within' : 'unknown'
  }

  /** Counts a call that ran. */
  take(uses: readonly LimitUseOf[], context: AmountContext, nowMs: number): void {
    for (const use of uses) {
      const cost = costOf(use, context)
      const log = this.#logOf(use.key, nowMs)
      if (cost === undefined || cost === 'invalid') log.inexactUntilMs = nowMs + use.windowMs
      else if (log.uses) log.uses.push(nowMs, use.windowMs, use.costing && cost)
      else log.uses = new Uses(nowMs, use.windowMs, use.costing && cost)
      log.uses?.dropPassed(nowMs)
    }
  }

  #logOf(key: string, nowMs: number): Log {
    let log = this.#logs.get(key)
    if (!log) {
      if (this.#logs.size >= MAX_KEYS) this.#forgetPassed(nowMs)
      this.#logs.set(key, (log = { uses: undefined, inexactUntilMs: 0 }))
    }
    return log
  }

  #forgetPassed(nowMs: number): void {
    for (const [key, { uses, inexactUntilMs }] of this.#logs)
      if ((uses?.passesAtMs ?? 0) <= nowMs && inexactUntilMs <= nowMs) this.#logs.delete(key)
  }
}

/** Returns the cost of a call; `undefined` if its input is unknown. */
function costOf(use: LimitUseOf, context: AmountContext): number | 'invalid' | undefined {
  if (!use.costing) return 1
  takeUnknownRead()
  try {
    const [costed] = withCosts([use], context)
    return takeUnknownRead() === undefined ? (costed?.cost ?? 1) : undefined
  } catch (error) {
    if (takeUnknownRead() !== undefined) return undefined
    if (error instanceof CostError) return 'invalid'
    throw error
  }
}
