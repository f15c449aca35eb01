import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { WorkSpentError } from '../work.ts'
import { compileCoercer } from './coerce.ts'

const coerce = (schema: object, value: unknown, left = 1_000_000) => compileCoercer(schema)(value, { left })
const int = { type: 'integer' }
const BIG = 1915883588174806058n

describe('compileCoercer', () => {
  const replaced: readonly (readonly [shows: string, schema: object, from: unknown, to: unknown])[] = [
    ['an integer', int, '7', 7],
    ['a negative one, and blanks around it', int, ' -7 ', -7],
    ['an integer beyond 2^53', int, String(BIG), BIG],
    ['an integer with a fraction of 0', int, '7.0', 7],
    ['a number', { type: 'number' }, '1.5', 1.5],
    ['a number with an exponent', { type: 'number' }, '2e3', 2000],
    ['true', { type: 'boolean' }, 'true', true],
    ["Python's False", { type: 'boolean' }, 'False', false],
    ['null', { type: ['integer', 'null'] }, 'null', null],
    ['a list', { type: 'array', items: int }, '[1,2]', [1, 2]],
    ['an object', { type: 'object', properties: { a: int } }, '{"a":1}', { a: 1 }],
    ['texts in a text', { type: 'array', items: int }, '["1",2]', [1, 2]],
    ['items', { type: 'array', items: int }, ['1', 2, '3'], [1, 2, 3]],
    [
      'first items',
      { prefixItems: [{ type: 'string' }, int], items: { type: 'boolean' } },
      ['1', '2', 'true'],
      ['1', 2, true],
    ],
    [
      'items of draft-07',
      { $schema: 'http://json-schema.org/draft-07/schema#', items: [int], additionalItems: int },
      ['1', '2'],
      [1, 2],
    ],
    ['properties', { properties: { a: int, b: { type: 'string' } } }, { a: '1', b: '1' }, { a: 1, b: '1' }],
    ['further properties', { properties: {}, additionalProperties: int }, { a: '1' }, { a: 1 }],
    [
      'a property of any name',
      { additionalProperties: int },
      JSON.parse('{"__proto__":"1"}'),
      JSON.parse('{"__proto__":1}'),
    ],
    [
      'what a reference describes',
      { $ref: '#/$defs/n', $defs: { n: { properties: { a: { $ref: '#/$defs/i' } } }, i: int } },
      { a: '1' },
      { a: 1 },
    ],
    [
      'what a recursive reference describes',
      { properties: { n: int, next: { $ref: '#' } } },
      { n: '1', next: { n: '2' } },
      { n: 1, next: { n: 2 } },
    ],
    [
      'what all parts want',
      { allOf: [{ properties: { a: int } }, { properties: { b: int } }] },
      { a: '1', b: '2' },
      { a: 1, b: 2 },
    ],
    ['an optional one of pydantic', { anyOf: [int, { type: 'null' }] }, '7', 7],
    ['an optional list of pydantic', { anyOf: [{ type: 'array', items: int }, { type: 'null' }] }, ['1'], [1]],
    [
      'the only branch that fits',
      {
        oneOf: [
          { properties: { k: { const: 'a' }, n: int }, required: ['k'] },
          { properties: { k: { const: 'b' }, n: { type: 'boolean' } }, required: ['k'] },
        ],
      },
      { k: 'b', n: 'true' },
      { k: 'b', n: true },
    ],
    [
      'branches that agree',
      {
        anyOf: [
          { type: 'array', items: int },
          { type: 'array', items: { type: 'number' } },
        ],
      },
      ['1'],
      [1],
    ],
    ['a choice of numbers', { enum: [1, 2] }, '2', 2],
    [
      'what a condition wants',
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      { if: { properties: { k: { const: 1 } } }, then: { properties: { n: int } } },
      { k: 1, n: '1' },
      { k: 1, n: 1 },
    ],
  ]
  for (const [shows, schema, from, to] of replaced)
    it(`replaces a text by ${shows}`, () => assert.deepEqual(coerce(schema, from), to))

  const kept: readonly (readonly [shows: string, schema: object, value: unknown])[] = [
    ['a text that the schema accepts', { type: ['string', 'integer'] }, '7'],
    ['a text that one branch accepts', { anyOf: [int, { type: 'string' }] }, '7'],
    ['a text that spells another type', int, 'true'],
    ['a text that spells no JSON', int, 'seven'],
    ['a number in a spelling that JSON does not have', int, '007'],
    ['a text in a text', { type: 'integer' }, '"7"'],
    ['1 for true', { type: 'boolean' }, '1'],
    ['a number beyond the digits of a double', { type: 'number' }, '0.12345678901234567'],
    ['a number beyond the range of a double', { type: 'number' }, '1e400'],
    ['a number that is no text', { type: 'string' }, 7],
    ['a single value for a list', { type: 'array', items: int }, '7'],
    ['an empty text', { type: ['integer', 'null'] }, ''],
    ['an object with a key twice', { type: 'object' }, '{"a":1,"a":2}'],
    ['what a pattern of names describes', { patternProperties: { '^a': int } }, { a: '1' }],
    [
      'a value on which branches differ',
      {
        anyOf: [{ prefixItems: [int, { type: 'string' }] }, { prefixItems: [{ type: 'string' }, int] }].map((one) => ({
          type: 'array',
          ...one,
          items: false,
          maxItems: 3,
          minItems: 3,
        })),
      },
      ['1', '2'],
    ],
  ]
  for (const [shows, schema, value] of kept) it(`keeps ${shows}`, () => assert.equal(coerce(schema, value), value))

  it('replaces nothing where two branches lead to different values', () => {
    const pair = (a: object, b: object) => ({ type: 'object', properties: { a, b }, required: ['a', 'b'] })
    const schema = { anyOf: [pair(int, { type: 'string' }), pair({ type: 'string' }, int)] }
    const value = { a: '1', b: '2' }
    // Both branches accept `{ a: 1, b: '2' }` or `{ a: '1', b: 2 }`, and nothing says which is meant.
    assert.equal(coerce(schema, value), value)
  })

  it('leaves the given value unchanged, and returns the same object if it fits', () => {
    const value = Object.freeze({ a: Object.freeze(['1']) })
    const schema = { properties: { a: { items: int } } }
    assert.deepEqual([coerce(schema, value), value], [{ a: [1] }, { a: ['1'] }])
    const fitting = { a: [1] }
    assert.equal(coerce(schema, fitting), fitting)
  })

  it('ends for hostile schemas and values, by running out of work', () => {
    const levels = Array.from({ length: 30 }, (_, i) => {
      const next = i === 29 ? int : { $ref: `#/$defs/l${i + 1}` }
      return [`l${i}`, { anyOf: [{ properties: { a: next } }, { properties: { a: next, b: int } }] }] as const
    })
    const schema = { $ref: '#/$defs/l0', $defs: Object.fromEntries(levels) }
    let value: unknown = 'x'
    for (let i = 0; i < 30; i++) value = { a: value, b: 'y' }
    assert.throws(() => coerce(schema, value), WorkSpentError)
    assert.throws(
      () =>
        coerce(
          { items: int },
          Array.from({ length: 1_000_000 }, () => 'x'),
        ),
      WorkSpentError,
    )
    assert.throws(() => coerce(int, ' '.repeat(2_000_000)), WorkSpentError)
    const loop = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a', type: 'integer' } } }
    assert.equal(coerce(loop, 'x'), 'x')
  })
})
