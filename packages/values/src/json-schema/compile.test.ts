/* oxlint-disable unicorn/no-thenable -- `then` is a keyword of JSON Schema */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createValidator } from '@toolgate/core/call'
import { findSchemaProblem } from '../../../core/src/tools/schema.ts'
import { HOSTILE_CALLS } from '../../../testing/support/hostile-inputs.ts'

const validate = createValidator()
const D04 = 'http://json-schema.org/draft-04/schema#'
const D06 = 'http://json-schema.org/draft-06/schema#'
const D07 = 'http://json-schema.org/draft-07/schema#'
const D19 = 'https://json-schema.org/draft/2019-09/schema'

type Row = readonly [what: string, schema: object, valid: readonly unknown[], invalid: readonly unknown[]]

const TABLE: readonly Row[] = [
  ['contains', { contains: { const: 1 } }, [[1], [2, 1], 'x'], [[], [2]]],
  [
    'minContains',
    { contains: { const: 1 }, minContains: 2 },
    [
      [1, 1],
      [1, 2, 1],
    ],
    [[1], []],
  ],
  ['minContains of 0', { contains: { const: 1 }, minContains: 0 }, [[], [2], [1]], []],
  ['maxContains', { contains: { const: 1 }, maxContains: 1 }, [[1], [1, 2]], [[], [1, 1]]],
  ['maxContains in draft-07, which has none', { $schema: D07, contains: { const: 1 }, maxContains: 1 }, [[1, 1]], [[]]],
  ['contains in draft-04, which has none', { $schema: D04, contains: { const: 1 } }, [[], [2]], []],
  [
    'a limit that draft-04 excludes',
    { $schema: D04, maximum: 3, exclusiveMaximum: true, minimum: 1 },
    [1, 2.9, 'x'],
    [3, 0],
  ],
  ['a limit that draft-04 excludes, from below', { $schema: D04, minimum: 3, exclusiveMinimum: true }, [3.1], [3]],
  [
    'ids of draft-04',
    { $schema: D04, $ref: '#/definitions/x', definitions: { x: { id: '#x', type: 'string' } } },
    ['a'],
    [1],
  ],
  [
    'a reference to an id of draft-04',
    { $schema: D04, $ref: '#x', definitions: { y: { id: '#x', type: 'string' } } },
    ['a'],
    [1],
  ],
  ['const in draft-04, which has none', { $schema: D04, const: 1 }, [1, 2], []],
  ['draft-06', { $schema: D06, exclusiveMinimum: 1, propertyNames: { pattern: '^a' } }, [2, { ab: 1 }], [1, { b: 1 }]],
  ['if in draft-06, which has none', { $schema: D06, if: true, then: false }, [1], []],
  [
    'a list of items before 2020-12',
    { $schema: D19, items: [{ type: 'string' }], additionalItems: false },
    [['a'], []],
    [[1], ['a', 'b']],
  ],
  [
    'prefixItems',
    { prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    [['a', 1], ['a']],
    [[1], ['a', 'b']],
  ],
  [
    'dependencies of both kinds',
    { $schema: D07, dependencies: { a: ['b'], c: { required: ['d'] } } },
    [{ a: 1, b: 1 }, { c: 1, d: 1 }, {}],
    [{ a: 1 }, { c: 1 }],
  ],
  ['dependentSchemas', { dependentSchemas: { a: { required: ['b'] } } }, [{ a: 1, b: 1 }, {}], [{ a: 1 }]],
  ['if, then and else', { if: { const: 1 }, then: { type: 'number' }, else: { type: 'string' } }, [1, 'x'], [2]],
  ['multipleOf a fraction', { multipleOf: 0.01 }, [19.99, 0.07, 1e15], [19.995, 0.001]],
  ['multipleOf with large numbers', { multipleOf: 1 }, [1e12], [1e12 + 0.5]],
  ['nullable of OpenAPI', { type: 'string', nullable: true }, ['a', null], [1]],
  ['nullable without a type', { nullable: true, maxLength: 2 }, [null, 'ab'], ['abc']],
  ['lengths in code points', { minLength: 2, maxLength: 2 }, ['😀😀', 'ab'], ['😀', 'abc', '😀😀😀']],
  ['enum of objects', { enum: [{ a: [1] }, 'x', 2] }, [{ a: [1] }, 'x', 2], [{ a: [2] }, { a: [1], b: 1 }, '2', null]],
  [
    'names that objects inherit',
    { properties: { toString: { type: 'number' } }, required: ['a'] },
    [{ a: 1 }, { a: 1, toString: 2 }],
    [{}, { a: 1, toString: 'x' }],
  ],
  [
    'unevaluatedProperties beside properties',
    { properties: { a: true }, unevaluatedProperties: false },
    [{ a: 1 }, {}, 7],
    [{ b: 1 }],
  ],
  [
    'unevaluatedProperties over allOf',
    { allOf: [{ properties: { a: true } }, { properties: { b: true } }], unevaluatedProperties: false },
    [{ a: 1, b: 1 }],
    [{ c: 1 }],
  ],
  [
    'unevaluatedProperties over the branches that pass',
    {
      anyOf: [
        { properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { b: true }, required: ['b'] },
      ],
      unevaluatedProperties: false,
    },
    [{ a: 'x' }, { b: 1 }, { a: 'x', b: 1 }],
    [
      { a: 1, b: 1 },
      { a: 'x', c: 1 },
    ],
  ],
  [
    'unevaluatedProperties over if, without then',
    {
      if: { properties: { a: { const: 1 } }, required: ['a'] },
      else: { properties: { b: true } },
      unevaluatedProperties: false,
    },
    [{ a: 1 }, { b: 1 }],
    [{ a: 1, b: 1 }, { a: 2 }],
  ],
  [
    'unevaluatedProperties over $ref',
    { $ref: '#/$defs/x', unevaluatedProperties: false, $defs: { x: { properties: { a: true } } } },
    [{ a: 1 }],
    [{ b: 1 }],
  ],
  [
    'unevaluatedProperties over not',
    { not: { not: { properties: { a: true }, required: ['a'] } }, unevaluatedProperties: false },
    [],
    [{ a: 1 }],
  ],
  [
    'unevaluatedProperties behind additionalProperties',
    { additionalProperties: { type: 'number' }, unevaluatedProperties: false },
    [{ a: 1 }],
    [{ a: 'x' }],
  ],
  [
    'unevaluatedProperties inside allOf',
    { allOf: [{ unevaluatedProperties: true }], unevaluatedProperties: false },
    [{ a: 1 }],
    [],
  ],
  [
    'unevaluatedProperties that do not see their cousins',
    { allOf: [{ properties: { a: true } }, { unevaluatedProperties: false }] },
    [{}],
    [{ a: 1 }],
  ],
  ['unevaluatedItems', { prefixItems: [{ type: 'string' }], unevaluatedItems: false }, [['a'], [], 'x'], [['a', 1]]],
  [
    'unevaluatedItems behind contains',
    { contains: { type: 'string' }, unevaluatedItems: { type: 'number' } },
    [['a', 1]],
    [['a', true]],
  ],
  [
    'unevaluatedItems behind contains of 2019-09',
    { $schema: D19, contains: { type: 'string' }, unevaluatedItems: { type: 'number' } },
    [],
    [['a', 1]],
  ],
  [
    '$dynamicRef to the outermost that was entered',
    {
      $id: 'https://x/strict',
      $dynamicAnchor: 'node',
      $ref: '#/$defs/tree',
      unevaluatedProperties: false,
      $defs: {
        tree: {
          $id: 'https://x/tree',
          $dynamicAnchor: 'node',
          properties: { data: true, children: { type: 'array', items: { $dynamicRef: '#node' } } },
        },
      },
    },
    [{ children: [{ data: 1 }] }],
    [{ children: [{ daat: 1 }] }],
  ],
  [
    '$recursiveRef of 2019-09',
    {
      $schema: D19,
      $id: 'https://x/strict',
      $recursiveAnchor: true,
      $ref: '#/$defs/tree',
      unevaluatedProperties: false,
      $defs: {
        tree: {
          $id: 'https://x/tree',
          $recursiveAnchor: true,
          properties: { data: true, children: { type: 'array', items: { $recursiveRef: '#' } } },
        },
      },
    },
    [{ children: [{ data: 1 }] }],
    [{ children: [{ daat: 1 }] }],
  ],
  [
    'a tree that refers to itself',
    { properties: { child: { $ref: '#' } }, required: ['name'] },
    [{ name: 1, child: { name: 2 } }],
    [{ name: 1, child: {} }],
  ],
  [
    '$ref beside other keywords',
    { $ref: '#/$defs/x', minLength: 2, $defs: { x: { type: 'string' } } },
    ['ab'],
    ['a', 1],
  ],
]

const OLDER: readonly Row[] = [
  ['a list of items', { items: [{ type: 'string' }], additionalItems: false }, [['a'], []], [[1], ['a', 'b']]],
  [
    'a limit that a flag excludes',
    { minimum: 3, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
    [3.1, 5],
    [3, 5.1],
  ],
  ['an id that is an anchor', { $ref: '#x', definitions: { y: { id: '#x', type: 'string' } } }, ['a'], [1]],
  [
    'both kinds of dependencies',
    { dependencies: { a: ['b'], c: { required: ['d'] } } },
    [{ a: 1, b: 1 }],
    [{ a: 1 }, { c: 1 }],
  ],
  [
    'a recursive reference',
    { $recursiveAnchor: true, properties: { child: { $recursiveRef: '#' } }, required: ['name'] },
    [{ name: 1, child: { name: 2 } }],
    [{ name: 1, child: {} }],
  ],
  [
    'keywords of 2020-12 beside them',
    { dependencies: {}, prefixItems: [{ const: 1 }], items: false },
    [[1]],
    [[2], [1, 2]],
  ],
]

const NAMED: readonly Row[] = [
  [
    'a reference to the $id of the document',
    { $id: 'T0', properties: { child: { $ref: 'T0' } }, required: ['name'] },
    [{ name: 1, child: { name: 2 } }],
    [{ name: 1, child: {} }],
  ],
  [
    'a reference to an $id inside it, and a pointer from there',
    { $id: 'https://x/a/b', $ref: 'c#/$defs/y', $defs: { x: { $id: 'c', $defs: { y: { type: 'string' } } } } },
    ['a'],
    [1],
  ],
  [
    'an id of draft-04, relative to its parent',
    { $schema: D04, id: 'https://x/a/', items: { $ref: 'b' }, definitions: { x: { id: 'b', type: 'string' } } },
    [['a']],
    [[1]],
  ],
  [
    'an $id beside a $ref up to draft-07, which names nothing',
    {
      $schema: D07,
      $id: 'https://x/a/',
      allOf: [{ $id: 'https://x/other/', $ref: 'b' }],
      definitions: { x: { $id: 'b', type: 'string' }, y: { $id: 'https://x/other/b', type: 'number' } },
    },
    ['a'],
    [1],
  ],
  [
    'an $id in data, which names nothing',
    { $ref: 'x', enum: [{ $id: 'x', const: 1 }, 'a', 1], $defs: { y: { $id: 'x', type: 'string' } } },
    ['a'],
    [1],
  ],
  [
    'a $dynamicRef to another $id',
    {
      $id: 'https://x/a',
      $dynamicAnchor: 'node',
      properties: { list: { $ref: 'list' } },
      required: ['name'],
      $defs: { l: { $id: 'list', items: { $dynamicRef: 'list#node' }, $defs: { any: { $dynamicAnchor: 'node' } } } },
    },
    [{ name: 1, list: [{ name: 2 }] }],
    [{ name: 1, list: [{}] }],
  ],
]

describe('createValidator', () => {
  for (const [what, schema, valid, invalid] of [
    ...NAMED,
    ...OLDER.map(([each, ...rest]) => [`${each}, without $schema`, ...rest] as const),
  ]) {
    it(`checks ${what}`, () => {
      assert.equal(findSchemaProblem(schema), undefined)
      for (const input of valid) assert.equal(validate(schema, input), undefined, JSON.stringify(input))
      for (const input of invalid) assert.notEqual(validate(schema, input), undefined, JSON.stringify(input))
    })
  }

  for (const [what, schema, valid, invalid] of TABLE) {
    it(`checks ${what}`, () => {
      for (const input of valid) assert.equal(validate(schema, input), undefined, JSON.stringify(input))
      for (const input of invalid) assert.notEqual(validate(schema, input), undefined, JSON.stringify(input))
    })
  }

  it('points at the violation, within items and properties', () => {
    const schema = { properties: { list: { items: { properties: { 'a/b': { type: 'string' } } } } } }
    assert.deepEqual(validate(schema, { list: [{}, { 'a/b': 1 }] }), {
      pointer: '/list/1/a~1b',
      message: 'must be string',
    })
    assert.deepEqual(validate({ unevaluatedProperties: false }, { b: 1 }), {
      pointer: '/b',
      message: 'is not a known property',
    })
    assert.deepEqual(validate({ propertyNames: { maxLength: 1 } }, { ab: 1 }), {
      pointer: '',
      message: 'has the property name "ab", which must NOT have more than 1 characters',
    })
  })

  it('reports the first violation of the first branch', () => {
    const schema = { anyOf: [{ properties: { a: { type: 'string' } } }, { required: ['b'] }] }
    assert.deepEqual(validate(schema, { a: 1 }), { pointer: '/a', message: 'must be string' })
    assert.equal(validate({ oneOf: [true, true] }, 1)?.message, 'must match exactly one schema in oneOf')
  })

  it('checks many schemas at one place, of which ajv ran out of stack', () => {
    const schema = { allOf: Array.from({ length: 3000 }, () => ({ type: 'object' })) }
    assert.equal(validate(schema, {}), undefined)
    assert.equal(validate(schema, [])?.message, 'must be object')
  })

  const REFUSED: ReadonlySet<string> = new Set([
    'pattern with an unanchored bounded repeat over 3.9 MB',
    'pattern of nested repeats, (((a{9}){9}){9}){9}',
    '500 patterns over 3.9 MB',
    'uniqueItems, 300,000 numbers',
    'uniqueItems at each of 20 levels',
    '500 patternProperties, 100,000 keys',
    '500 patternProperties, 9,900 keys',
    'propertyNames with a pattern, 200,000 keys',
    'enum of 4,000 objects, 100,000 items',
    'contains with 500 alternatives, 500,000 items',
    'allOf of 3,000 types, 500,000 items',
    'unevaluatedProperties over 200 branches, 20,000 keys',
  ])
  for (const { name, inputSchema = {}, input } of HOSTILE_CALLS.schemas) {
    const isRefused = REFUSED.has(name)
    it(`${isRefused ? 'refuses for its steps' : 'answers'} a call with a ${name}`, () => {
      const message = validate(inputSchema, input())?.message ?? ''
      assert.equal(
        message === "cannot be checked against the tool's schema: it takes too many steps",
        isRefused,
        message,
      )
    })
  }

  it('refuses an input that leads too deep into a schema', () => {
    const deep = Array.from({ length: 5000 }).reduce<unknown>((inner) => [inner], 'end')
    assert.match(validate({ items: { $ref: '#' } }, deep)?.message ?? '', /its schemas lead too deep/)
  })
})
