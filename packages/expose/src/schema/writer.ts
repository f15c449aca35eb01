import type { JsonSchema } from '@toolgate/core'
import { holdsBigint } from '@toolgate/values/json'
import { type TargetDialect, isKnown, takes } from './dialect.ts'
import { type At, type SchemaDraft, emit, type Writer } from './draft.ts'
import { meet } from './keywords.ts'
import { below, isNode, isObject, type SchemaNode, type Note, SchemaProblem, sortKeys, toText, wordOf } from './node.ts'
import { createReader } from './read.ts'
import { createReferences, type SchemaReferences } from './references.ts'
import { REWRITES } from './rewrites.ts'

export interface WrittenSchema {
  readonly schema: JsonSchema
  readonly notes: readonly Note[]
}

/** More levels than a tool's own schema may have. Only expanded references reach it. */
const MAX_DEPTH = 100
/** Expanded references may double a schema at every step. */
const MAX_DRAFTS = 20_000
const MAX_TOLD = 200

/**
 * Returns a schema in a dialect, with notes about the changes.
 *
 * Equal schemas have equal bytes, independent of the order of their keys. Nothing is fetched. A `bigint` becomes the
 * nearest number, as SDKs write no bigints: the gate checks inputs against the schema as it was given.
 *
 * @throws {SchemaProblem} for a schema that cannot be written
 */
export function writeSchema(given: JsonSchema, dialect: TargetDialect): WrittenSchema {
  return new SchemaWriter(holdsBigint(given) ? (withNumbers(given) as JsonSchema) : given, dialect).writeAll()
}

class SchemaWriter implements Writer {
  readonly dialect: TargetDialect
  readonly #root: SchemaNode
  readonly #references: SchemaReferences
  readonly #notes = new Map<string, Note>()
  #drafts = 0

  constructor(raw: JsonSchema, dialect: TargetDialect) {
    this.dialect = dialect
    const read = createReader(this.note)
    this.#root = read(raw, '')
    this.#references = createReferences(raw, read)
  }

  readonly note = (each: Note): void => {
    const key = `${each.path}\0${each.feature}`
    if (!this.#notes.has(key)) this.#notes.set(key, each)
  }

  writeAll(): WrittenSchema {
    const schema = this.write(this.#root, { root: true, optional: false, depth: 0, within: [this.#root] })
    const defs = this.#references.writeAll((node) =>
      this.write(node, { root: false, optional: false, depth: 0, within: [node] }),
    )
    return { schema: defs ? { ...schema, $defs: defs } : schema, notes: [...this.#notes.values()] }
  }

  write(node: SchemaNode, at: At): JsonSchema {
    if (at.depth > MAX_DEPTH)
      throw new SchemaProblem('schema_too_large', node.pointer, `is nested more than ${MAX_DEPTH} levels deep`)
    const kept = this.#keptReference(node, at)
    if (kept && this.dialect.bareRefs) return { $ref: kept }
    const within = [...at.within]
    const draft = this.#absorbInto({ pointer: node.pointer, words: new Map(), told: [] }, node, at, within, kept)
    const here = { ...at, within }
    if (at.root && this.dialect.objectRoot) requireObject(draft, this.note)
    for (const rewrite of REWRITES) rewrite(draft, this, here)
    return emit(draft, this, here)
  }

  /** Returns the schema to write for a reference that stays. */
  #keptReference(node: SchemaNode, at: At): string | undefined {
    if (!node.words.has('$ref') || at.root || this.dialect.refs === 'inlined') return undefined
    const target = this.#references.target(node)
    if (this.dialect.recursion === 'in-optional' && !at.optional && this.#references.isRecursive(target))
      return undefined
    if (this.dialect.bareRefs && node.words.size > 1) {
      if (!this.#references.isRecursive(target)) return undefined
      for (const [keyword, word] of node.words) if (keyword !== '$ref') this.#removed(node, keyword, word)
    }
    return target === this.#root ? '#' : `#/$defs/${this.#references.nameOf(target)}`
  }

  absorbed(node: SchemaNode, at: At): SchemaDraft {
    return this.#absorbInto({ pointer: node.pointer, words: new Map(), told: [] }, node, at, [...at.within], undefined)
  }

  /** Adds the keywords of a node to a draft. `within` grows by the references that are expanded for it. */
  #absorbInto(
    draft: SchemaDraft,
    node: SchemaNode,
    at: At,
    within: SchemaNode[],
    kept: string | undefined,
  ): SchemaDraft {
    if (++this.#drafts > MAX_DRAFTS || within.length > MAX_DEPTH)
      throw new SchemaProblem('schema_too_large', node.pointer, 'is too large with its references written out')
    for (const [keyword, word] of node.words) {
      if (keyword === '$ref') {
        if (kept === undefined) this.#absorbReference(draft, node, at, within)
        else draft.words.set('$ref', kept)
      } else if (keyword === 'allOf' && !(takes(this.dialect, 'allOf', at.root) && node.raw)) {
        this.#absorbAll(draft, node, at, within)
      } else {
        this.#absorbWord(draft, node, keyword, word)
      }
    }
    return draft
  }

  #absorbReference(draft: SchemaDraft, node: SchemaNode, at: At, within: SchemaNode[]): void {
    const path = below(node.pointer, '$ref')
    const target = this.#references.target(node)
    const from = toText(node.words.get('$ref'))
    if (within.includes(target) && this.#references.isRecursive(target)) {
      const types = target.words.get('type')
      if (types && !draft.words.has('type')) draft.words.set('type', types)
      this.note({ path, feature: '$ref', from, to: types ? `type: ${toText(types)}` : undefined, action: 'removed' })
      return
    }
    within.push(target)
    this.#absorbInto(draft, target, at, within, undefined)
    if (this.dialect.refs === 'inlined')
      this.note({ path, feature: '$ref', from, to: 'its definition', action: 'rewritten' })
  }

  #absorbAll(draft: SchemaDraft, node: SchemaNode, at: At, within: SchemaNode[]): void {
    const branches = wordOf(node, 'allOf') ?? []
    for (const branch of branches) this.#absorbInto(draft, branch, at, within, undefined)
    if (!node.raw) return
    const path = below(node.pointer, 'allOf')
    this.note({ path, feature: 'allOf', from: `allOf of ${branches.length}`, to: 'one schema', action: 'rewritten' })
  }

  #absorbWord(draft: SchemaDraft, node: SchemaNode, keyword: string, word: unknown): void {
    if (!draft.words.has(keyword)) {
      draft.words.set(keyword, word)
      return
    }
    const met = meet(keyword, draft.words.get(keyword), word)
    if (met === undefined) this.#removed(node, keyword, word)
    else draft.words.set(keyword, met)
  }

  #removed(node: SchemaNode, keyword: string, word: unknown): void {
    const path = below(node.pointer, keyword)
    this.note({ path, feature: keyword, from: toText(toPlain(word)), to: undefined, action: 'removed' })
  }

  describe(draft: SchemaDraft, keyword: string, word: unknown): void {
    draft.words.delete(keyword)
    const plain = toPlain(word)
    const text = plain === undefined ? '' : `${keyword}: ${JSON.stringify(plain)}`
    // The model assumes `false` anyway.
    const told =
      word !== false && text !== '' && text.length <= MAX_TOLD && isKnown(keyword) && !text.includes('"$ref"')
    if (told) draft.told.push(text)
    this.note({
      path: below(draft.pointer, keyword),
      feature: keyword,
      from: toText(plain),
      to: told ? 'description' : undefined,
      action: told ? 'described' : 'removed',
    })
  }
}

/** The root of an input schema is an object, also without a `type`. */
function requireObject(draft: SchemaDraft, note: (note: Note) => void): void {
  const types = wordOf(draft, 'type')
  if (types && !types.includes('object'))
    throw new SchemaProblem(
      'schema_unusable',
      '/type',
      `is of type ${types.join(' or ')}; what a tool takes is an object`,
    )
  draft.words.set('type', ['object'])
  if (types && types.length > 1)
    note({ path: '/type', feature: 'type', from: toText(types), to: '"object"', action: 'rewritten' })
}

/** Returns a keyword's original value, or `undefined` if a rewrite made it. */
function toPlain(word: unknown): unknown {
  if (isNode(word)) return word.raw && sortKeys(word.raw)
  if (word instanceof Map) {
    const entries = [...(word as ReadonlyMap<string, unknown>)].map(([key, value]) => [key, toPlain(value)] as const)
    return entries.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(entries)
  }
  if (!Array.isArray(word)) return sortKeys(word)
  const items = word.map(toPlain)
  return items.includes(undefined) ? undefined : items
}

function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(withNumbers)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withNumbers(item)]))
}
