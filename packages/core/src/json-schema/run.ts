import type { Pattern } from '../util/regex/pattern.ts'
import type { Work } from '../util/work.ts'
import type { Draft, PlainObject } from './document.ts'

/** What is wrong with an input, found at the innermost place; the path grows on the way out. */
export interface Violation {
  /** Innermost key first. */
  readonly path: (string | number)[]
  readonly message: string
}

/** What it costs to list one key of an object. */
export const KEY_STEPS = 8

/** One input under validation. */
export interface Run {
  readonly work: Work
  violation: Violation | undefined
  /** Schemas inside schemas that are being asked. */
  depth: number
  /** Resources that were entered, outermost first: what dynamic references ask. */
  readonly scope: object[]
}

/** Answers whether a value passes; where it does not, the run's finding says why. */
export type Check = (value: unknown, run: Run, evaluated: Evaluated | undefined) => boolean

/** Which properties and items of one value some keyword has looked at: what `unevaluated…` asks. */
export interface Evaluated {
  readonly properties: Set<string>
  allProperties: boolean
  /** Items from the first one on. */
  items: number
  readonly furtherItems: Set<number>
}

export function createEvaluated(): Evaluated {
  return { properties: new Set(), allProperties: false, items: 0, furtherItems: new Set() }
}

/** What it costs to note one property, in steps. */
const NOTE_STEPS = 25

export function mergeEvaluated(into: Evaluated, from: Evaluated, run: Run): void {
  run.work.left -= (from.properties.size + from.furtherItems.size) * NOTE_STEPS
  for (const name of from.properties) into.properties.add(name)
  for (const at of from.furtherItems) into.furtherItems.add(at)
  into.allProperties ||= from.allProperties
  into.items = Math.max(into.items, from.items)
}

export function notePropertyOf(evaluated: Evaluated | undefined, name: string, run: Run): void {
  if (!evaluated) return
  run.work.left -= NOTE_STEPS
  evaluated.properties.add(name)
}

/** Says why a value does not pass. */
export function refuse(run: Run, message: string): false {
  run.violation = { path: [], message }
  return false
}

/** Asks about a part of a value; what is wrong with it is found at its key. */
export function passesAt(check: Check, value: unknown, key: string | number, run: Run): boolean {
  if (check(value, run, undefined)) return true
  run.violation?.path.push(key)
  return false
}

/** What the keywords of one schema are compiled with. */
export interface Compiling {
  readonly draft: Draft
  /** Whether something in the document asks which parts were evaluated. */
  readonly tracks: boolean
  /** Gives the check of a schema inside this one. */
  readonly check: (schema: unknown) => Check
  /** Gives the check of what a reference leads to. */
  readonly refer: (reference: string, from: PlainObject, kind: '$ref' | '$dynamicRef' | '$recursiveRef') => Check
  /** Gives a pattern, or nothing for one that cannot be run: its keyword is skipped. */
  readonly pattern: (source: string) => Pattern | undefined
  /** Whether nothing in a schema is skipped: what passes it would pass it in full. */
  readonly isExact: (schema: unknown) => boolean
}

/** Makes the check of a keyword; nothing where it has nothing to check. */
export type MakeCheck = (value: never, schema: PlainObject, compiling: Compiling) => Check | undefined

/** Which values a keyword is about; the checks of a schema are asked in this order. */
export const GROUPS = [
  'type',
  'number',
  'string',
  'any',
  'array',
  'object',
  'unevaluated items',
  'unevaluated properties',
] as const
export type Group = (typeof GROUPS)[number]

export interface Keyword {
  readonly name: string
  readonly about: Group
  readonly make: MakeCheck
  /** Default: the oldest draft. */
  readonly since?: Draft
  /** The last draft that has it. */
  readonly until?: Draft
}
