import { structuredOf } from '../history/call-history.ts'
import type { MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { chain } from '@toolgate/values'
import { type Attempt, type CostsOfCalls, type Ran, type Stop, storeInTime, usesToTake } from './attempt.ts'
import { CostError, settledCosts, withCosts } from './costs.ts'
import type { LimitUseOf } from './costs.ts'
import { costInvalid } from './refusals.ts'

/** Returns the uses with the cost of this call, or why the cost is unknown. */
function priced(
  { view: { caller }, input }: Attempt,
  tool: Tool,
  uses: readonly LimitUseOf[],
): readonly LimitUseOf[] | Stop {
  try {
    return withCosts(uses, { caller, tool, input })
  } catch (error) {
    if (error instanceof CostError) return { decision: costInvalid(error) }
    throw error
  }
}

/**
 * Sets the costs in the limits to the real cost of a call. Never rejects: a cost that cannot be settled stays as taken.
 * Returns the costs to record, if the call cost more than was taken.
 *
 * `output` is the tool's output before it was cut.
 */
function settleLimits(attempt: Attempt, tool: Tool, outcome: Ran, output: unknown): MaybePromise<string | undefined> {
  const { ports, uses, taken, view, input } = attempt
  // A call that asks for more input has not ended.
  if (taken === undefined || outcome.status === 'input_required' || !uses.some(({ costing }) => costing)) return
  const failed = outcome.status === 'failed' || outcome.isError
  const isKnown = !failed && ports.histories.labels().of(tool).trusted
  const end = { failed, output: isKnown ? structuredOf(output) : undefined }
  const costs = settledCosts(uses, end, { caller: view.caller, tool, input }, ports.onFault)
  return costs && chain(settle(attempt, costs), () => overrunOf(uses, costs))
}

/** For gates with a limit that has a cost. */
export const COSTS_OF_CALLS: CostsOfCalls = { priced, settle: settleLimits }

/** The use of an idempotency key comes first and keeps its cost. */
async function settle(attempt: Attempt, costs: readonly number[]): Promise<void> {
  const { ports, uses, taken } = attempt
  const all = usesToTake(attempt)
  const before = all.slice(0, all.length - uses.length).map(() => 1)
  try {
    if (taken) await storeInTime(ports, ports.counters.settle(all, taken, [...before, ...costs]))
  } catch (error) {
    ports.onFault(error)
  }
}

function overrunOf(uses: readonly LimitUseOf[], costs: readonly number[]): string | undefined {
  const over = uses.flatMap(({ rule, label, cost = 1 }, i) => {
    const real = costs[i] ?? cost
    return real > cost ? [`it has cost ${real} of ${rule}:${label}, and ${cost} were taken`] : []
  })
  return over.length > 0 ? over.join('; ') : undefined
}
