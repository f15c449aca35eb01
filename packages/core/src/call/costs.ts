import { AbsentError } from '@toolgate/values/cel'
import { amountText, type ParsedWords } from './limit-words.ts'
import type { LimitUse } from '../ports/ports.ts'
import { parseAmount, type AmountContext, type ParsedAmount } from '../policy/amount.ts'
import { ConfigError, messageOf } from '@toolgate/values'

/** The cost fields of a limit. */
export interface CostFields {
  /**
   * How much of `max` a call takes: CEL over `input`, `caller` and `tool`, such as `units(input.amount, 2)` for cents.
   * Fractions are rounded up. A call whose cost is negative, infinite or not a number is refused. With a cost, `max` may be
   * up to 2^53 - 1.
   */
  readonly cost?: string | undefined
  /**
   * The cost of a call if its input does not state one, and the most that a call may cost. Without it, such calls are
   * refused.
   */
  readonly maxCost?: number | undefined
  /**
   * The real cost of a call: CEL that can also read the structured `output`. Evaluated for tools that the operator trusts,
   * when they end without an error. A real cost above `cost` counts against later calls.
   */
  readonly settle?: string | undefined
  /**
   * `failed`: a call that fails, or whose result reports a failure, costs nothing. Otherwise a call that began is never
   * refunded.
   */
  readonly refund?: 'failed' | undefined
}

/** A use of one limit, with the words for a refusal. */
export interface LimitUseOf extends LimitUse {
  readonly label: string
  readonly rule: string
  /** How the limit says its amounts. */
  readonly words?: ParsedWords | undefined
  /** How to compute the cost from the input. */
  readonly costing?: Costing | undefined
  /** The holder of the budget, for a limit with a cost. */
  readonly holder?: Readonly<Record<string, string>> | undefined
}

/** The expressions that compute how much of a limit a call takes. */
export interface Costing {
  readonly cost: ParsedAmount
  readonly maxCost: number | undefined
  readonly settle: ParsedAmount | undefined
  readonly refundsFailed: boolean
}

/**
 * Returns the cost of a limit; `undefined` if each call takes 1.
 *
 * @throws {ConfigError} naming the invalid field
 */
export function parseCosting(
  path: string,
  rule: CostFields & { readonly match: string; readonly per?: readonly string[] | undefined },
): Costing | undefined {
  const { cost, maxCost, settle, refund, per, match } = rule
  if (cost === undefined) {
    const without = (['maxCost', 'settle', 'refund'] as const).find((field) => rule[field] !== undefined)
    if (without) throw new ConfigError(`${path}.${without}`, 'has no meaning without a "cost"')
    return undefined
  }
  // Without `per`, "500 a day" would mean 500 for each tool and each chat.
  if (per === undefined)
    throw new ConfigError(
      `${path}.per`,
      'is required with a "cost": say what has a budget of its own, such as [tenant, user]',
    )
  if (match === '*')
    throw new ConfigError(`${path}.match`, 'must name what costs something: with a "cost" it cannot be *')
  if (maxCost !== undefined && !(Number.isSafeInteger(maxCost) && maxCost >= 0))
    throw new ConfigError(`${path}.maxCost`, `must be a whole number from 0 to 2^53 - 1, not ${maxCost}`)
  if (refund !== undefined && refund !== 'failed')
    throw new ConfigError(`${path}.refund`, 'must be "failed", or absent')
  return {
    cost: parseAmount(`${path}.cost`, cost, 'input'),
    maxCost,
    settle: settle === undefined ? undefined : parseAmount(`${path}.settle`, settle, 'input and output'),
    refundsFailed: refund === 'failed',
  }
}

/** The cost of a call is unknown or is not a valid number. */
export class CostError extends Error {
  readonly use: LimitUseOf
  constructor(use: LimitUseOf, problem: string) {
    super(`the limit ${use.rule}:${use.label}: ${problem}`)
    this.use = use
  }
}

/**
 * Returns the uses with the cost of this call.
 *
 * @throws {CostError} for an invalid cost
 */
export function withCosts(uses: readonly LimitUseOf[], context: AmountContext): readonly LimitUseOf[] {
  if (!uses.some(({ costing }) => costing)) return uses
  return uses.map((use) => (use.costing ? { ...use, cost: costOf(use, use.costing, context) } : use))
}

function costOf(use: LimitUseOf, { cost, maxCost }: Costing, context: AmountContext): number {
  let amount: number
  try {
    amount = cost.evaluate(context)
  } catch (error) {
    if (maxCost !== undefined && error instanceof AbsentError) return maxCost
    throw new CostError(use, `its cost "${cost.text}" is not known: ${firstLine(error)}`)
  }
  if (maxCost !== undefined && amount > maxCost)
    throw new CostError(
      use,
      `it costs ${amountText(amount, use.words)}, and a call may cost ${amountText(maxCost, use.words)}`,
    )
  return amount
}

function firstLine(error: unknown): string | undefined {
  return messageOf(error).split('\n')[0]
}

/** The end of a call, as far as its cost depends on it. */
interface CostEnd {
  readonly failed: boolean
  /** The structured output of a tool that the operator trusts. */
  readonly output?: unknown
}

/** Returns the real cost of each use; `undefined` if nothing changed. A use with an unknown real cost keeps the cost taken. */
export function settledCosts(
  uses: readonly LimitUseOf[],
  { failed, output }: CostEnd,
  context: AmountContext,
  onFault: (error: unknown) => void,
): readonly number[] | undefined {
  const costs = uses.map((use) => {
    const { costing, cost = 1 } = use
    if (!costing) return cost
    if (failed) return costing.refundsFailed ? 0 : cost
    if (!costing.settle || output === undefined) return cost
    try {
      return costing.settle.evaluate({ ...context, output })
    } catch (error) {
      onFault(new CostError(use, `its settlement "${costing.settle.text}" is not known: ${firstLine(error)}`))
      return cost
    }
  })
  return costs.some((cost, i) => cost !== (uses[i]?.cost ?? 1)) ? costs : undefined
}
