import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createValidator } from './validate.ts'

const text = (schema: object) => ({ type: 'object', properties: { path: { type: 'string', ...schema } } })

describe('createValidator', () => {
  const validate = createValidator()

  it('gives nothing for a valid input and the pointer of what is wrong in another', () => {
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
    assert.match(problem?.message ?? '', /schema cannot be used.*can't resolve reference/)
  })

  it('takes two schemas with one $id for two schemas', () => {
    assert.equal(validate({ $id: 'x', type: 'object' }, {}), undefined)
    assert.equal(validate({ $id: 'x', type: 'array' }, {})?.message, 'must be array')
  })

  it('does not take what an object inherits for a property', () => {
    assert.equal(
      validate({ type: 'object', required: ['toString'] }, {})?.message,
      "must have required property 'toString'",
    )
  })
})
