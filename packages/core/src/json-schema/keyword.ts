import type { Pattern } from '../regex/pattern.ts'
import type { Draft } from './dialects.ts'
import type { Check, PlainObject } from './run.ts'

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
