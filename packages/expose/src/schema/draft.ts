import type { JsonSchema } from '@toolgate/core'
import type { TargetDialect } from './dialect.ts'
import { KEYWORDS } from './keywords.ts'
import { below, isNode, isObject, listOf, type SchemaNode, type Note, sortKeys, wordOf } from './node.ts'

/** A schema while it is converted for a target. Each rewrite changes it. */
export interface SchemaDraft {
  readonly pointer: string
  readonly words: Map<string, unknown>
  /** Constraints that the target cannot express, for the description. */
  readonly told: string[]
}

/** The position of a draft in the schema. */
export interface At {
  readonly root: boolean
  /** Whether the path to it passes an optional property. */
  readonly optional: boolean
  readonly depth: number
  /** The enclosing schemas that are being expanded, outermost first. */
  readonly within: readonly SchemaNode[]
}

/** The functions that rewrites use. */
export interface Writer {
  readonly dialect: TargetDialect
  note(note: Note): void
  /** Moves a keyword into the description, or removes it if it is too long or not plain text. */
  describe(draft: SchemaDraft, keyword: string, word: unknown): void
  /** Returns a node with its references and `allOf` merged into it. */
  absorbed(node: SchemaNode, at: At): SchemaDraft
  write(node: SchemaNode, at: At): JsonSchema
}

/** Returns a draft as JSON: the keywords in a fixed order, unknown ones after them. */
export function emit(draft: SchemaDraft, writer: Writer, at: At): JsonSchema {
  const { words, told } = draft
  const out: Record<string, unknown> = {}
  if (told.length > 0)
    words.set('description', [words.get('description'), `{${told.join(', ')}}`].filter(Boolean).join('\n\n'))
  const allRequired = writer.dialect.allRequired === true && words.has('properties')
  if (allRequired && !words.has('required')) words.set('required', [])
  for (const keyword of [...words.keys()].toSorted(byRank)) {
    if (keyword === 'required' && allRequired) out[keyword] = [...(wordOf(draft, 'properties') ?? []).keys()]
    else out[keyword] = emitWord(keyword, draft, writer, at)
  }
  const simple = Array.isArray(out['anyOf']) ? simplifyUnion(out) : out
  return writer.dialect.openApi ? spellOpenApi(simple) : simple
}

const RANKS: ReadonlyMap<string, number> = new Map([...KEYWORDS.keys()].map((keyword, i) => [keyword, i]))

function byRank(a: string, b: string): number {
  return (RANKS.get(a) ?? RANKS.size) - (RANKS.get(b) ?? RANKS.size) || (a < b ? -1 : 1)
}

function emitWord(keyword: string, draft: SchemaDraft, writer: Writer, at: At): unknown {
  const inner: At = { ...at, root: false, depth: at.depth + 1 }
  if (keyword === 'properties') return emitProperties(draft, writer, inner)
  const types = keyword === 'type' ? wordOf(draft, 'type') : undefined
  return types?.length === 1 ? types[0] : emitValue(draft.words.get(keyword), writer, inner)
}

function emitValue(word: unknown, writer: Writer, at: At): unknown {
  if (isNode(word)) return writer.write(word, at)
  if (Array.isArray(word)) return word.some(isNode) ? word.map((one) => emitValue(one, writer, at)) : sortKeys(word)
  if (!(word instanceof Map)) return sortKeys(word)
  return Object.fromEntries(Array.from(word, ([key, one]: [unknown, unknown]) => [key, emitValue(one, writer, at)]))
}

function emitProperties(draft: SchemaDraft, writer: Writer, at: At): JsonSchema {
  const { dialect, note } = writer
  const required = new Set(wordOf(draft, 'required') ?? [])
  const entries = [...(wordOf(draft, 'properties') ?? [])].map(([key, node]) => {
    const optional = !required.has(key)
    const schema = writer.write(node, { ...at, optional: at.optional || optional })
    if (!dialect.allRequired || !optional) return [key, schema] as const
    note({
      path: below(below(draft.pointer, 'properties'), key),
      feature: 'optional',
      from: 'optional',
      to: 'required, may be null',
      action: 'rewritten',
    })
    return [key, orNull(schema)] as const
  })
  return Object.fromEntries(entries)
}

function orNull(schema: JsonSchema): JsonSchema {
  const { type, anyOf, ...rest } = schema
  const listed = 'const' in schema ? [schema['const']] : 'enum' in schema ? listOf(schema['enum']) : undefined
  const types = [type].flat().filter((each) => typeof each === 'string')
  if (Array.isArray(anyOf)) {
    const takesNull = anyOf.some((branch) => isObject(branch) && branch['type'] === 'null')
    return takesNull ? schema : { ...rest, anyOf: [...listOf(anyOf), NULL] }
  }
  if (types.length === 0) return { anyOf: [schema, NULL] }
  const { const: _, ...open } = rest
  const values = listed && !listed.includes(null) ? { enum: [...listed, null] } : listed ? { enum: listed } : {}
  return { type: types.includes('null') ? type : [...types, 'null'], ...open, ...values }
}

const NULL: JsonSchema = { type: 'null' }

/** Simplifies a union: without duplicates, a union of one is that one, and one that accepts anything is removed. */
function simplifyUnion(out: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = out
  const seen = new Map(
    listOf(anyOf)
      .filter(isObject)
      .map((branch) => [JSON.stringify(branch), branch]),
  )
  const [only, ...others] = seen.values()
  if (seen.has('{}')) return rest
  if (others.length > 0 || !only || Object.keys(only).some((keyword) => keyword in rest))
    return { ...out, anyOf: [...seen.values()] }
  if ('$ref' in only && Object.keys(rest).length > 0) return { ...out, anyOf: [only] }
  return inOrder({ ...rest, ...only })
}

function inOrder(out: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(out).toSorted(([a], [b]) => byRank(a, b)))
}

const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'] as const

/** Writes the message `Schema` of Gemini: types in capitals, 64-bit integers as texts. */
function spellOpenApi(out: Record<string, unknown>): JsonSchema {
  if (typeof out['type'] === 'string') out['type'] = out['type'].toUpperCase()
  for (const keyword of COUNTS) if (keyword in out) out[keyword] = String(out[keyword])
  return out
}
