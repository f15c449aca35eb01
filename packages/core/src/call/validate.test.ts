import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createValidator } from './validate.ts'

const text = (schema: object) => ({ type: 'object', properties: { path: { type: 'string', ...schema } } })

describe('createValidator', () => {
  const validate = createValidator()

  it('returns nothing for a valid input, and the pointer of the fault in an invalid one', () => {
    assert.equal(validate(text({ minLength: 2 }), { path: 'ab' }), undefined)
    assert.deepEqual(validate(text({ minLength: 2 }), { path: 'a' }), {
      pointer: '/path',
      message: 'must NOT have fewer than 2 characters',
    })
  })

  it('keeps the patterns of different schemas apart', () => {
    assert.equal(validate(text({ pattern: '^a' }), { path: 'a' }), undefined)
    assert.equal(validate(text({ pattern: '^b' }), { path: 'a' })?.pointer, '/path')
    assert.equal(validate(text({ pattern: '^/' }), { path: 'a' })?.pointer, '/path')
  })

  it('matches a pattern that would backtrack for ever in linear time', () => {
    assert.equal(validate(text({ pattern: '^(a+)+$' }), { path: `${'a'.repeat(50_000)}b` })?.pointer, '/path')
  })

  it('skips references that multiply in the schema, and refuses an input that multiplies them', () => {
    const both = (i: number) => ({ allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] })
    const $defs = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`d${i}`, both(i)]))
    const message = /^cannot be checked against the tool's schema: it takes too many steps$/
    assert.equal(validate({ $defs: { ...$defs, d60: {} }, ...both(-1) }, {}), undefined)

    const branch = (k: string) => ({ properties: { x: { $ref: '#/$defs/n' }, k: { const: k } } })
    const tree = { $defs: { n: { anyOf: [branch('a'), branch('b')] } }, $ref: '#/$defs/n' }
    const nested = (depth: number): object => (depth === 0 ? { k: 'c' } : { x: nested(depth - 1) })
    assert.match(validate(tree, nested(60))?.message ?? '', message)
    assert.match(validate(tree, nested(3))?.message ?? '', /^must/)
  })

  it('leaves out a reference that leads back to where it stands, and checks the rest', () => {
    assert.equal(validate({ $ref: '#' }, {}), undefined)
    assert.equal(validate({ $ref: '#', type: 'object' }, 7)?.message, 'must be object')
  })

  it('finds equal items in linear time', () => {
    const unique = { properties: { list: { type: 'array', uniqueItems: true } } }
    const equal: readonly unknown[][] = [
      [1, 1],
      [0, -0],
      [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ],
      [null, 'x', null],
    ]
    for (const list of equal)
      assert.deepEqual(validate(unique, { list }), { pointer: '/list', message: 'must NOT have duplicate items' })
    const different: readonly unknown[][] = [[], ['1', 1], [[1], [2]], [{ a: 1 }, { a: 1, b: null }], [false, null, 0]]
    for (const list of different) assert.equal(validate(unique, { list }), undefined)
    const many = Array.from({ length: 100_000 }, (_, i) => [i])
    assert.equal(validate(unique, { list: many }), undefined)
    assert.equal(validate(unique, { list: [...many, [7]] })?.pointer, '/list')
  })

  it('names an unknown property as a pointer does', () => {
    assert.equal(validate({ additionalProperties: false }, { 'a/b~c': 1 })?.pointer, '/a~1b~0c')
  })

  it('goes on after a thousand schemas as before', () => {
    for (let i = 0; i < 1100; i++)
      assert.equal(validate({ required: [`p${i}`] }, {})?.message, `must have required property 'p${i}'`)
  })

  it('reads draft-07 where $schema says so, and 2020-12 otherwise', () => {
    const tuple = { properties: { list: { type: 'array', items: [{ type: 'number' }] } } }
    assert.equal(
      validate({ $schema: 'http://json-schema.org/draft-07/schema#', ...tuple }, { list: ['x'] })?.pointer,
      '/list/0',
    )
    const prefix = { properties: { list: { type: 'array', prefixItems: [{ type: 'number' }] } } }
    assert.equal(validate(prefix, { list: ['x'] })?.pointer, '/list/0')
  })

  it('never fetches a remote $ref: such a schema refuses every input and says why', () => {
    const problem = validate({ properties: { a: { $ref: 'http://127.0.0.1:9/schema' } } }, {})
    assert.match(problem?.message ?? '', /schema cannot be used: .*outside this schema/)
  })

  it('takes two schemas with one $id for two schemas', () => {
    assert.equal(validate({ $id: 'x', type: 'object' }, {}), undefined)
    assert.equal(validate({ $id: 'x', type: 'array' }, {})?.message, 'must be array')
  })

  it('does not take an inherited property for one of the input', () => {
    assert.equal(
      validate({ type: 'object', required: ['toString'] }, {})?.message,
      "must have required property 'toString'",
    )
  })
})
