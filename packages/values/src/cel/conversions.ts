import { spend, type Work } from '../work.ts'
import { formatDuration, formatTimestamp, secondsOf } from './time.ts'
import { CelError, Duration, stepsOfText, Timestamp, toInt, toUint, Uint } from './values.ts'

/** Converts to `int`. @throws {CelError} for a text that is not a decimal integer, and for a value out of range */
export function intOf(work: Work, value: unknown): bigint {
  if (typeof value === 'string') return toInt(integerOf(work, value, /^[+-]?\d+$/, 'int'))
  if (typeof value === 'number') return truncated(value, -(2 ** 63), 'int')
  if (value instanceof Timestamp) return secondsOf(value)
  return toInt(value instanceof Uint ? value.value : (value as bigint))
}

/** Converts to `uint`. @throws {CelError} for a text that is not a decimal integer, and for a value out of range */
export function uintOf(work: Work, value: unknown): Uint {
  if (typeof value === 'string') return toUint(integerOf(work, value, /^\d+$/, 'uint'))
  if (typeof value === 'number') return toUint(truncated(value, 0, 'uint'))
  return toUint(value instanceof Uint ? value.value : (value as bigint))
}

/** More digits than any integer has. */
const MAX_DIGITS = 20

function integerOf(work: Work, text: string, pattern: RegExp, name: string): bigint {
  spend(work, stepsOfText(text))
  if (!pattern.test(text)) throw new CelError(`${name}() wants decimal digits`)
  const digits = text.replace(/^[+-]?0*/, '')
  if (digits.length > MAX_DIGITS) throw new CelError(`${name} out of range`)
  const size = BigInt(digits)
  return text.startsWith('-') ? -size : size
}

/** The least `int` is out of range, too: doubles near it are not exact. */
function truncated(value: number, least: number, name: 'int' | 'uint'): bigint {
  const most = name === 'int' ? 2 ** 63 : 2 ** 64
  const isAbove = name === 'int' ? value > least : value >= least
  if (!(isAbove && value < most)) throw new CelError(`${name} out of range`)
  return BigInt(Math.trunc(value))
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/
const NAMED: ReadonlyMap<string, number> = new Map([
  ['nan', Number.NaN],
  ...['inf', '+inf', 'infinity', '+infinity'].map((name) => [name, Infinity] as const),
  ...['-inf', '-infinity'].map((name) => [name, -Infinity] as const),
])

/** Converts to `double`. @throws {CelError} for a text that is not a decimal number, and for a number out of range */
export function doubleOf(work: Work, value: unknown): number {
  if (typeof value !== 'string') return Number(value instanceof Uint ? value.value : value)
  spend(work, stepsOfText(value))
  const named = value.length > 9 ? undefined : NAMED.get(value.toLowerCase())
  if (named !== undefined) return named
  if (!DECIMAL.test(value)) throw new CelError('double() wants a decimal number')
  const number = Number(value)
  if (!Number.isFinite(number)) throw new CelError('double out of range')
  return number
}

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'true', 'TRUE', 'True'])
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'false', 'FALSE', 'False'])

/** Converts to `bool`. @throws {CelError} for any other text */
export function boolOf(value: boolean | string): boolean {
  if (typeof value === 'boolean') return value
  // A longer text is invalid, so it is not read.
  if (value.length <= 5 && (TRUE.has(value) || FALSE.has(value))) return TRUE.has(value)
  throw new CelError("bool() wants 'true' or 'false'")
}

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const ENCODER = new TextEncoder()
const CODER_STEPS = 60
const FORMAT_STEPS = 80

/** Converts to `string`. @throws {CelError} for bytes that are not UTF-8 */
export function stringOf(work: Work, value: unknown): string {
  spend(work, FORMAT_STEPS)
  if (typeof value === 'number') return textOfDouble(value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Timestamp) return formatTimestamp(value)
  if (value instanceof Duration) return formatDuration(value)
  if (!(value instanceof Uint8Array)) return String(value)
  spend(work, value.length + CODER_STEPS)
  try {
    return DECODER.decode(value)
  } catch (error) {
    throw new CelError('string() wants valid UTF-8', { cause: error })
  }
}

function textOfDouble(value: number): string {
  if (Object.is(value, -0)) return '-0'
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}

/** Converts to `bytes`. @throws {CelError} if the text has a lone surrogate, which UTF-8 cannot encode */
export function bytesOf(work: Work, value: string | Uint8Array): Uint8Array {
  if (typeof value !== 'string') return value
  spend(work, value.length + CODER_STEPS)
  if (!value.isWellFormed()) throw new CelError('bytes() wants a text of whole characters')
  return ENCODER.encode(value)
}
