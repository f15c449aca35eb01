import { overload, Uint } from '@toolgate/values/cel'
import type { Caller } from '../ports/caller.ts'
import type { Tool } from '../tools/tool.ts'
import type { CelNode } from './cel-tree.ts'
import { celWith, compileCel, conditionWork, parseCel, toCelCaller, toCelTool } from './condition.ts'
import { type Operands, operandsOf } from './operands.ts'
import { spend, type Work } from '@toolgate/values'

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
  readonly tree: CelNode
  /**
   * Returns a whole number from 0 to 2^53 - 1. Fractions are rounded up.
   *
   * @throws {RangeError} for a result that is negative, infinite, too large or not a number; any error of the evaluation
   */
  evaluate(context: AmountContext): number
}

/**
 * Parses CEL whose result is a number, over `input`, `caller` and `tool`, and `output` if it is known. `units(x, 2)`
 * converts a decimal number or text to hundredths exactly, whereas `x * 100.0` would be rounded.
 *
 * @throws {ConfigError} `condition_invalid`, with the offset of the problem
 */
export function parseAmount(path: string, text: string, scope: 'input' | 'input and output'): ParsedAmount {
  const read = parseCel(path, text, scope === 'input' ? OF_INPUT : OF_OUTPUT, 'cost')
  const { type, program } = compileCel(read)
  if (!NUMBERS.has(type)) throw read.fail(`a cost must be a number, this one is of type ${type}`)
  return {
    text,
    operands: operandsOf(read.parsed.tree),
    tree: read.parsed.tree,
    evaluate({ caller, tool, input, output }) {
      return toWhole(program(conditionWork(), [toCelCaller(caller), toCelTool(tool), input, output]))
    },
  }
}

const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double', 'json', 'dyn'])

const UNITS = [overload('units(dyn, int): double', countedUnits)]
/** The steps of parsing a number and of the powers of 10 that it may need. */
const UNITS_STEPS = 200

function countedUnits(work: Work, value: unknown, places: bigint): number {
  spend(work, UNITS_STEPS)
  return units(value, Number(places))
}

const OF_INPUT = celWith({ variables: { input: 'json' }, functions: UNITS })
const OF_OUTPUT = celWith({ variables: { input: 'json', output: 'json' }, functions: UNITS })

function toWhole(result: unknown): number {
  const integer = result instanceof Uint ? result.value : result
  const amount = typeof integer === 'bigint' ? Number(integer) : integer
  if (typeof amount !== 'number' || !Number.isFinite(amount))
    throw new RangeError(`it is ${shown(result)}, which is no number`)
  if (amount < 0) throw new RangeError(`it is ${shown(result)}, which is less than 0`)
  const whole = Math.ceil(amount)
  if (whole > Number.MAX_SAFE_INTEGER) throw new RangeError(`it is ${shown(result)}, which is more than 2^53 - 1`)
  return whole
}

const DECIMAL = /^([+-]?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/
const MAX_PLACES = 18
/** Larger exponents are outside the range of doubles. */
const MAX_SHIFT = 400

/**
 * Returns a decimal number in units of 10 to the power of minus `places`, rounded away from 0: `units("12.345", 2)` is
 * 1235.
 *
 * @throws {RangeError} for a value that is not a decimal number, and for places outside 0 to 18
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
  if (Math.abs(shift) > MAX_SHIFT) return digits === 0n ? 0 : (shift < 0 ? 1 : Infinity) * (sign === '-' ? -1 : 1)
  const divisor = shift < 0 ? 10n ** BigInt(-shift) : 1n
  const scaled = shift < 0 ? (digits + divisor - 1n) / divisor : digits * 10n ** BigInt(shift)
  return Number(sign === '-' ? -scaled : scaled)
}

/** Leaves out lists and objects, which may be large. */
function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object'
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}
