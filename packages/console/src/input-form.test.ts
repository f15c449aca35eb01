import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Draft, toField, toInput } from './input-form.ts'

const read = (schema: unknown, draft: Draft) => {
  const { input, problems } = toInput(toField(schema), draft)
  return [input, Object.fromEntries(problems)]
}
const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required })

describe('toField', () => {
  it('has a field for each simple type, and JSON for the others', () => {
    const kinds = Object.entries({
      text: { type: 'string' },
      number: { type: 'number' },
      integer: { type: 'integer' },
      flag: { type: 'boolean' },
      choice: { enum: ['a', 1, null] },
      list: { type: 'array', items: { type: 'string' } },
      json: { oneOf: [{ type: 'string' }, { type: 'number' }] },
    })
    for (const [kind, schema] of kinds) assert.equal(toField(schema).kind, kind)
    for (const schema of [true, null, 'x', [], { type: ['string', 'number'] }, { type: 'array' }, { allOf: [] }])
      assert.equal(toField(schema).kind, 'json')
  })

  it('reads references and nullable types as frameworks write them', () => {
    const schema = {
      $defs: { Point: object({ x: { type: 'number' } }, ['x']) },
      ...object({ at: { $ref: '#/$defs/Point' }, note: { anyOf: [{ type: 'string' }, { type: 'null' }] } }),
    }
    assert.deepEqual(read(schema, { at: { x: '1.5' }, note: 'hi' }), [{ at: { x: 1.5 }, note: 'hi' }, {}])
    for (const $ref of ['#/$defs/Other', '#/$defs/toString', 'https://example.com/schema', '#'])
      assert.equal(toField({ $ref, $defs: { Other: { $ref: '#/$defs/Other' } } }).kind, 'json')
  })

  it('ends with schemas without end, and with large ones', () => {
    const endless = { $defs: { Node: object({ next: { $ref: '#/$defs/Node' } }) }, $ref: '#/$defs/Node' }
    assert.equal(toField(endless).kind, 'object')
    const large = object(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${i}`, { type: 'string' }])))
    assert.equal(toField(large).kind, 'json')
  })
})

describe('toInput', () => {
  const schema = object(
    {
      path: { type: 'string' },
      depth: { type: 'integer' },
      deep: { type: 'boolean' },
      mode: { enum: ['r', 'w'] },
      tags: { type: 'array', items: { type: 'string' } },
      opts: object({ size: { type: 'number' } }, ['size']),
      any: {},
    },
    ['path', 'mode'],
  )

  it('leaves out what is empty and not required', () => {
    assert.deepEqual(read(schema, { path: 'a', mode: '1' }), [{ path: 'a', mode: 'w' }, {}])
    const whole = { path: 'a', mode: '0', depth: '2', deep: 'false', tags: ['x', ''], opts: { size: '1' }, any: '[1]' }
    assert.deepEqual(read(schema, whole), [
      { path: 'a', mode: 'r', depth: 2, deep: false, tags: ['x', ''], opts: { size: 1 }, any: [1] },
      {},
    ])
  })

  it('names the field of each problem', () => {
    const [, problems] = read(schema, { depth: '1.5', opts: { size: 'much' }, any: '{' })
    assert.deepEqual(
      Object.keys(problems as object),
      ['/depth', '/mode', '/opts/size', '/any'].toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b)),
    )
  })

  it('keeps names of servers as names', () => {
    const hostile = {
      type: 'object',
      properties: JSON.parse('{"__proto__": {"type": "string"}, "a/b~c": {"type": "integer"}}'),
    }
    const [input, problems] = read(hostile, { 'a/b~c': 'x' })
    assert.deepEqual([JSON.stringify(input), problems], ['{}', { '/a~1b~0c': 'This must be a number.' }])
    const draft = JSON.parse('{"__proto__": "kept"}') as Draft
    assert.equal(JSON.stringify(toInput(toField(hostile), draft).input), '{"__proto__":"kept"}')
  })
})

const ORDER = ['/depth', '/mode', '/opts/size', '/any']
