import type { Decided } from '../decide/decide.ts'
import { type MayStill, mayGoOn, reason } from '../decide/decision.ts'
import { rulesThatMayStill } from '../decide/may-still.ts'
import type { ParsedCap } from './slots.ts'
import type { CallPorts, CallView } from './attempt.ts'
import type { LimitUseOf } from './costs.ts'

type Ports = Pick<CallPorts, 'hooks' | 'slots'>

/**
 * Returns the reasons that may still refuse a call of a listed item. Includes all limits and caps that match the item,
 * because reading their use from a store takes time.
 */
export function mayStill(view: CallView, decided: Decided, ports: Ports): readonly MayStill[] {
  const { tool, outcome, bounds } = decided
  if (!tool || !mayGoOn(outcome)) return NONE
  const caps = ports.slots?.capsOf(tool, bounds.caller) ?? []
  return [
    ...rulesThatMayStill(decided),
    ...ports.hooks.flatMap(({ name, beforeToolCall }, i) => (beforeToolCall ? [byHook(name ?? `${i + 1}`)] : [])),
    ...view.usesOf(decided).map(byLimit),
    ...caps.map(({ cap }) => byCap(cap)),
  ]
}

const NONE: readonly MayStill[] = Object.freeze([])

function byHook(name: string): MayStill {
  return {
    ...reason('hooks', 'hook_denied', `the hook ${name} is asked before each call, and may refuse it`),
    on: 'code',
  }
}

/** A call whose cost depends on its input may cost more than is left. */
function byLimit({ rule, label, costing }: LimitUseOf): MayStill {
  const limit = `the limit ${rule}:${label}`
  return costing
    ? {
        ...reason('limits', 'rate_limited', `${limit} counts ${costing.cost.text} of each call`, { limit: label }),
        on: 'input',
      }
    : { ...reason('limits', 'rate_limited', `${limit} may be used up`, { limit: label }), on: 'now' }
}

/** Returns the reason that a cap may have no free slot. */
export function byCap({ selector, max }: ParsedCap): MayStill {
  const text = `at most ${max} calls of ${selector.text} run at once, and others wait their turn`
  return { ...reason('limits', 'too_busy', text), on: 'now' }
}
