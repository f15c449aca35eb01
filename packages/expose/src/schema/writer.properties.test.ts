import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonSchema } from '@toolgate/core'
import * as dialects from './dialect.ts'
import { KEYWORDS } from './keywords.ts'
import { isObject, SchemaProblem } from './node.ts'
import { writeSchema } from './writer.ts'
import { runs } from '../../../testing/src/runs.ts'

const DIALECTS: readonly dialects.TargetDialect[] = [
  dialects.ANY,
  dialects.ANY_OUTPUT,
  dialects.ANTHROPIC,
  dialects.FRAMEWORK,
  dialects.OPENAI,
  dialects.OPENAI_STRICT,
  dialects.ANTHROPIC_STRICT,
  dialects.BEDROCK_STRICT,
  dialects.GEMINI,
  dialects.GEMINI_OUTPUT,
  dialects.GEMINI_OPENAPI,
]
const RUNS = runs(400, 20_000)

const NAMES = ['a', 'b', 'constructor', 'toString', 'a/b', '~', '$ref'] as const
const REFS = [
  '#',
  '#/$defs/a',
  '#/definitions/b',
  '#/$defs/toString',
  '#here',
  '#/properties/a',
  'https://example.com/x',
  '../y',
  '%',
]
const name = fc.constantFrom(...NAMES)
const scalar = fc.constantFrom<unknown>('a', '', 1, 0.5, -3, true, false, null)
const junk = fc.constantFrom<unknown>(5, 'x', null, [], {}, true, [1], { a: 1 }, -1, '(')

/** What looks like JSON Schema, of any draft, and sometimes is none. */
const { schema: schemaArbitrary } = fc.letrec<{ schema: unknown }>((tie) => {
  const schema = tie('schema')
  const map = fc.dictionary(name, schema, { maxKeys: 3 })
  const list = fc.array(schema, { minLength: 1, maxLength: 3 })
  const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 9, arbitrary }, { weight: 1, arbitrary: junk })
  const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 'null')
  const words: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    type: some(fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 }))),
    properties: some(map),
    required: some(fc.uniqueArray(name, { maxLength: 3 })),
    additionalProperties: some(fc.oneof(fc.boolean(), schema)),
    patternProperties: some(map),
    items: some(fc.oneof(schema, list)),
    additionalItems: some(schema),
    prefixItems: some(list),
    allOf: some(list),
    anyOf: some(list),
    oneOf: some(list),
    not: some(schema),
    if: some(schema),
    enum: some(fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 })),
    const: fc.oneof(scalar, junk),
    default: fc.oneof(scalar, junk),
    format: some(fc.constantFrom('email', 'uri', 'int32')),
    pattern: some(fc.constant('^a')),
    minimum: some(fc.integer()),
    exclusiveMinimum: some(fc.oneof(fc.integer(), fc.boolean())),
    minItems: some(fc.nat(3)),
    maxLength: some(fc.nat(3)),
    dependencies: some(fc.dictionary(name, fc.oneof(schema, fc.array(name)), { maxKeys: 2 })),
    nullable: fc.boolean(),
    title: some(fc.constant('T')),
    description: some(fc.constant('D')),
    'x-own': fc.oneof(junk, fc.constant({ $ref: 'https://example.com/x' })),
    $ref: fc.constantFrom(...REFS),
    $anchor: fc.constant('here'),
    $id: fc.constantFrom('https://example.com/x', 'y', '#here'),
    $defs: map,
    definitions: map,
  }
  const word = fc
    .constantFrom(...Object.keys(words))
    .chain((keyword) => fc.tuple(fc.constant(keyword), words[keyword] as fc.Arbitrary<unknown>))
  return {
    schema: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'schema' },
      { weight: 1, arbitrary: fc.boolean() },
      { weight: 8, arbitrary: fc.array(word, { maxLength: 6 }).map((entries) => Object.fromEntries(entries)) },
    ),
  }
})
/** Through JSON, as a tool's schema holds no object twice. */
const root = schemaArbitrary.map(
  (schema) =>
    JSON.parse(
      JSON.stringify({ $defs: { a: { type: 'string' } }, ...(isObject(schema) ? schema : {}), type: 'object' }),
    ) as JsonSchema,
)

describe('writeSchema, for any schema and target', () => {
  it('returns a schema or the reason why not', () => {
    each((raw, dialect) => {
      const schema = tryWrite(raw, dialect)
      if (dialect.objectRoot && schema) assert.equal(String(schema['type']).toLowerCase(), 'object')
    })
  })

  it('leaves no keyword that the target lacks', () => {
    each((raw, dialect) => {
      const schema = tryWrite(raw, dialect)
      if (schema) visit(schema, (inner, atRoot) => checkKeywords(inner, dialect, atRoot))
    })
  })

  it('leaves no reference that leads outside or nowhere', () => {
    each((raw, dialect) => {
      const schema = tryWrite(raw, dialect)
      if (!schema) return
      const names = Object.keys(schema['$defs'] ?? {})
      visit(schema, ({ $ref }) => {
        if ($ref !== undefined) assert.ok(['#', ...names.map((one) => `#/$defs/${one}`)].includes($ref as string))
      })
    })
  })

  it('returns the same bytes and notes for every order of keys', () => {
    each((raw, dialect) => {
      assert.equal(textOf(raw, dialect), textOf(reversed(raw) as JsonSchema, dialect))
    })
  })
})

function each(check: (raw: JsonSchema, dialect: dialects.TargetDialect) => void): void {
  fc.assert(fc.property(root, fc.constantFrom(...DIALECTS), check), RUNS)
}

function tryWrite(raw: JsonSchema, dialect: dialects.TargetDialect): JsonSchema | undefined {
  try {
    return writeSchema(raw, dialect).schema
  } catch (error) {
    if (error instanceof SchemaProblem) return undefined
    throw error
  }
}

function textOf(raw: JsonSchema, dialect: dialects.TargetDialect): string {
  try {
    return JSON.stringify(writeSchema(raw, dialect))
  } catch (error) {
    return String(error)
  }
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, reversed(item)]),
  )
}

/** Walks the schemas of a schema as written, never its data. */
function visit(value: unknown, check: (schema: JsonSchema, atRoot: boolean) => void, atRoot = true): void {
  if (!isObject(value)) return
  check(value, atRoot)
  for (const [keyword, word] of Object.entries(value)) {
    const shape = keyword === '$defs' ? 'schema-map' : KEYWORDS.get(keyword)
    if (shape === 'schema' || shape === 'schema-or-flag') visit(word, check, false)
    if (shape === 'schemas') for (const item of word as unknown[]) visit(item, check, false)
    if (shape === 'schema-map') for (const item of Object.values(word as object)) visit(item, check, false)
  }
}

function checkKeywords(schema: JsonSchema, dialect: dialects.TargetDialect, atRoot: boolean): void {
  for (const keyword of Object.keys(schema)) {
    if (keyword !== '$defs') assert.ok(dialects.takes(dialect, keyword, atRoot), `${keyword} for ${dialect.name}`)
  }
  const types = [schema['type'] ?? []].flat() as string[]
  if (dialect.bareRefs && '$ref' in schema) assert.deepEqual(Object.keys(schema), ['$ref'])
  if (dialect.bareAnyOf && 'anyOf' in schema) assert.equal('type' in schema || 'properties' in schema, false)
  if (dialect.unions !== 'type-list') assert.ok(types.length <= 1)
  if (dialect.closed && types.includes('object')) assert.equal(schema['additionalProperties'], false)
  if (dialect.allRequired && types.includes('object'))
    assert.deepEqual(schema['required'], Object.keys(schema['properties'] as object))
  if (dialect.typed)
    assert.ok(
      ['type', 'anyOf', '$ref', 'enum', 'const'].some((keyword) => keyword in schema),
      JSON.stringify(schema),
    )
  if (dialect.typed && types.some((type) => type.toLowerCase() === 'array')) assert.ok(isObject(schema['items']))
}
