import type { JsonSchema } from '@toolgate/core'

/**
 * A schema that is being rewritten: in the form of 2020-12, without invalid parts.
 *
 * Keywords hold nodes where JSON Schema has schemas, and maps where it has objects of schemas. Immutable, so
 * that one node can be written in several places.
 */
export interface SchemaNode {
  /** Its place in the original schema, RFC 6901. */
  readonly pointer: string
  readonly words: ReadonlyMap<string, unknown>
  /** The original schema. A node that was made by a rewrite has none. */
  readonly raw: JsonSchema | undefined
}

export type NodeMap = ReadonlyMap<string, SchemaNode>

/** The values of the keywords that rewrites read, as the reader has checked them. */
interface CheckedWords {
  $ref: string
  type: readonly string[]
  format: string
  enum: readonly unknown[]
  minimum: number
  maximum: number
  exclusiveMinimum: number
  exclusiveMaximum: number
  minItems: number
  required: readonly string[]
  properties: NodeMap
  items: SchemaNode | boolean
  prefixItems: readonly SchemaNode[]
  allOf: readonly SchemaNode[]
  anyOf: readonly SchemaNode[]
  oneOf: readonly SchemaNode[]
}

/** Returns the value of a keyword that a node or a draft has. */
export function wordOf<Keyword extends keyof CheckedWords>(
  { words }: Pick<SchemaNode, 'words'>,
  keyword: Keyword,
): CheckedWords[Keyword] | undefined {
  // Sound, since the reader and the rewrites store only such values.
  return words.get(keyword) as CheckedWords[Keyword] | undefined
}

/** A feature that a target cannot express, and its replacement. */
export interface Note {
  readonly path: string
  readonly feature: string
  readonly from: string
  readonly to: string | undefined
  readonly action: 'removed' | 'rewritten' | 'described'
}

type SchemaProblemCode = 'remote_ref' | 'unresolved_ref' | 'schema_too_large' | 'schema_unusable' | 'parameter_name'

/** A schema that cannot be written for a target at all. */
export class SchemaProblem extends Error {
  override readonly name = 'SchemaProblem'
  readonly code: SchemaProblemCode
  readonly path: string

  constructor(code: SchemaProblemCode, path: string, message: string) {
    super(message)
    this.code = code
    this.path = path
  }
}

export function createNode(pointer: string, words: ReadonlyMap<string, unknown>, raw?: JsonSchema): SchemaNode {
  return { pointer, words, raw }
}

/** Returns the node that is equivalent to both together. */
export function both(a: SchemaNode, b: SchemaNode): SchemaNode {
  return createNode(a.pointer, new Map([['allOf', [a, b]]]))
}

const ESCAPED = /[~/]/

/** Adds a step to a pointer (RFC 6901). */
export function below(pointer: string, step: string | number): string {
  const text = String(step)
  return `${pointer}/${ESCAPED.test(text) ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text}`
}

export function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the items of a list; none for any other value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns whether a keyword's value is a node: JSON has no maps. */
export function isNode(word: unknown): word is SchemaNode {
  return isObject(word) && word['words'] instanceof Map
}

const MAX_TEXT = 120

/** Returns a value as a warning shows it. */
export function toText(value: unknown): string {
  const text = value === undefined ? '' : JSON.stringify(sortKeys(value))
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1).toWellFormed()}…` : text
}

/** Returns a value with the keys of its objects sorted, so that equal values have equal bytes. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sortKeys(value[key])]),
  )
}
