import { spend, type Work } from '../work.ts'
import type { BinaryOp } from './tree.ts'
import { CelError, Duration, type Kind, kindOf, stepsOfText, Timestamp, toInt, toUint, Uint } from './values.ts'
import { toDuration, toTimestamp } from './time.ts'

export type ArithmeticOp = Extract<BinaryOp, '+' | '-' | '*' | '/' | '%'>

type Triple = readonly [left: Kind, right: Kind, result: Kind]

const INTEGERS: readonly Triple[] = [
  ['int', 'int', 'int'],
  ['uint', 'uint', 'uint'],
]
const NUMBERS: readonly Triple[] = [...INTEGERS, ['double', 'double', 'double']]

/** The types that an operator takes, and its result. */
export const ARITHMETIC: Readonly<Record<ArithmeticOp, readonly Triple[]>> = {
  '+': [
    ...NUMBERS,
    ['string', 'string', 'string'],
    ['bytes', 'bytes', 'bytes'],
    ['list', 'list', 'list'],
    ['duration', 'duration', 'duration'],
    ['timestamp', 'duration', 'timestamp'],
    ['duration', 'timestamp', 'timestamp'],
  ],
  '-': [
    ...NUMBERS,
    ['duration', 'duration', 'duration'],
    ['timestamp', 'timestamp', 'duration'],
    ['timestamp', 'duration', 'timestamp'],
  ],
  '*': NUMBERS,
  '/': NUMBERS,
  '%': INTEGERS,
}

/** Applies an operator. @throws {CelError} for an overflow, a division by zero, and operands of other types */
export function calculate(work: Work, op: ArithmeticOp, a: unknown, b: unknown): unknown {
  if (typeof a === 'number' && typeof b === 'number' && op !== '%') return ofDoubles(op, a, b)
  if (typeof a === 'bigint' && typeof b === 'bigint') return toInt(ofIntegers(op, a, b))
  if (a instanceof Uint && b instanceof Uint) return toUint(ofIntegers(op, a.value, b.value))
  if (op === '+') return join(work, a, b)
  return op === '-' ? ofTimes(op, a, b) : refuse(op, a, b)
}

function refuse(op: ArithmeticOp, a: unknown, b: unknown): never {
  throw new CelError(`no such overload: ${kindOf(a)} ${op} ${kindOf(b)}`)
}

function ofDoubles(op: ArithmeticOp, a: number, b: number): number {
  switch (op) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    default:
      return a / b
  }
}

function ofIntegers(op: ArithmeticOp, a: bigint, b: bigint): bigint {
  switch (op) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    default:
      if (b === 0n) throw new CelError(op === '/' ? 'division by zero' : 'modulus by zero')
      // The reference implementation divides first, and the least integer cannot be divided by -1.
      if (op === '%' && b === -1n) toInt(-a)
      return op === '/' ? a / b : a % b
  }
}

function join(work: Work, a: unknown, b: unknown): unknown {
  if (typeof a === 'string' && typeof b === 'string') {
    spend(work, stepsOfText(a) + stepsOfText(b))
    return a + b
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    spend(work, 2 * (a.length + b.length))
    return (a as unknown[]).concat(b)
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    spend(work, a.length + b.length)
    const joined = new Uint8Array(a.length + b.length)
    joined.set(a)
    joined.set(b, a.length)
    return joined
  }
  return ofTimes('+', a, b)
}

function ofTimes(op: '+' | '-', a: unknown, b: unknown): unknown {
  const sign = op === '+' ? 1n : -1n
  if (a instanceof Duration && b instanceof Duration) return toDuration(a.nanos + sign * b.nanos)
  if (a instanceof Timestamp && b instanceof Duration) return toTimestamp(a.nanos + sign * b.nanos)
  if (a instanceof Duration && b instanceof Timestamp && op === '+') return toTimestamp(a.nanos + b.nanos)
  if (a instanceof Timestamp && b instanceof Timestamp && op === '-') return toDuration(a.nanos - b.nanos)
  return refuse(op, a, b)
}

/** Returns the negated number. @throws {CelError} for an overflow and other types */
export function negate(value: unknown): unknown {
  if (typeof value === 'number') return -value
  if (typeof value === 'bigint') return toInt(-value)
  throw new CelError(`no such overload: -${kindOf(value)}`)
}
