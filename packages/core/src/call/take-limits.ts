import type { LimitAnswer, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { TimeoutError } from '@toolgate/values'
import {
  type Attempt,
  callerNow,
  type CallPorts,
  type CheckResult,
  type Stop,
  storeInTime,
  usesToTake,
} from './attempt.ts'
import type { LimitUseOf } from './costs.ts'
import { decideNow } from './deciding.ts'
import { rateLimited } from './refusals.ts'
import { continuedBy } from './rounds.ts'

/** Checks the limits without taking from them. */
export async function peekLimits(attempt: Attempt, tool: Tool): Promise<Stop | undefined> {
  const { ports } = attempt
  const uses = ports.current.costs?.priced(attempt, tool, attempt.uses) ?? attempt.uses
  if ('decision' in uses) return uses
  const peeked = await storeInTime(ports, ports.counters.peek(uses))
  return isYes(peeked.allowed) ? undefined : { decision: rateLimited(uses, peeked) }
}

/** Takes the call's cost from every limit, or from none. A later round of a call takes nothing. */
export function takeLimits(attempt: Attempt, tool: Tool): CheckResult {
  const { ports, view, decided, request } = attempt
  const now = view.isStale(decided) ? usesNow(attempt) : attempt.uses
  attempt.uses = now
  if (now.length === 0 || (request.continues && continuedBy(attempt, tool))) return undefined
  const costed = ports.current.costs?.priced(attempt, tool, now) ?? now
  if ('decision' in costed) return costed
  attempt.uses = costed
  const { counters, budgets } = ports
  if (ports.current.costs) budgets.note(costed)
  const uses = request.idempotencyKey === undefined ? costed : usesToTake(attempt)
  const taking = counters.take(uses)
  if (!(taking instanceof Promise)) return tookLimits(attempt, taking)
  const back = (answer: LimitAnswer) => (isYes(answer.allowed) ? counters.giveBack(uses, answer) : undefined)
  return takenInTime(ports, taking, back).then((answer) => tookLimits(attempt, answer))
}

function tookLimits(attempt: Attempt, answer: LimitAnswer): Stop | undefined {
  if (isYes(answer.allowed)) {
    attempt.taken = answer
    return undefined
  }
  if (attempt.request.idempotencyKey === undefined) return { decision: rateLimited(attempt.uses, answer) }
  // The first use is that of the idempotency key. If it was refused, an earlier call with the key was already counted.
  if (answer.refused === 0) return undefined
  return { decision: rateLimited(attempt.uses, { ...answer, refused: answer.refused - 1 }) }
}

/** Returns whether a store answered exactly `true`. A store may return an invalid answer, which is not a yes. */
export function isYes(answer: unknown): boolean {
  return answer === true
}

/** Returns the store's answer. A take that ends after its deadline is given back, because the call was refused by then. */
export async function takenInTime<T>(
  ports: CallPorts,
  taking: Promise<T>,
  back: (answer: T) => MaybePromise<void>,
): Promise<T> {
  try {
    return await storeInTime(ports, taking)
  } catch (error) {
    if (error instanceof TimeoutError) void taking.then(back).catch(ports.onFault)
    throw error
  }
}

/** Checks again, because other calls, halts and rule changes happen while a call waits for an answer. */
export function checkStillAllowed(attempt: Attempt, tool: Tool): CheckResult {
  const decision = decideNow(attempt, tool)
  if (decision) return { decision }
  return attempt.view.isStale(attempt.decided) ? checkLimitsNow(attempt, tool) : undefined
}

/** If the limits were replaced after the call took from them, the call takes from the new limits, too. */
function checkLimitsNow(attempt: Attempt, tool: Tool): CheckResult {
  const uses = usesNow(attempt)
  if (isSameUses(uses, attempt.uses) || continuedBy(attempt, tool)) return undefined
  return takeOtherLimits(attempt, tool, uses)
}

/** Returns the uses of the current limits: the same list while the limits do not change. */
function usesNow({ view, request, decided, uses }: Attempt): readonly LimitUseOf[] {
  const now = view.decide(request.tool, callerNow(view, request))
  return now.tool === decided.tool ? view.usesOf(now) : uses
}

function isSameUses(a: readonly LimitUseOf[], b: readonly LimitUseOf[]): boolean {
  if (a === b) return true
  return a.length === b.length && a.every(({ key, max }, i) => key === b[i]?.key && max === b[i].max)
}

/** If the store was slow to answer, the call is checked once more. */
async function takeOtherLimits(attempt: Attempt, tool: Tool, uses: readonly LimitUseOf[]): Promise<Stop | undefined> {
  const { ports, taken } = attempt
  attempt.taken = undefined
  if (taken) await storeInTime(ports, ports.counters.giveBack(usesToTake(attempt), taken))
  attempt.uses = uses
  const stop = uses.length > 0 ? await takeLimits(attempt, tool) : undefined
  return stop ?? checkStillAllowed(attempt, tool)
}
