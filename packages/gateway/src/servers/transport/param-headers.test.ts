import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '@toolgate/values/json'

import { findParamHeaders, toParamHeaders } from './param-headers.ts'

const header = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name })

describe('findParamHeaders', () => {
  it('finds the arguments that are wanted in headers, at any depth of properties', () => {
    const schema = { properties: { a: header('A'), b: { properties: { c: header('C', 'integer') } }, d: {} } }
    assert.deepEqual(findParamHeaders(schema), [
      { path: ['a'], name: 'A' },
      { path: ['b', 'c'], name: 'C' },
    ])
  })

  const wrong: readonly (readonly [string, object])[] = [
    ['a name with a line break', { properties: { a: header('A\r\nX: y') } }],
    ['an empty name', { properties: { a: header('') } }],
    ['a name that is no string', { properties: { a: header(1) } }],
    ['an object', { properties: { a: header('A', 'object') } }],
    ['a number', { properties: { a: header('A', 'number') } }],
    ['one name twice, whatever its case', { properties: { a: header('A'), b: header('a') } }],
    ['the whole input', header('A')],
    ['items', { properties: { a: { items: header('A') } } }],
    ['a branch', { properties: { a: { anyOf: [header('A')] } } }],
    ['a definition', { $defs: { a: header('A') } }],
  ]
  for (const [what, schema] of wrong) {
    it(`refuses ${what}, in words`, () => {
      const problem = findParamHeaders(schema as JsonObject)
      assert.match(typeof problem === 'string' ? problem : 'none', /^x-mcp-header /)
    })
  }
})

describe('toParamHeaders', () => {
  const headers = [
    { path: ['region'], name: 'Region' },
    { path: ['deep', 'n'], name: 'N' },
  ]

  it('returns encoded header values, and leaves out absent values and other types', () => {
    assert.deepEqual(toParamHeaders(headers, { region: 'Köln', deep: { n: 5 } }), [
      'mcp-param-Region',
      '=?base64?S8O2bG4=?=',
      'mcp-param-N',
      '5',
    ])
    assert.deepEqual(toParamHeaders(headers, { region: null, deep: [] }), [])
    assert.deepEqual(toParamHeaders(headers, undefined), [])
  })

  it('reads no inherited property', () => {
    assert.deepEqual(toParamHeaders([{ path: ['constructor', 'name'], name: 'X' }], {}), [])
  })
})
