import { spend, type Work } from '../work.ts'
import {
  CelError,
  CelMap,
  CelType,
  CelValue,
  Duration,
  entryOf,
  keysOf,
  kindOf,
  Timestamp,
  toCel,
  Uint,
} from './values.ts'

/**
 * Returns whether two values are equal in CEL: numbers of all types by value, and texts, lists and maps by content. Values
 * of different types are not equal.
 */
export function equals(work: Work, a: unknown, b: unknown): boolean {
  switch (typeof a) {
    case 'string':
      return typeof b === 'string' && sameText(work, a, b)
    case 'number':
    case 'bigint':
      return sameNumber(a, b)
    case 'boolean':
      return a === b
    default:
      return a === null || typeof b !== 'object' || b === null ? equalsNumber(a, b) : sameObject(work, a as object, b)
  }
}

function equalsNumber(a: unknown, b: unknown): boolean {
  return a instanceof Uint ? sameNumber(a.value, b) : a === b
}

function sameText(work: Work, a: string, b: string): boolean {
  if (a.length !== b.length) return false
  if (a.length > 16) spend(work, a.length >> 3)
  return a === b
}

function sameNumber(a: number | bigint, b: unknown): boolean {
  const other = b instanceof Uint ? b.value : b
  if (typeof other === typeof a) return other === a
  if (typeof other !== 'number' && typeof other !== 'bigint') return false
  // Comparing a number with a bigint is exact, and NaN is neither.
  // oxlint-disable-next-line oxc/double-comparisons -- one comparison would need ==
  return a <= other && a >= other
}

function sameObject(work: Work, a: object, b: object): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && sameList(work, a, b)
  if (a instanceof CelValue && !(a instanceof CelMap)) return sameValue(a, b)
  if (a instanceof Uint8Array || b instanceof Uint8Array) return sameBytes(work, a, b)
  if (Array.isArray(b) || (b instanceof CelValue && !(b instanceof CelMap))) return false
  return sameMap(work, a, b)
}

function sameValue(a: CelValue, b: object): boolean {
  if (a instanceof Uint) return b instanceof Uint && a.value === b.value
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos
  return a instanceof CelType && b instanceof CelType && a.name === b.name
}

function sameBytes(work: Work, a: object, b: object): boolean {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.length !== b.length) return false
  spend(work, a.length)
  return a.every((byte, i) => byte === b[i])
}

function sameList(work: Work, a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) {
    spend(work, ITEM_STEPS)
    if (!equals(work, toCel(a[i]), toCel(b[i]))) return false
  }
  return true
}

function sameMap(work: Work, a: object, b: object): boolean {
  const keys = keysOf(work, a)
  if (keys.length !== keysOf(work, b).length) return false
  for (const key of keys) {
    spend(work, ITEM_STEPS)
    const other = entryOf(b, key)
    if (other === undefined || !equals(work, entryOf(a, key), other)) return false
  }
  return true
}

const ITEM_STEPS = 3

/** Returns whether a list contains a value, or a map has the key. @throws {CelError} for anything else */
export function isIn(work: Work, item: unknown, container: unknown): boolean {
  if (!Array.isArray(container)) return hasKey(item, container)
  if (typeof item === 'string') {
    // The engine compares texts of one length by their characters.
    const at = container.indexOf(item)
    spend(work, (at === -1 ? container.length : at + 1) * (2 + (item.length >> 4)))
    return at !== -1
  }
  for (const one of container as readonly unknown[]) {
    spend(work, ITEM_STEPS)
    if (equals(work, item, toCel(one))) return true
  }
  return false
}

function hasKey(key: unknown, map: unknown): boolean {
  const kind = kindOf(map)
  if (kind !== 'map') throw new CelError(`no such overload: ${kindOf(key)} in ${kind}`)
  return entryOf(map as object, key) !== undefined
}

/**
 * Compares two values: negative, 0 or positive. Numbers are ordered by value, texts by code points.
 *
 * @throws {CelError} for values that have no order, such as NaN
 */
export function compare(work: Work, a: unknown, b: unknown): number {
  const [x, y] = [orderOf(a), orderOf(b)]
  if (typeof x === 'string' && typeof y === 'string') return compareTexts(work, x, y)
  if (isNumber(x) && isNumber(y) && haveOrder(a, b)) return compareNumbers(x, y)
  if (x instanceof Uint8Array && y instanceof Uint8Array) return compareBytes(work, x, y)
  throw new CelError(`no such overload: ${kindOf(a)} < ${kindOf(b)}`)
}

/** Returns a form of a value that `<` can compare. */
function orderOf(value: unknown): unknown {
  if (value instanceof Uint) return value.value
  return value instanceof Timestamp || value instanceof Duration
    ? value.nanos
    : typeof value === 'boolean'
      ? Number(value)
      : value
}

function compareNumbers(x: number | bigint, y: number | bigint): number {
  if (Number.isNaN(x) || Number.isNaN(y)) throw new CelError('NaN has no order')
  return x < y ? -1 : x > y ? 1 : 0
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

const NUMBERS: ReadonlySet<unknown> = new Set(['int', 'uint', 'double'])

function haveOrder(a: unknown, b: unknown): boolean {
  const [x, y] = [kindOf(a), kindOf(b)]
  return x === y || (NUMBERS.has(x) && NUMBERS.has(y))
}

/** By code points: a surrogate sorts above the whole first plane. */
function compareTexts(work: Work, a: string, b: string): number {
  if (a === b) {
    spend(work, a.length >> 3)
    return 0
  }
  const length = Math.min(a.length, b.length)
  let i = 0
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++
  spend(work, i >> 2)
  if (i === length) return a.length - b.length
  return rankOf(a.charCodeAt(i)) - rankOf(b.charCodeAt(i))
}

function rankOf(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

function compareBytes(work: Work, a: Uint8Array, b: Uint8Array): number {
  spend(work, Math.min(a.length, b.length))
  const at = a.findIndex((byte, i) => byte !== b[i])
  return at === -1 || at >= b.length ? a.length - b.length : (a[at] as number) - (b[at] as number)
}
