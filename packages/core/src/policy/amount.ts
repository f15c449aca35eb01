import type { Caller } from '../ports/caller.ts'
import type { Tool } from '../tools/tool.ts'
import type { ASTNode } from './cel-tree.ts'
import {
  stepsOfEachItem,
  celWithInput,
  checkCel,
  conditionWork,
  parseCel,
  spendOnItems,
  toCelCaller,
  toCelTool,
} from './condition.ts'
import { counting } from './functions.ts'
import { type Operands, operandsOf } from './operands.ts'

/** The variables of an amount. */
export interface AmountContext {
  readonly caller: Caller
  readonly tool: Tool
  readonly input: unknown
  readonly output?: unknown
}

/** A parsed and type-checked amount, such as the cost of a call. */
export interface ParsedAmount {
  /** The CEL text. */
  readonly text: string
  readonly operands: Operands
  readonly tree: ASTNode
  /**
   * Returns a whole number from 0 to 2^53 - 1: fractions are rounded up.
   *
   * @throws {RangeError} for a result that is negative, infinite, too large or no number; and whatever the evaluation throws
   */
  evaluate(context: AmountContext): number
}

/**
 * Parses CEL whose result is a number, over `input`, `caller` and `tool`, and `output` where it is known. `units(x, 2)` is a
 * decimal number or text in hundredths: exact, where `x * 100.0` would be rounded.
 *
 * @throws {ConfigError} `condition_invalid`, with the offset of the problem
 */
export function parseAmount(path: string, text: string, scope: 'input' | 'input and output'): ParsedAmount {
  const parsed = parseCel(path, text, scope === 'input' ? OF_INPUT : OF_OUTPUT, 'cost')
  const { program, fail } = parsed
  const type = checkCel(parsed)
  if (type !== 'int' && type !== 'uint' && type !== 'double' && type !== 'dyn')
    throw fail(`a cost must be a number, this one is of type ${type}`)
  const stepsEach = stepsOfEachItem(program.ast)
  return {
    text,
    operands: operandsOf(program.ast),
    tree: program.ast,
    evaluate({ caller, tool, input, output }) {
      const work = conditionWork()
      spendOnItems(work, input, stepsEach)
      spendOnItems(work, output, stepsEach)
      return counting(work, () =>
        toWhole(program({ caller: toCelCaller(caller), tool: toCelTool(tool), input, output })),
      )
    },
  }
}

const OF_INPUT = celWithInput().registerFunction('units(dyn, int): double', (value, places) =>
  units(value, Number(places)),
)
const OF_OUTPUT = OF_INPUT.clone().registerVariable('output', 'dyn')

function toWhole(result: unknown): number {
  const amount = typeof result === 'bigint' ? Number(result) : result
  if (typeof amount !== 'number' || !Number.isFinite(amount))
    throw new RangeError(`it is ${shown(result)}, which is no number`)
  if (amount < 0) throw new RangeError(`it is ${shown(result)}, which is less than 0`)
  const whole = Math.ceil(amount)
  if (whole > Number.MAX_SAFE_INTEGER) throw new RangeError(`it is ${shown(result)}, which is more than 2^53 - 1`)
  return whole
}

const DECIMAL = /^([+-]?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/
const MAX_PLACES = 18

/**
 * Returns a decimal number in units of 10 to the power of minus `places`, rounded away from 0: `units("12.345", 2)` is 1235.
 *
 * @throws {RangeError} for a value that is no decimal number, and for places outside 0 to 18
 */
export function units(value: unknown, places: number): number {
  if (!Number.isInteger(places) || places < 0 || places > MAX_PLACES)
    throw new RangeError(`units() wants 0 to ${MAX_PLACES} places, not ${places}`)
  const text = typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : ''
  const [, sign, whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (sign === undefined) throw new RangeError(`units() wants a decimal number, not ${shown(value)}`)
  // The number is `digits` times 10 to the power of `shift`.
  const shift = Number(exponent) - fraction.length + places
  const digits = BigInt(whole + fraction)
  const divisor = shift < 0 ? 10n ** BigInt(-shift) : 1n
  const scaled = shift < 0 ? (digits + divisor - 1n) / divisor : digits * 10n ** BigInt(shift)
  return Number(sign === '-' ? -scaled : scaled)
}

function shown(value: unknown): string {
  const text =
    typeof value === 'bigint' || typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}
