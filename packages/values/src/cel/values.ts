import { spend, type Work } from '../work.ts'

/** The error of an expression without a value. `&&`, `||`, `all()` and `exists()` may have a result in spite of it. */
export class CelError implements Error {
  readonly name = 'CelError'
  readonly message: string
  readonly cause: unknown

  constructor(message: string, { cause }: { readonly cause?: unknown } = {}) {
    this.message = message
    this.cause = cause
  }
}
// Without a stack trace, which would make an error a thousand times slower. Each item of a long list may throw one.
Object.setPrototypeOf(CelError.prototype, Error.prototype)

/** A field, a key or an item is absent. */
export class AbsentError extends CelError {
  constructor(what: string | number | bigint) {
    super(`No such key: ${what}`)
  }
}

/** The types of CEL that JSON does not have. */
export abstract class CelValue {
  abstract readonly kind: 'uint' | 'timestamp' | 'duration' | 'type' | 'map'
}

/** An integer from 0 to 2^64 - 1. An `int` is a bigint, a `double` a number. */
export class Uint extends CelValue {
  readonly kind = 'uint'
  readonly value: bigint
  constructor(value: bigint) {
    super()
    this.value = value
  }
}

export class Timestamp extends CelValue {
  readonly kind = 'timestamp'
  /** Nanoseconds since 1970. */
  readonly nanos: bigint
  constructor(nanos: bigint) {
    super()
    this.nanos = nanos
  }
}

export class Duration extends CelValue {
  readonly kind = 'duration'
  readonly nanos: bigint
  constructor(nanos: bigint) {
    super()
    this.nanos = nanos
  }
}

export class CelType extends CelValue {
  readonly kind = 'type'
  readonly name: string
  constructor(name: string) {
    super()
    this.name = name
  }
}

/** A key in its look-up form: `1`, `1u` and `1.0` are equal. */
export type MapKey = string | boolean | bigint

/** A map literal of a condition. Maps of an input are objects. */
export class CelMap extends CelValue {
  readonly kind = 'map'
  readonly entries: ReadonlyMap<MapKey, readonly [key: unknown, value: unknown]>
  constructor(entries: ReadonlyMap<MapKey, readonly [key: unknown, value: unknown]>) {
    super()
    this.entries = entries
  }
}

export type Kind = CelValue['kind'] | 'null' | 'bool' | 'int' | 'double' | 'string' | 'bytes' | 'list'

export function kindOf(value: unknown): Kind {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
      return 'double'
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int'
    default:
      return kindOfObject(value)
  }
}

function kindOfObject(value: unknown): Kind {
  if (value === null) return 'null'
  if (typeof value !== 'object') throw new CelError(`CEL has no ${typeof value}`)
  if (Array.isArray(value)) return 'list'
  if (value instanceof CelValue) return value.kind
  return value instanceof Uint8Array ? 'bytes' : 'map'
}

export const MAX_INT = 2n ** 63n - 1n
const MIN_INT = -(2n ** 63n)
export const MAX_UINT = 2n ** 64n - 1n

/** Checks the range of `int`. @throws {CelError} for an overflow */
export function toInt(value: bigint): bigint {
  if (value > MAX_INT || value < MIN_INT) throw new CelError('integer overflow')
  return value
}

/** Checks the range of `uint`. @throws {CelError} for an overflow */
export function toUint(value: bigint): Uint {
  if (value > MAX_UINT || value < 0n) throw new CelError('unsigned integer overflow')
  return new Uint(value)
}

/**
 * Converts a value of the input to CEL. An absent value is `undefined`.
 *
 * @throws {CelError} for an integer outside the range of CEL
 */
export function toCel(value: unknown): unknown {
  if (typeof value !== 'bigint') return value
  return value > MAX_INT ? toUint(value) : toInt(value)
}

/** Steps of a key of an object that is listed. */
const KEY_STEPS = 30

/** Returns the keys of a map as CEL values. */
export function keysOf(work: Work, map: object): readonly unknown[] {
  const keys = map instanceof CelMap ? Array.from(map.entries.values(), ([key]) => key) : Object.keys(map)
  spend(work, keys.length * KEY_STEPS)
  return keys
}

/** Checks for a boolean. @throws {CelError} for any other value */
export function toBool(value: unknown): boolean {
  if (value === true || value === false) return value
  throw new CelError(`no such overload: ${kindOf(value)} as a condition`)
}

/** Returns the value of a field; `undefined` if it is absent. Only own properties are fields. */
function fieldOf(map: object, name: string): unknown {
  if (map instanceof CelMap) return map.entries.get(name)?.[1]
  return Object.hasOwn(map, name) ? toCel((map as Record<string, unknown>)[name]) : undefined
}

/** Returns the value of a field of a map. @throws {CelError} for a value that is not a map */
export function fieldIn(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null || kindOf(of) !== 'map')
    throw new CelError(`no such overload: ${kindOf(of)}.${name}`)
  return fieldOf(of, name)
}

/** Returns the value of a key; `undefined` if it is absent. */
export function entryOf(map: object, key: unknown): unknown {
  if (typeof key === 'string') return fieldOf(map, key)
  if (!(map instanceof CelMap)) return undefined
  const at = toMapKey(key)
  return at === undefined ? undefined : map.entries.get(at)?.[1]
}

/** Returns the look-up form of a key; `undefined` for a value that cannot be a key. */
export function toMapKey(key: unknown): MapKey | undefined {
  switch (typeof key) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return key
    case 'number':
      return Number.isInteger(key) ? BigInt(key) : undefined
    default:
      return key instanceof Uint ? key.value : undefined
  }
}

/** Returns the steps for reading or copying a text. */
export function stepsOfText(text: string): number {
  return 1 + (text.length >> 1)
}
