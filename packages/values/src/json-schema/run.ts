import type { Pattern } from '../regex/pattern.ts'
import type { Work } from '../work.ts'
import type { JsonObject } from '../json/json.ts'
import type { Draft } from './drafts.ts'

/** A violation of a schema. It is found at the innermost value; the path grows on the way out. */
export interface Violation {
  /** Keys, the innermost first. */
  readonly path: (string | number)[]
  readonly message: string
}

/** Steps for listing one key of an object. */
export const KEY_STEPS = 8

/** One input under validation. */
export interface Run {
  readonly work: Work
  violation: Violation | undefined
  /** The current number of nested schemas. */
  depth: number
  /** Resources that were entered, outermost first. Dynamic references depend on them. */
  readonly scope: object[]
}

/** Returns whether a value passes. If not, `run.violation` has the reason. */
export type Check<Value = unknown> = (value: Value, run: Run, evaluated: Evaluated | undefined) => boolean

/** The properties and items of one value that keywords have checked. `unevaluated…` applies to the others. */
export interface Evaluated {
  readonly properties: Set<string>
  allProperties: boolean
  /** The number of checked items, from the first on. */
  items: number
  readonly furtherItems: Set<number>
}

export function createEvaluated(): Evaluated {
  return { properties: new Set(), allProperties: false, items: 0, furtherItems: new Set() }
}

/** Steps for recording one property. */
const NOTE_STEPS = 25

export function mergeEvaluated(into: Evaluated, from: Evaluated, run: Run): void {
  run.work.left -= (from.properties.size + from.furtherItems.size) * NOTE_STEPS
  for (const name of from.properties) into.properties.add(name)
  for (const at of from.furtherItems) into.furtherItems.add(at)
  into.allProperties ||= from.allProperties
  into.items = Math.max(into.items, from.items)
}

export function noteProperty(evaluated: Evaluated, name: string, run: Run): void {
  run.work.left -= NOTE_STEPS
  evaluated.properties.add(name)
}

/** Records why a value does not pass. */
export function refuse(run: Run, message: string): false {
  run.violation = { path: [], message }
  return false
}

/** Checks a part of a value, and adds its key to the path of a violation. */
export function passesAt(check: Check, value: unknown, key: string | number, run: Run): boolean {
  if (check(value, run, undefined)) return true
  run.violation?.path.push(key)
  return false
}

/** The context in which the keywords of one schema are compiled. */
export interface Compiling {
  readonly draft: Draft
  /** Whether a keyword of the document depends on evaluated parts. */
  readonly tracks: boolean
  /** Returns the check of a schema inside this one. */
  readonly check: (schema: unknown) => Check
  /** Returns the check of the schema that a reference refers to. */
  readonly refer: (reference: string, from: JsonObject, kind: '$ref' | '$dynamicRef' | '$recursiveRef') => Check
  /** Returns a pattern, or nothing if it cannot be run: its keyword is skipped. */
  readonly pattern: (source: string) => Pattern | undefined
  /** Returns whether nothing in a schema is skipped. */
  readonly isExact: (schema: unknown) => boolean
}

/** The values to which each group of keywords applies. The checks of a schema run in the order of the groups. */
export interface GroupValues {
  readonly type: unknown
  readonly number: number | bigint
  readonly string: string
  readonly any: unknown
  readonly array: readonly unknown[]
  readonly object: JsonObject
  readonly 'unevaluated items': readonly unknown[]
  readonly 'unevaluated properties': JsonObject
}
export type KeywordGroup = keyof GroupValues

/** Makes the check of a keyword from the keyword's value; returns nothing if there is nothing to check. */
export type MakeCheck<Value> = (given: unknown, schema: JsonObject, compiling: Compiling) => Check<Value> | undefined

/**
 * Returns a `MakeCheck` for a keyword whose value has one type. The gate only accepts schemas with such values; for any
 * other value, the check refuses every input.
 */
export function reads<Given, Value = unknown>(
  is: (given: unknown) => given is Given,
  make: (given: Given, schema: JsonObject, compiling: Compiling) => Check<Value> | undefined,
): MakeCheck<Value> {
  return (given, schema, compiling) => (is(given) ? make(given, schema, compiling) : UNUSABLE)
}

const UNUSABLE: Check = (_, run) =>
  refuse(run, "cannot be checked: a keyword of the tool's schema has an invalid value")

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

export function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** A keyword of any of the given groups. */
export type Keyword<G extends KeywordGroup = KeywordGroup> = {
  [Each in G]: {
    readonly name: string
    readonly about: Each
    readonly make: MakeCheck<GroupValues[Each]>
    /** The first draft with the keyword. Default: the oldest draft. */
    readonly since?: Draft
    /** The last draft with the keyword. */
    readonly until?: Draft
  }
}[G]
