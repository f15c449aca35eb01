import type { JsonSchema } from '../../tools/tool.ts'
import type { At, Draft, Writer } from './draft.ts'
import { KEYWORDS } from './keywords.ts'
import { below, type Node, type NodeMap, sortKeys } from './node.ts'

/** Gives a draft as JSON: the keywords in a fixed order, unknown ones after them. */
export function emit(draft: Draft, writer: Writer, at: At): JsonSchema {
  const { words, told } = draft
  const out: Record<string, unknown> = {}
  if (told.length > 0)
    words.set('description', [words.get('description'), `{${told.join(', ')}}`].filter(Boolean).join('\n\n'))
  const allRequired = writer.dialect.allRequired === true && words.has('properties')
  if (allRequired && !words.has('required')) words.set('required', [])
  for (const keyword of [...words.keys()].toSorted(byRank)) {
    if (keyword === 'required' && allRequired) out[keyword] = [...(words.get('properties') as NodeMap).keys()]
    else out[keyword] = emitWord(keyword, draft, writer, at)
  }
  const simple = Array.isArray(out['anyOf']) ? simplifyUnion(out) : out
  return writer.dialect.openApi ? spellOpenApi(simple) : simple
}

const RANKS: ReadonlyMap<string, number> = new Map([...KEYWORDS.keys()].map((keyword, i) => [keyword, i]))

function byRank(a: string, b: string): number {
  return (RANKS.get(a) ?? RANKS.size) - (RANKS.get(b) ?? RANKS.size) || (a < b ? -1 : 1)
}

function emitWord(keyword: string, draft: Draft, writer: Writer, at: At): unknown {
  const word = draft.words.get(keyword)
  const inner: At = { ...at, root: false, depth: at.depth + 1 }
  switch (KEYWORDS.get(keyword)) {
    case 'schema':
      return writer.write(word as Node, inner)
    case 'schema-or-flag':
      return typeof word === 'boolean' ? word : writer.write(word as Node, inner)
    case 'schemas':
      return (word as readonly Node[]).map((node) => writer.write(node, inner))
    case 'schema-map':
      return keyword === 'properties' ? emitProperties(draft, writer, inner) : emitMap(word as NodeMap, writer, inner)
    case 'types':
      return (word as readonly string[]).length === 1 ? (word as readonly string[])[0] : word
    default:
      return sortKeys(word)
  }
}

function emitMap(map: NodeMap, writer: Writer, at: At): JsonSchema {
  return Object.fromEntries([...map].map(([key, node]) => [key, writer.write(node, at)]))
}

function emitProperties(draft: Draft, writer: Writer, at: At): JsonSchema {
  const { dialect, note } = writer
  const required = new Set((draft.words.get('required') ?? []) as readonly string[])
  const entries = [...(draft.words.get('properties') as NodeMap)].map(([key, node]) => {
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
  const listed = 'const' in schema ? [schema['const']] : (schema['enum'] as readonly unknown[] | undefined)
  const types = [type].flat().filter((each) => typeof each === 'string')
  if (Array.isArray(anyOf)) {
    const branches = anyOf as readonly JsonSchema[]
    return branches.some((branch) => branch['type'] === 'null') ? schema : { ...rest, anyOf: [...branches, NULL] }
  }
  if (types.length === 0) return { anyOf: [schema, NULL] }
  const { const: _, ...open } = rest as JsonSchema & { const?: unknown }
  const values = listed && !listed.includes(null) ? { enum: [...listed, null] } : listed ? { enum: listed } : {}
  return { type: types.includes('null') ? type : [...types, 'null'], ...open, ...values }
}

const NULL: JsonSchema = { type: 'null' }

/** A union says each thing once, a union of one is that one, and one that takes anything says nothing. */
function simplifyUnion(out: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = out
  const seen = new Map((anyOf as readonly JsonSchema[]).map((branch) => [JSON.stringify(branch), branch]))
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

/** As the message `Schema` has it: types in capitals, 64-bit integers as texts. */
function spellOpenApi(out: Record<string, unknown>): JsonSchema {
  if (typeof out['type'] === 'string') out['type'] = out['type'].toUpperCase()
  for (const keyword of COUNTS) if (keyword in out) out[keyword] = String(out[keyword])
  return out
}
