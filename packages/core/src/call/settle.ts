import { structuredOf } from '../history/call-history.ts'
import type { MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { chain } from '@toolgate/values'
import { type Attempt, type CostsOfCalls, type Ran, type Stop, storeInTime, usesToTake } from './attempt.ts'
import { CostError, settledCosts, withCosts } from './costs.ts'
import type { LimitUseOf } from './costs.ts'
import { costInvalid } from './refusals.ts'

/** Returns the uses with what this call costs of each, or why that is not known. */
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
 * Sets what the limits count for a call to what it has really cost. Never rejects: what cannot be settled counts in full.
 * Returns what is to be recorded of it, if it has cost more than was taken for it.
 *
 * `output` is the tool's, before it was cut.
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

/** For gates of which some limit has a cost. */
export const COSTS_OF_CALLS: CostsOfCalls = { priced, settle: settleLimits }

/** The use of an idempotency key, which is taken before the others, stays as it is. */
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
