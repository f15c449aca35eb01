import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonSchema } from '@toolgate/core'
import {
  ANTHROPIC_STRICT,
  ANY,
  BEDROCK_STRICT,
  type TargetDialect,
  FRAMEWORK,
  GEMINI,
  GEMINI_OPENAPI,
  OPENAI,
  OPENAI_STRICT,
} from './dialect.ts'
import { SchemaProblem } from './node.ts'
import { writeSchema } from './writer.ts'

interface Row {
  readonly shows: string
  readonly dialect: TargetDialect
  /** The schema of the parameter `x`, which is required. */
  readonly from: unknown
  readonly to: unknown
  /** `path feature action`, below the parameter. */
  readonly notes?: readonly string[]
  readonly defs?: JsonSchema
}

const ROWS: readonly Row[] = [
  // OpenAI answers a whole request with 400 for one list without `items`.
  {
    shows: 'a list without items says that it takes any',
    dialect: OPENAI,
    from: { type: 'array' },
    to: { type: 'array', items: {} },
    notes: [' items rewritten'],
  },
  {
    shows: 'a list among other types, of a tuple, and below another',
    dialect: OPENAI,
    from: {
      type: ['array', 'null'],
      prefixItems: [{ type: 'array' }, { type: 'object', additionalProperties: { type: 'array', items: true } }],
    },
    to: {
      type: ['array', 'null'],
      prefixItems: [
        { type: 'array', items: {} },
        { type: 'object', additionalProperties: { type: 'array', items: {} } },
      ],
      items: {},
    },
    notes: [
      ' items rewritten',
      '/prefixItems/0 items rewritten',
      '/prefixItems/1/additionalProperties items rewritten',
    ],
  },
  {
    shows: 'a list without items, as OpenAI may be behind a framework',
    dialect: FRAMEWORK,
    from: { type: 'array' },
    to: { type: 'array', items: {} },
    notes: [' items rewritten'],
  },
  {
    shows: 'a list without items stays where that is allowed',
    dialect: ANY,
    from: { type: 'array' },
    to: { type: 'array' },
  },
  // What every target takes, spelt in 2020-12.
  {
    shows: 'draft-07 tuples',
    dialect: ANY,
    from: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
    to: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
  },
  {
    shows: 'draft-04 exclusive bounds',
    dialect: ANY,
    from: { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
    to: { type: 'number', exclusiveMinimum: 0, maximum: 9 },
  },
  {
    shows: 'draft-07 dependencies',
    dialect: ANY,
    from: { dependencies: { a: ['b'], c: { required: ['d'] } } },
    to: { dependentRequired: { a: ['b'] }, dependentSchemas: { c: { required: ['d'] } } },
  },
  { shows: 'boolean schemas', dialect: ANY, from: false, to: { not: {} } },
  { shows: 'unknown keywords', dialect: ANY, from: { 'x-mcp-header': 'X' }, to: { 'x-mcp-header': 'X' } },
  {
    shows: 'an unknown keyword with a reference in it goes',
    dialect: ANY,
    from: { 'x-other': { $ref: 'https://example.com/a.json' } },
    to: {},
    notes: ['/x-other x-other removed'],
  },
  {
    shows: 'what is no schema goes',
    dialect: ANY,
    from: { type: 'str', properties: 5, enum: [], minLength: -1, pattern: '(' },
    to: {},
    notes: [
      '/type type removed',
      '/properties properties removed',
      '/enum enum removed',
      '/minLength minLength removed',
      '/pattern pattern removed',
    ],
  },
  {
    shows: 'nullable of OpenAPI',
    dialect: ANY,
    from: { type: 'string', nullable: true },
    to: { type: ['string', 'null'] },
  },
  {
    shows: 'a reference to a definition',
    dialect: ANY,
    defs: { definitions: { name: { type: 'string' } } },
    from: { $ref: '#/definitions/name', description: 'd' },
    to: { $ref: '#/$defs/name', description: 'd' },
  },
  {
    shows: 'a reference to an anchor',
    dialect: ANY,
    defs: { $defs: { deep: { items: { $anchor: 'here', type: 'string' } } } },
    from: { $ref: '#here' },
    to: { $ref: '#/$defs/items' },
  },
  {
    shows: 'a reference to an `id` that is an anchor, as in draft-04',
    dialect: ANY,
    defs: { definitions: { deep: { id: '#here', type: 'string' } } },
    from: { $ref: '#here' },
    to: { $ref: '#/$defs/deep' },
  },
  {
    shows: 'a reference to an `$id` that the schema itself has',
    dialect: ANY,
    defs: { $defs: { item: { $id: 'item.json', type: 'string' } } },
    from: { $ref: 'item.json' },
    to: { $ref: '#/$defs/item' },
  },
  // OpenAI's strict mode.
  {
    shows: 'constraints move into the description',
    dialect: OPENAI_STRICT,
    from: { type: 'string', description: 'A name.', minLength: 1, pattern: '^a', format: 'uri', default: 'a' },
    to: { type: 'string', description: 'A name.\n\n{format: "uri", default: "a", minLength: 1}', pattern: '^a' },
    notes: ['/format format described', '/default default described', '/minLength minLength described'],
  },
  {
    shows: 'optional properties may be null',
    dialect: OPENAI_STRICT,
    from: {
      type: 'object',
      properties: {
        a: { enum: ['x'] },
        b: { const: 1 },
        c: { type: ['string', 'null'] },
        d: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
      },
    },
    to: {
      type: 'object',
      properties: {
        a: { type: ['string', 'null'], enum: ['x', null] },
        b: { type: ['number', 'null'], enum: [1, null] },
        c: { type: ['string', 'null'] },
        d: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }] },
      },
      required: ['a', 'b', 'c', 'd'],
      additionalProperties: false,
    },
    notes: ['a', 'b', 'c', 'd'].map((name) => `/properties/${name} optional rewritten`),
  },
  {
    shows: 'open objects are closed',
    dialect: OPENAI_STRICT,
    from: { type: 'object', additionalProperties: { type: 'string' } },
    to: { type: 'object', properties: {}, required: [], additionalProperties: false },
    notes: ['/additionalProperties additionalProperties rewritten'],
  },
  {
    shows: 'any value becomes any scalar',
    dialect: OPENAI_STRICT,
    from: {},
    to: { type: ['string', 'number', 'boolean', 'null'] },
    notes: [' type rewritten'],
  },
  {
    shows: 'allOf becomes one schema, each constraint the tighter',
    dialect: OPENAI_STRICT,
    from: {
      allOf: [
        { type: 'number', minimum: 1 },
        { type: 'integer', minimum: 2, maximum: 9 },
      ],
    },
    to: { type: 'integer', minimum: 2, maximum: 9 },
    notes: ['/allOf allOf rewritten'],
  },
  {
    shows: 'what contradicts in an allOf goes',
    dialect: OPENAI_STRICT,
    from: { allOf: [{ type: 'string', pattern: 'a' }, { pattern: 'b' }] },
    to: { type: 'string', pattern: 'a' },
    notes: ['/allOf/1/pattern pattern removed', '/allOf allOf rewritten'],
  },
  {
    shows: 'oneOf becomes anyOf, and what stands beside it goes into its branches',
    dialect: OPENAI_STRICT,
    from: {
      type: 'object',
      properties: { a: { type: 'string' } },
      oneOf: [{ required: ['a'] }, { required: ['b'], properties: { b: { type: 'null' } } }],
    },
    to: {
      anyOf: [
        { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
        {
          type: 'object',
          properties: { a: { type: ['string', 'null'] }, b: { type: 'null' } },
          required: ['a', 'b'],
          additionalProperties: false,
        },
      ],
    },
    notes: ['/oneOf oneOf rewritten', '/anyOf anyOf rewritten', '/oneOf/1/properties/a optional rewritten'],
  },
  {
    shows: 'tuples become lists',
    dialect: OPENAI_STRICT,
    from: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'string' }], items: false },
    to: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    notes: ['/prefixItems prefixItems rewritten'],
  },
  {
    shows: 'conditions move into the description',
    dialect: OPENAI_STRICT,
    from: { type: 'string', not: { const: 'a' }, if: { minLength: 2 } },
    to: { type: 'string', description: '{if: {"minLength":2}, not: {"const":"a"}}' },
    notes: ['/not not described', '/if if described'],
  },
  {
    shows: 'a property that is required and not declared is declared',
    dialect: OPENAI_STRICT,
    from: { type: 'object', required: ['a'] },
    to: {
      type: 'object',
      properties: { a: { type: ['string', 'number', 'boolean', 'null'] } },
      required: ['a'],
      additionalProperties: false,
    },
    notes: [' additionalProperties rewritten', '/required required rewritten', '/required type rewritten'],
  },
  // Anthropic's strict mode.
  {
    shows: 'optional properties stay so',
    dialect: ANTHROPIC_STRICT,
    from: { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } },
    to: {
      type: 'object',
      properties: { a: { type: 'integer', description: '{minimum: 1}' } },
      additionalProperties: false,
    },
    notes: ['/properties/a/minimum minimum described'],
  },
  {
    shows: 'a list of types becomes anyOf, each with what speaks of it',
    dialect: ANTHROPIC_STRICT,
    from: { type: ['string', 'array'], format: 'email', items: { type: 'string' }, minItems: 1 },
    to: {
      anyOf: [
        { type: 'string', format: 'email' },
        { type: 'array', items: { type: 'string' }, minItems: 1 },
      ],
    },
    notes: ['/type type rewritten'],
  },
  {
    shows: 'listed values have no type',
    dialect: ANTHROPIC_STRICT,
    from: { type: 'string', enum: ['a', 1] },
    to: { enum: ['a'] },
  },
  // Gemini.
  {
    shows: 'exclusive bounds of integers are exact',
    dialect: GEMINI,
    from: { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10 },
    to: { type: 'integer', minimum: 1, maximum: 9 },
    notes: ['/exclusiveMinimum exclusiveMinimum rewritten', '/exclusiveMaximum exclusiveMaximum rewritten'],
  },
  {
    shows: 'exclusive bounds of other numbers let the bound in',
    dialect: GEMINI,
    from: { type: 'number', exclusiveMinimum: 0.5 },
    to: { type: 'number', minimum: 0.5 },
    notes: ['/exclusiveMinimum exclusiveMinimum rewritten'],
  },
  {
    shows: 'const becomes enum',
    dialect: GEMINI,
    from: { const: 'a' },
    to: { type: 'string', enum: ['a'] },
    notes: ['/const const rewritten'],
  },
  // Gemini's OpenAPI form.
  {
    shows: 'null is said beside the type',
    dialect: GEMINI_OPENAPI,
    from: { type: ['string', 'null'], enum: ['a', null], maxLength: 3 },
    to: { type: 'STRING', nullable: true, enum: ['a'], maxLength: '3' },
    notes: ['/type type rewritten'],
  },
  {
    shows: 'null is no branch',
    dialect: GEMINI_OPENAPI,
    from: { anyOf: [{ type: 'null' }, { type: 'array', items: { type: 'integer' } }] },
    to: { type: 'ARRAY', nullable: true, items: { type: 'INTEGER' } },
    notes: ['/anyOf type rewritten'],
  },
  {
    shows: 'numbers are listed as texts',
    dialect: GEMINI_OPENAPI,
    from: { type: 'integer', enum: [1, 2] },
    to: { type: 'INTEGER', format: 'enum', enum: ['1', '2'] },
    notes: ['/enum enum rewritten'],
  },
  {
    shows: 'references are written out',
    dialect: GEMINI_OPENAPI,
    defs: { $defs: { name: { type: 'string' } } },
    from: { $ref: '#/$defs/name', description: 'd' },
    to: { type: 'STRING', description: 'd' },
    notes: ['/$ref $ref rewritten'],
  },
]

const at = (path: string) => (path.startsWith('/properties/x') ? path.slice('/properties/x'.length) : path)
const nodeDefs = {
  $defs: { node: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/$defs/node' } } } } },
}
const written = (dialect: TargetDialect, x: unknown, defs: JsonSchema = {}) =>
  writeSchema({ type: 'object', properties: { x }, required: ['x'], ...defs }, dialect)

describe('writeSchema', () => {
  it('writes a bigint as a number, since the SDKs of providers write no bigints', () => {
    const schema = { type: 'object', properties: { id: { type: 'integer', maximum: 2n ** 63n - 1n } } }
    assert.match(JSON.stringify(written(BEDROCK_STRICT, schema)), /9223372036854775807|9223372036854776000/)
  })

  for (const { shows, dialect, from, to, notes = [], defs } of ROWS) {
    it(`for ${dialect.name}: ${shows}`, () => {
      const { schema, notes: noted } = written(dialect, from, defs)
      assert.deepEqual((schema['properties'] as JsonSchema)['x'], to)
      assert.deepEqual(
        noted.map(({ path, feature, action }) => `${at(path)} ${feature} ${action}`).toSorted(),
        notes.toSorted(),
      )
    })
  }

  it('keeps recursive references, if the target has definitions', () => {
    const { schema, notes } = written(ANY, { $ref: '#/$defs/node' }, nodeDefs)
    assert.deepEqual(schema, {
      type: 'object',
      properties: { x: { $ref: '#/$defs/node' } },
      required: ['x'],
      ...nodeDefs,
    })
    assert.deepEqual(notes, [])
  })

  it('cuts recursive references, if it has none', () => {
    const { schema, notes } = written(GEMINI_OPENAPI, { $ref: '#/$defs/node' }, nodeDefs)
    assert.deepEqual((schema['properties'] as JsonSchema)['x'], {
      type: 'OBJECT',
      properties: { kids: { type: 'ARRAY', items: { type: 'OBJECT' } } },
    })
    assert.deepEqual(
      notes.find(({ action }) => action === 'removed'),
      {
        path: '/$defs/node/properties/kids/items/$ref',
        feature: '$ref',
        from: '"#/$defs/node"',
        to: 'type: ["object"]',
        action: 'removed',
      },
    )
  })

  it('cuts it also in the strict mode of Bedrock', () => {
    assert.doesNotMatch(JSON.stringify(written(BEDROCK_STRICT, { $ref: '#/$defs/node' }, nodeDefs)), /"\$ref":"/)
  })

  it('keeps it for Gemini where a property that is not required leads to it, and writes it out elsewhere', () => {
    const { schema } = written(GEMINI, { $ref: '#/$defs/node' }, nodeDefs)
    assert.deepEqual((schema['properties'] as JsonSchema)['x'], {
      type: 'object',
      properties: { kids: { type: 'array', items: { $ref: '#/$defs/node' } } },
    })
  })

  it('keeps the root that refers to itself', () => {
    const root = { type: 'object', properties: { inner: { $ref: '#' } } }
    assert.deepEqual(writeSchema(root, ANY).schema, root)
  })

  it('gives different names to different definitions with one name', () => {
    const raw = {
      properties: { a: { $ref: '#/properties/b/$defs/d' }, b: { $defs: { d: { type: 'string' } }, $ref: '#/$defs/d' } },
      $defs: { d: { type: 'number' } },
    }
    const { schema } = writeSchema(raw, ANY)
    assert.deepEqual(schema['properties'], { a: { $ref: '#/$defs/d' }, b: { $ref: '#/$defs/d_2' } })
    assert.deepEqual(schema['$defs'], { d: { type: 'string' }, d_2: { type: 'number' } })
  })

  it('makes a root of several objects one, with the properties of all', () => {
    const { schema, notes } = writeSchema(
      {
        oneOf: [
          { properties: { kind: { const: 'a' }, a: { type: 'string' } }, required: ['kind', 'a'] },
          { properties: { kind: { const: 'b' } }, required: ['kind'] },
        ],
      },
      OPENAI,
    )
    assert.deepEqual(schema, {
      type: 'object',
      properties: { a: { type: 'string' }, kind: { anyOf: [{ const: 'a' }, { const: 'b' }] } },
      required: ['kind'],
    })
    assert.deepEqual(notes, [
      {
        path: '/oneOf',
        feature: 'oneOf',
        from: 'oneOf of 2',
        to: 'one object with the properties of all',
        action: 'rewritten',
      },
    ])
  })

  it('keeps a root of several objects where the target takes it', () => {
    const root = { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] }
    assert.deepEqual(writeSchema(root, ANY).schema, root)
  })

  it('replaces a root that is a reference by its target', () => {
    assert.deepEqual(
      writeSchema({ $ref: '#/$defs/in', $defs: { in: { type: 'object', title: 'T' } } }, OPENAI).schema,
      {
        type: 'object',
        title: 'T',
      },
    )
  })

  const problems: readonly (readonly [string, JsonSchema, string])[] = [
    ['a reference that leads elsewhere', { $ref: 'https://example.com/a.json' }, 'remote_ref'],
    ['a reference that leads nowhere', { $ref: '#/$defs/none' }, 'unresolved_ref'],
    ['a reference that is none', { $ref: 'http://[' }, 'unresolved_ref'],
    [
      'references in a circle',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
      'unresolved_ref',
    ],
    ['a root that is no object', { type: 'string' }, 'schema_unusable'],
  ]
  for (const [shows, schema, code] of problems) {
    it(`refuses ${shows}`, () => {
      assert.throws(
        () => writeSchema(schema, GEMINI),
        (error) => error instanceof SchemaProblem && error.code === code,
      )
    })
  }

  it('refuses references that double a schema at every step', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, i) => [
        `d${i}`,
        { type: 'object', properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } } },
      ]),
    )
    assert.throws(
      () => writeSchema({ $ref: '#/$defs/d0', $defs: { ...$defs, d30: { type: 'string' } } }, GEMINI_OPENAPI),
      (error) => error instanceof SchemaProblem && error.code === 'schema_too_large',
    )
  })
})
