import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from './tool.ts'
import { schemaNames, withKeys } from './schema-names.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    editors: { $ref: '#/$defs/people' },
    to: { type: 'array', items: { properties: { email: {}, name: {} } } },
    default: { properties: { inner: {} }, default: { properties: { no: 1 } } },
  },
  $defs: { people: { type: 'object', patternProperties: { '^x-': { properties: { role: {} } } } } },
  additionalProperties: { properties: { more: {} } },
}
const tool = defineTool({ name: 'share', inputSchema: SCHEMA })

describe('schemaNames', () => {
  it('has the names in any `properties`, but no patterns, definitions or values', () => {
    assert.deepEqual([...schemaNames(SCHEMA)].toSorted(), [
      'default',
      'editors',
      'email',
      'inner',
      'more',
      'name',
      'role',
      'to',
    ])
  })
})

describe('withKeys', () => {
  it('has each key as a value that the schema does not name', () => {
    assert.deepEqual(withKeys({ evil_corp: null }, tool), ['evil_corp', null])
    assert.deepEqual(withKeys([{ email: 'a@b.c', DE89370400440532013000: 1 }], tool), [
      ['a@b.c', 'DE89370400440532013000', 1],
    ])
    assert.deepEqual(withKeys({ 'x-eve': { role: 'editor' } }, tool), ['x-eve', ['editor']])
  })

  it('takes the keys of a whole input for arguments only where no schema names any', () => {
    const open = defineTool({ name: 'open' })
    assert.deepEqual(withKeys({ to: { eve: 1 }, 'eve@evil.com': 2 }, open, true), [['eve', 1], 'eve@evil.com', 2])
    assert.deepEqual(withKeys({ evil: 1 }, tool, true), ['evil', 1])
    assert.deepEqual(withKeys({ evil: 1 }, open), ['evil', 1])
  })

  it('ends on a value that holds itself', () => {
    const circle: Record<string, unknown> = {}
    Object.assign(circle, { a: circle, b: circle })
    assert.ok(withKeys(circle, tool))
  })
})
