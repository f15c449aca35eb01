import { ToolgateError } from '../errors.ts'
import { MAX_DIGITS, toInteger } from './integers.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns whether a value is an object that is not a list. It may be an instance of a class. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns whether a value is an object literal, not an instance of a class. */
export function isPlain(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const ESCAPED = /[~/]/

/** Returns a key as a step of a JSON pointer (RFC 6901). */
export function escapePointer(key: string | number): string {
  const text = String(key)
  return ESCAPED.test(text) ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text
}

/** Returns the key for a step of a JSON pointer (RFC 6901). */
export function unescapePointer(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Freezes a value and everything in it. Skips parts that are already frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const item of Object.values(value)) deepFreeze(item)
  return value
}

/** Deeper than any real input, and shallow enough that no stack overflows. */
const MAX_DEPTH = 64

/** Ends the walk of a value that contains itself several times, and so doubles at every level. */
const MAX_VALUES = 1_000_000

/**
 * Returns the canonical JSON of a plain value (RFC 8785, JCS): equal values have equal text.
 *
 * Accepts only what JSON can represent: `undefined`, functions, class instances, lone
 * surrogates, numbers that are not finite and more than 64 levels are refused rather than
 * converted. Does not call `toJSON`.
 *
 * RFC 8785 covers numbers that a double holds. A `bigint` is written as its decimal digits, without an exponent, so a
 * reader that keeps numbers as doubles cannot compute the hash of such a text again.
 *
 * @throws {ToolgateError} `value_not_canonical`, with the RFC 6901 pointer of the part
 * @example
 * canonicalize({ b: -0, a: 'x' }) // '{"a":"x","b":0}'
 */
export function canonicalize(value: unknown): string {
  return write(value, undefined, { values: 0 })
}

interface JsonPath {
  readonly parent: JsonPath | undefined
  readonly key: string | number
  readonly depth: number
}

interface ValueBudget {
  values: number
}

function write(value: unknown, place: JsonPath | undefined, budget: ValueBudget): string {
  if (typeof value === 'object' && value !== null) {
    if (place !== undefined && place.depth >= MAX_DEPTH) refuse(place, `is nested more than ${MAX_DEPTH} levels deep`)
    return Array.isArray(value) ? writeArray(value, place, budget) : writeObject(value, place, budget)
  }
  return writeScalar(value) ?? refuse(place, problemOf(value))
}

function writeArray(items: readonly unknown[], parent: JsonPath | undefined, budget: ValueBudget): string {
  budget.values += items.length
  if (budget.values > MAX_VALUES) refuse(parent, TOO_MANY_PARTS)
  let text = '['
  for (let i = 0; i < items.length; i++) {
    if (i > 0) text += ','
    text += writeScalar(items[i]) ?? write(items[i], placeIn(parent, i), budget)
  }
  return text + ']'
}

function writeObject(value: object, parent: JsonPath | undefined, budget: ValueBudget): string {
  if (!isPlainOfAnyRealm(value)) refuse(parent, 'is not a plain object')
  const keys = sortedKeys(value)
  budget.values += keys.length
  if (budget.values > MAX_VALUES) refuse(parent, TOO_MANY_PARTS)
  let text = '{'
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    const item = (value as Record<string, unknown>)[key]
    const name = writeString(key) ?? refuse(parent, 'has a key with a lone surrogate')
    text += (i > 0 ? ',' : '') + name + ':' + (writeScalar(item) ?? write(item, placeIn(parent, key), budget))
  }
  return text + '}'
}

/** Returns `undefined` for a value that is not a scalar of JSON. */
function writeScalar(value: unknown): string | undefined {
  if (typeof value === 'string') return writeString(value)
  // ECMAScript writes a number as RFC 8785 does, and -0 as 0.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (typeof value === 'bigint') return toInteger(value)?.toString()
  return value === null ? 'null' : undefined
}

/** Texts that need no escaping in JSON: most keys and many values. */
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

/** Compares texts by UTF-16 units, as RFC 8785 §3.2.3 sorts keys. */
export function compareUnits(a: string, b: string): number {
  return a < b ? -1 : 1
}

/** Rejects dates, maps and class instances: their keys do not hold their content. */
function isPlainOfAnyRealm(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function placeIn(parent: JsonPath | undefined, key: string | number): JsonPath {
  return { parent, key, depth: (parent?.depth ?? 0) + 1 }
}

const TOO_MANY_PARTS = `brings the value to more than ${MAX_VALUES} parts`
const TOO_MANY_DIGITS = `is an integer of more than ${MAX_DIGITS} digits`

function problemOf(value: unknown): string {
  if (typeof value === 'string') return 'holds a lone surrogate'
  if (typeof value === 'bigint') return TOO_MANY_DIGITS
  return typeof value === 'number' ? `is ${value}` : `is of type ${typeof value}`
}

function refuse(place: JsonPath | undefined, problem: string): never {
  const pointer = toPointer(place)
  const name = pointer === '' ? 'The value' : `The value at ${pointer.toWellFormed().slice(0, 200)}`
  throw new ToolgateError('value_not_canonical', `${name} ${problem}; it has no canonical JSON.`, { detail: pointer })
}

function toPointer(place: JsonPath | undefined): string {
  const steps: string[] = []
  for (let at = place; at !== undefined; at = at.parent) steps.push(`/${escapePointer(at.key)}`)
  return steps.toReversed().join('')
}

/** The problem of a value, and its place. */
export interface InputProblem {
  /** RFC 6901, such as `/path` or the empty string for the whole input. */
  readonly pointer: string
  readonly message: string
}

const NOT_PLAIN: unique symbol = Symbol('not plain JSON')

/**
 * Returns a deeply frozen copy of plain JSON, so that the decided input is the one that runs.
 *
 * Rejects what JSON cannot represent (functions, dates, NaN, lone surrogates), an own `__proto__`, and nesting
 * beyond 64 levels, so every copy has a canonical form. A field that is `undefined` is left out. A `bigint` is an integer
 * of JSON: up to 2^53 - 1 it becomes the same `number`, so that equal inputs have equal copies.
 */
export function frozenCopy(input: unknown): { value: unknown } | { problem: InputProblem } {
  const value = copy(input, 0)
  return value === NOT_PLAIN ? { problem: findProblem(input, '', 0) as InputProblem } : { value }
}

function copy(value: unknown, depth: number): unknown {
  if (typeof value === 'bigint') return toInteger(value) ?? NOT_PLAIN
  if (typeof value !== 'object' || value === null) return problemIn(value, depth) === undefined ? value : NOT_PLAIN
  if (problemIn(value, depth) !== undefined) return NOT_PLAIN
  return Array.isArray(value) ? copyArray(value, depth) : copyObject(value as Record<string, unknown>, depth)
}

function copyArray(list: readonly unknown[], depth: number): unknown {
  const items: unknown[] = []
  for (const item of list) {
    const copied = copy(item, depth + 1)
    if (copied === NOT_PLAIN) return NOT_PLAIN
    items.push(copied)
  }
  return Object.freeze(items)
}

function copyObject(object: Readonly<Record<string, unknown>>, depth: number): unknown {
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(object)) {
    const value = object[key]
    if (value === undefined) continue
    const copied = nameProblem(key) === undefined ? copy(value, depth + 1) : NOT_PLAIN
    if (copied === NOT_PLAIN) return NOT_PLAIN
    fields[key] = copied
  }
  return Object.freeze(fields)
}

/** Returns a value whose plain objects and lists are copies that may be changed. Other objects stay the same. */
export function mutableCopy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(mutableCopy)
  if (!isPlain(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mutableCopy(item)]))
}

/** Walks a value that is not plain again, this time with the pointer of each part. */
function findProblem(value: unknown, pointer: string, depth: number): InputProblem | undefined {
  const message = problemIn(value, depth)
  if (message !== undefined) return { pointer, message }
  if (typeof value !== 'object' || value === null) return undefined
  // A list is walked by its length, because holes are problems too.
  const entries: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
  for (const [key, item] of entries) {
    if (item === undefined && typeof key === 'string') continue
    const below = `${pointer}/${escapePointer(key)}`
    const wrongName = nameProblem(String(key))
    if (wrongName !== undefined) return { pointer: below.toWellFormed(), message: wrongName }
    const problem = findProblem(item, below, depth + 1)
    if (problem) return problem
  }
  return undefined
}

function nameProblem(key: string): string | undefined {
  if (key === '__proto__') return 'is a name that is not allowed'
  return key.isWellFormed() ? undefined : 'is a name with a lone surrogate'
}

/** Returns what is wrong with one value, apart from its content. */
function problemIn(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : 'holds a lone surrogate'
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : 'is not a number that JSON can say'
    case 'bigint':
      return toInteger(value) === undefined ? TOO_MANY_DIGITS : undefined
    case 'object':
      break
    default:
      return `is of type ${typeof value}, which JSON cannot say`
  }
  if (value === null) return undefined
  if (depth >= MAX_DEPTH) return `is nested more than ${MAX_DEPTH} levels deep`
  return Array.isArray(value) || isPlain(value) ? undefined : 'is not a plain object'
}
