import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { findSchemaProblem, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH } from './schema.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false })

const usable: readonly (readonly [what: string, schema: object])[] = [
  ['an empty schema', {}],
  ['true and false for a schema', { properties: { a: true, b: false }, additionalProperties: false }],
  ['several types', { type: ['string', 'null'] }],
  ['names that objects inherit', { properties: { constructor: { type: 'string' } }, required: ['toString'] }],
  [
    'every kind of part',
    { if: {}, else: {}, not: {}, anyOf: [{}], prefixItems: [{}], dependentRequired: { a: ['b'] } },
  ],
  ['keywords of others', { type: 'object', 'x-order': 1, nullable: true, example: {} }],
  ['data that looks like a reference', { default: { $ref: 'http://x' }, const: { $ref: 7 }, enum: [{ type: 'no' }] }],
  ['a property that is named $ref', { properties: { $ref: { type: 'string' } } }],
  ['a reference to itself', { properties: { child: { $ref: '#' } } }],
  ['a reference into $defs', { $ref: '#/$defs/node', $defs: { node: { items: { $ref: '#/$defs/node' } } } }],
  ['a reference with escapes', { $ref: '#/$defs/a~1b~0c%25', $defs: { 'a/b~c%': {} } }],
  ['a reference to an anchor', { $ref: '#node', $defs: { node: { $anchor: 'node' } } }],
  ['a reference to its own $id', { $id: 'T0', properties: { child: { $ref: 'T0' } } }],
  [
    'references to an $id inside it',
    { $id: 'https://x/a/b', $ref: 'c#/$defs/y', $defs: { x: { $id: 'c', $defs: { y: {} } } } },
  ],
  ['a schema with an $id in another', { $defs: { x: { $id: 'x', $ref: '#/$defs/y', $defs: { y: {} } } } }],
]

const unusable: readonly (readonly [schema: object, pointer: string, message: RegExp])[] = [
  [{ type: 'text' }, '/type', /must be one of null, boolean/],
  [{ $ref: '#/x-shared', 'x-shared': { maxLength: '5' } }, '/$ref/maxLength', /whole number/],
  [{ $ref: '#/x-a', 'x-a': { $ref: '#/x-b' }, 'x-b': { required: 'a' } }, '/$ref/$ref/required', /different names/],
  [{ type: ['string', 'string'] }, '/type', /must be one of/],
  [{ type: [] }, '/type', /must be one of/],
  [{ type: 'constructor' }, '/type', /must be one of/],
  [{ properties: [] }, '/properties', /must be an object of schemas/],
  [{ properties: { a: 'string' } }, '/properties/a', /must be a schema/],
  [{ properties: { 'a/b~': null } }, '/properties/a~1b~0', /must be a schema/],
  [{ required: 'a' }, '/required', /list of different names/],
  [{ required: ['a', 'a'] }, '/required', /list of different names/],
  [{ properties: { a: { required: true } } }, '/properties/a/required', /list of different names/],
  [{ anyOf: [] }, '/anyOf', /list of schemas that is not empty/],
  [{ anyOf: {} }, '/anyOf', /list of schemas/],
  [{ oneOf: [{}, 7] }, '/oneOf/1', /must be a schema/],
  [{ items: 'string' }, '/items', /must be a schema/],
  [{ enum: 'a' }, '/enum', /must be a list/],
  [{ minLength: -1 }, '/minLength', /whole number/],
  [{ maxItems: 1.5 }, '/maxItems', /whole number/],
  [{ minimum: '1' }, '/minimum', /must be a number/],
  [{ exclusiveMinimum: 'yes' }, '/exclusiveMinimum', /must be a number/],
  [{ multipleOf: 0 }, '/multipleOf', /above 0/],
  [{ pattern: 7 }, '/pattern', /must be a string/],
  [{ uniqueItems: 'yes' }, '/uniqueItems', /true or false/],
  [{ dependentRequired: { a: 'b' } }, '/dependentRequired/a', /list of different names/],
  [{ $ref: 7 }, '/$ref', /must be a string/],
]

const strayReferences: readonly (readonly [schema: object, pointer: string, message: RegExp])[] = [
  [{ $ref: 'http://127.0.0.1/schema' }, '/$ref', /outside this schema/],
  [{ $ref: 'other.json#/x' }, '/$ref', /"other.json#\/x", outside this schema/],
  [{ $ref: 'file:///etc/passwd' }, '/$ref', /outside this schema/],
  [{ $ref: '' }, '/$ref', /outside this schema/],
  [{ $ref: ' #' }, '/$ref', /outside this schema/],
  [{ anyOf: [{ items: { $ref: '//x' } }] }, '/anyOf/0/items/$ref', /outside this schema/],
  [{ $defs: { unused: { $ref: 'https://x' } } }, '/$defs/unused/$ref', /outside this schema/],
  [{ $dynamicRef: 'https://x#node' }, '/$dynamicRef', /outside this schema/],
  [{ $ref: '#/$defs/none' }, '/$ref', /not in this schema/],
  [{ $ref: '#/constructor', $defs: {} }, '/$ref', /not in this schema/],
  [{ $ref: '#/__proto__' }, '/$ref', /not in this schema/],
  [{ $ref: '#/type', type: 'object' }, '/$ref', /not in this schema/],
  [{ $ref: '#none' }, '/$ref', /not in this schema/],
  [{ $ref: '#%zz' }, '/$ref', /not in this schema/],
  [{ $defs: { x: { $id: 'x', $ref: '#/$defs/y' }, y: {} } }, '/$defs/x/$ref', /not in this schema/],
  [{ $ref: 'x', default: { $id: 'x' } }, '/$ref', /outside this schema/],
  [{ $ref: '#x', enum: [{ $anchor: 'x' }] }, '/$ref', /not in this schema/],
  [{ $id: 'x', $ref: 'x#/$defs/none' }, '/$ref', /outside this schema/],
]

describe('findSchemaProblem', () => {
  for (const [what, schema] of usable) {
    it(`takes ${what}, as ajv does`, () => {
      assert.equal(findSchemaProblem(schema), undefined)
      assert.ok(ajv.compile(schema))
    })
  }

  for (const [schema, pointer, message] of unusable) {
    it(`refuses ${JSON.stringify(schema)}, as ajv does`, () => {
      const problem = findSchemaProblem(schema)
      assert.equal(problem?.pointer, pointer)
      assert.match(problem?.message ?? '', message)
      assert.throws(() => ajv.compile(schema))
    })
  }

  for (const [schema, pointer, message] of strayReferences) {
    it(`refuses the reference of ${JSON.stringify(schema)}`, () => {
      const problem = findSchemaProblem(schema)
      assert.equal(problem?.pointer, pointer)
      assert.match(problem?.message ?? '', message)
    })
  }

  it('takes an empty `enum`, which no value passes, and references to the meta-schemas of drafts', () => {
    assert.equal(findSchemaProblem({ enum: [] }), undefined)
    for (const draft of ['draft-04', 'draft-06', 'draft-07', 'draft/2019-09', 'draft/2020-12'])
      for (const $ref of [`http://json-schema.org/${draft}/schema#`, `https://json-schema.org/${draft}/schema`])
        assert.equal(findSchemaProblem({ properties: { schema: { $ref } } }), undefined, $ref)
    for (const $ref of ['https://json-schema.org/draft/2020-12/meta/core', 'https://json-schema.org/schema'])
      assert.equal(findSchemaProblem({ $ref }), undefined, $ref)
    for (const $ref of ['http://json-schema.org/draft-07/schema#/none', 'https://json-schema.org/draft/2020-12/meta/x'])
      assert.equal(findSchemaProblem({ $ref })?.pointer, '/$ref', $ref)
  })

  it('takes a list for `items` where $schema says draft-07', () => {
    const $schema = 'http://json-schema.org/draft-07/schema#'
    assert.equal(findSchemaProblem({ $schema, items: [{ type: 'string' }] }), undefined)
    assert.match(findSchemaProblem({ $schema, items: [] })?.message ?? '', /not empty/)
    assert.equal(findSchemaProblem({ $schema, items: [{ type: 'text' }] })?.pointer, '/items/0/type')
  })

  it('takes older forms of keywords where no $schema is named, and not beside a newer one', () => {
    const $schema = 'https://json-schema.org/draft/2020-12/schema'
    for (const schema of [{ items: [{}] }, { minimum: 1, exclusiveMinimum: true }]) {
      assert.equal(findSchemaProblem(schema), undefined)
      assert.notEqual(findSchemaProblem({ $schema, ...schema }), undefined)
    }
  })

  it('takes 32 levels of schemas and no more, by whatever keyword they nest', () => {
    const nests: readonly ((inner: object) => object)[] = [
      (inner) => ({ properties: { a: inner } }),
      (inner) => ({ items: inner }),
      (inner) => ({ anyOf: [inner] }),
      (inner) => ({ $defs: { a: inner } }),
      (inner) => ({ not: inner }),
    ]
    for (const nest of nests) {
      const levels = (count: number) => Array.from({ length: count - 1 }).reduce<object>(nest, {})
      assert.equal(findSchemaProblem(levels(MAX_SCHEMA_DEPTH)), undefined)
      assert.match(findSchemaProblem(levels(MAX_SCHEMA_DEPTH + 1))?.message ?? '', /more than 32 levels/)
    }
  })

  it('takes 64 KiB of UTF-8 and no more', () => {
    const empty = JSON.stringify({ description: '' }).length
    const filled = (bytes: number) => ({ description: `é${'x'.repeat(bytes - empty - 2)}` })
    assert.equal(findSchemaProblem(filled(MAX_SCHEMA_BYTES)), undefined)
    assert.match(findSchemaProblem(filled(MAX_SCHEMA_BYTES + 1))?.message ?? '', /has 65537 bytes/)
  })

  it('finds its way through thousands of references to anchors at once', () => {
    const properties = Object.fromEntries(Array.from({ length: 2500 }, (_, i) => [`p${i}`, { $ref: '#a' }]))
    assert.equal(findSchemaProblem({ properties, $defs: { a: { $anchor: 'a' } } }), undefined)
  })
})
