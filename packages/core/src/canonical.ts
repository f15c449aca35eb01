import { ToolgateError } from './errors.ts'

/** Deeper than any real input, and shallow enough that no stack overflows. */
const MAX_DEPTH = 64
/** Ends the walk of a value that holds itself many times over, which doubles at every level. */
const MAX_VALUES = 1_000_000

/**
 * Gives the canonical JSON of a plain value (RFC 8785, JCS): equal values have equal text.
 *
 * Takes what JSON can say and nothing else: `undefined`, functions, class instances, lone
 * surrogates, numbers that are not finite and more than 64 levels are refused rather than
 * written as something they are not. Calls no `toJSON`.
 *
 * @throws {ToolgateError} `value_not_canonical`, with the RFC 6901 pointer of the culprit
 * @example
 * canonicalize({ b: -0, a: 'x' }) // '{"a":"x","b":0}'
 */
export function canonicalize(value: unknown): string {
  return write(value, undefined, { values: 0 })
}

interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
  readonly depth: number
}

interface Budget {
  values: number
}

function write(value: unknown, place: Place | undefined, budget: Budget): string {
  if (typeof value === 'object' && value !== null) {
    if (place !== undefined && place.depth >= MAX_DEPTH) refuse(place, `is nested more than ${MAX_DEPTH} levels deep`)
    return Array.isArray(value) ? writeArray(value, place, budget) : writeObject(value, place, budget)
  }
  return writeScalar(value) ?? refuse(place, problemOf(value))
}

function writeArray(items: readonly unknown[], parent: Place | undefined, budget: Budget): string {
  spend(budget, items.length, parent)
  let text = '['
  for (let i = 0; i < items.length; i++) {
    if (i > 0) text += ','
    text += writeScalar(items[i]) ?? write(items[i], placeIn(parent, i), budget)
  }
  return text + ']'
}

function writeObject(value: object, parent: Place | undefined, budget: Budget): string {
  if (!isPlain(value)) refuse(parent, 'is not a plain object')
  const keys = sortedKeys(value)
  spend(budget, keys.length, parent)
  let text = '{'
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    const item = (value as Record<string, unknown>)[key]
    const name = writeString(key) ?? refuse(parent, 'has a key with a lone surrogate')
    text += (i > 0 ? ',' : '') + name + ':' + (writeScalar(item) ?? write(item, placeIn(parent, key), budget))
  }
  return text + '}'
}

/** Gives `undefined` for what is not a scalar of JSON. */
function writeScalar(value: unknown): string | undefined {
  if (typeof value === 'string') return writeString(value)
  // ECMAScript writes a number as RFC 8785 does, and -0 as 0.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  return value === null ? 'null' : undefined
}

/** What stands in JSON as it is: most keys and many texts do. */
const PLAIN = /^[ !#-[\]-~]*$/

function writeString(text: string): string | undefined {
  if (text.length < 64 && PLAIN.test(text)) return `"${text}"`
  return text.isWellFormed() ? JSON.stringify(text) : undefined
}

/** Sorts by UTF-16 units, as JavaScript's own `<` does (RFC 8785 §3.2.3). */
function sortedKeys(value: object): readonly string[] {
  const keys = Object.keys(value)
  for (let i = 1; i < keys.length; i++) {
    if ((keys[i - 1] as string) > (keys[i] as string)) return keys.toSorted(compareUnits)
  }
  return keys
}

function compareUnits(a: string, b: string): number {
  return a < b ? -1 : 1
}

/** A date, a map or a class instance has no keys that tell it from another. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function placeIn(parent: Place | undefined, key: string | number): Place {
  return { parent, key, depth: (parent?.depth ?? 0) + 1 }
}

function spend(budget: Budget, count: number, place: Place | undefined): void {
  budget.values += count
  if (budget.values > MAX_VALUES) refuse(place, `brings the value to more than ${MAX_VALUES} parts`)
}

function problemOf(value: unknown): string {
  if (typeof value === 'string') return 'holds a lone surrogate'
  return typeof value === 'number' ? `is ${value}` : `is of type ${typeof value}`
}

function refuse(place: Place | undefined, problem: string): never {
  const pointer = toPointer(place)
  const name = pointer === '' ? 'The value' : `The value at ${pointer.toWellFormed().slice(0, 200)}`
  throw new ToolgateError('value_not_canonical', `${name} ${problem}; it has no canonical JSON.`, { detail: pointer })
}

/** RFC 6901. */
function toPointer(place: Place | undefined): string {
  const steps: string[] = []
  for (let at = place; at !== undefined; at = at.parent) {
    steps.push(String(at.key).replaceAll('~', '~0').replaceAll('/', '~1'))
  }
  return steps
    .toReversed()
    .map((step) => `/${step}`)
    .join('')
}
