import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parameterNames } from './fields.ts'

const text = { type: 'string' }

describe('parameterNames', () => {
  it('returns the names of all levels, outer ones first, each once', () => {
    const schema = {
      type: 'object',
      properties: {
        path: text,
        edits: { type: 'array', items: { type: 'object', properties: { oldText: text, path: text } } },
      },
      $defs: { range: { properties: { from: text } } },
      oneOf: [{ properties: { url: text } }],
      additionalProperties: { properties: { extra: text } },
    }
    assert.deepEqual(parameterNames(schema), ['edits', 'path', 'from', 'extra', 'url', 'oldText'])
  })

  it('takes a parameter that is called as a keyword for a parameter', () => {
    assert.deepEqual(parameterNames({ properties: { properties: text, items: text } }), ['items', 'properties'])
  })

  it('returns nothing for a schema without names', () => {
    for (const schema of [{}, { properties: [] }, { properties: null }, { items: true }, { allOf: 'x', not: 3 }])
      assert.deepEqual(parameterNames(schema as object as { [keyword: string]: unknown }), [])
  })

  it('is bounded in names, in depth and in breadth, and cuts alike for every order of keys', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `p${i}`)
    const wide = (order: readonly string[]) => ({ properties: Object.fromEntries(order.map((name) => [name, text])) })
    assert.equal(parameterNames(wide(names)).length, 128)
    assert.deepEqual(parameterNames(wide(names)), parameterNames(wide(names.toReversed())))
    let deep: { [keyword: string]: unknown } = { properties: { bottom: text } }
    for (let i = 0; i < 30; i++) deep = { items: deep }
    assert.deepEqual(parameterNames(deep), [])
    let bushy: { [keyword: string]: unknown } = { properties: { leaf: text } }
    for (let i = 0; i < 7; i++) bushy = { anyOf: Array.from({ length: 30 }, () => bushy) }
    assert.deepEqual(parameterNames(bushy), [])
  })
})
