import type { CharSet } from './char-set.ts'

export type Assertion = 'text start' | 'text end' | 'line start' | 'line end' | 'word boundary' | 'no word boundary'

/** A pattern as a tree. */
export type Node =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  /** Looks ahead without taking anything. */
  | { readonly kind: 'look'; readonly negative: boolean; readonly body: Node }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly body: Node; readonly min: number; readonly max: number; readonly lazy: boolean }

/** `ecma` is ECMA-262 with the flag `u`, as JSON Schema has it; `re2` is the syntax of RE2. They differ in `.`, `\s` and `[]`. */
export type Dialect = 'ecma' | 're2'

/** A pattern that cannot be used; the message is safe to show. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}
