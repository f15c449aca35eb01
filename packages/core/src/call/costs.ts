import { AbsentError } from '@toolgate/values/cel'
import type { LimitUse } from '../ports/ports.ts'
import { parseAmount, type AmountContext, type ParsedAmount } from '../policy/amount.ts'
import { ConfigError, messageOf } from '@toolgate/values'

/** What a limit says about costs. */
export interface CostFields {
  /**
   * How much of `max` a call takes: CEL over `input`, `caller` and `tool`, such as `units(input.amount, 2)` for cents. Fractions
   * are rounded up; a call whose cost is negative, infinite or no number is refused. `max` may be up to 2^53 - 1 then.
   */
  readonly cost?: string | undefined
  /** What a call costs whose input does not say it, and the most that a call may cost. Without it, such calls are refused. */
  readonly maxCost?: number | undefined
  /**
   * What a call has really cost: CEL over the structured `output` too. Asked of tools that the operator trusts, when they end
   * without an error. What is more than `cost` counts against the calls that follow.
   */
  readonly settle?: string | undefined
  /** `failed`: a call that fails, or whose result reports a failure, costs nothing. Else nothing is given back once it began. */
  readonly refund?: 'failed' | undefined
}

/** A use of one limit, with the words for a refusal. */
export interface LimitUseOf extends LimitUse {
  readonly label: string
  readonly rule: string
  /** How its cost is known, once the input is. */
  readonly costing?: Costing | undefined
  /** Of one with a cost: whose budget it is. */
  readonly holder?: Readonly<Record<string, string>> | undefined
}

/** How much of its limit a call takes. */
export interface Costing {
  readonly cost: ParsedAmount
  readonly maxCost: number | undefined
  readonly settle: ParsedAmount | undefined
  readonly refundsFailed: boolean
}

/**
 * Returns the cost of a limit; `undefined` where each call takes 1.
 *
 * @throws {ConfigError} naming the field that cannot be used
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
  // "500 a day" must not mean 500 for each tool and each chat.
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

/** The cost of a call is not known, or not a number that can count. */
export class CostError extends Error {
  readonly use: LimitUseOf
  constructor(use: LimitUseOf, problem: string) {
    super(`the limit ${use.rule}:${use.label}: ${problem}`)
    this.use = use
  }
}

/**
 * Returns uses with what this call costs of each.
 *
 * @throws {CostError} for a cost that cannot count
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
    throw new CostError(use, `it costs ${amount}, and a call may cost ${maxCost}`)
  return amount
}

function firstLine(error: unknown): string | undefined {
  return messageOf(error).split('\n')[0]
}

/** How a call ended, for what it costs. */
export interface CostEnd {
  readonly failed: boolean
  /** The structured output of a tool that the operator trusts. */
  readonly output?: unknown
}

/** Returns what each use has really cost; `undefined` where nothing has changed. What cannot be known counts as it was taken. */
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
