import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { describeExcess, measureJson } from './json-measure.ts'

const excessOf = (text: string, bounds: Partial<Parameters<typeof measureJson>[1]>) =>
  measureJson(text, { depth: 64, ...bounds }).excess

describe('measureJson', () => {
  it('counts the members of all objects', () => {
    assert.deepEqual(measureJson('{"a":1,"b":{"c":[{"d:":":"}]}}', { depth: 64 }), { members: 4, hasEscapedKey: false })
    assert.deepEqual(measureJson('"a:b"', { depth: 64 }), { members: 0, hasEscapedKey: false })
  })

  it('finds a backslash in a key, and ignores one in a value', () => {
    const hasEscapedKey = (text: string) => {
      const measure = measureJson(text, { depth: 64 })
      return !measure.excess && measure.hasEscapedKey
    }
    for (const text of [
      String.raw`{"\n":1}`,
      String.raw`{"a":"\n","b":{"c":1,"d\"e":2}}`,
      String.raw`[{"a":"x"},{"\\" :1}]`,
      String.raw`{"\n":1,"a":1}`,
    ])
      assert.equal(hasEscapedKey(text), true, text)
    for (const text of ['{}', String.raw`{"a":"\n","b":["\"c\":1"]}`, String.raw`{"a":1,"b":"\\"}`, '{"a":1,"b":2}'])
      assert.equal(hasEscapedKey(text), false, text)
  })

  it('finds a text that is nested too deep, and takes brackets inside strings for text', () => {
    assert.equal(excessOf(JSON.stringify(['[[[[', '\\', '"[[[', '\\"{{{']), { depth: 1 }), undefined)
    assert.deepEqual(excessOf(JSON.stringify(['\\', [['"']]]), { depth: 2 }), { bound: 'depth', limit: 2 })
    assert.equal(excessOf('"never ends [[[', { depth: 1 }), undefined)
  })

  it('finds too many values of any kind', () => {
    for (const list of ['[1,2,3]', '[{},{},{}]', '[[],"",null]', '{"a":1,"b":2,"c":3}', '[ [ 1 , [ ] ] ]']) {
      assert.equal(excessOf(list, { values: 7 }), undefined, list)
      assert.deepEqual(excessOf(list, { values: 3 }), { bound: 'values', limit: 3 }, list)
    }
  })

  it('finds too many keys, in one object or in many', () => {
    for (const text of ['{"a":1,"b":2,"c":3}', '[{"a":1},{"a":1},{"a":1}]']) {
      assert.equal(excessOf(text, { keys: 3 }), undefined)
      assert.deepEqual(excessOf(text, { keys: 2 }), { bound: 'keys', limit: 2 })
    }
  })

  it('finds a key that is too long, with any text before its colon', () => {
    for (const text of ['{"abcd":1}', '{"abcd" \n :1}', '{"x":"long value","abcd":1}']) {
      assert.equal(excessOf(text, { keyLength: 4 }), undefined, text)
      assert.deepEqual(excessOf(text, { keyLength: 3 }), { bound: 'keyLength', limit: 3 }, text)
    }
    assert.equal(excessOf('{"x":"a long value"}', { keyLength: 3 }), undefined)
  })

  it('reads no further than the first exceeded bound', () => {
    let looked = 0
    const text = { length: 1_000_000, charCodeAt: () => (looked++, 0x7b), indexOf: () => -1 } as unknown as string
    assert.ok(excessOf(text, { depth: 1000, values: 500 }))
    assert.ok(looked < 1000, `${looked} characters`)
  })

  it('property: never counts fewer values than there are, at most twice as many, and all members', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' }), (value) => {
        const text = JSON.stringify(value)
        const { values, keys } = count(value)
        assert.partialDeepStrictEqual(measureJson(text, { depth: 64 }), { members: keys })
        if (values > 1) assert.ok(excessOf(text, { values: values - 1 }))
        assert.equal(excessOf(text, { values: 2 * values }), undefined)
      }),
    )
  })
})

describe('describeExcess', () => {
  it('names the bound', () => {
    assert.equal(describeExcess({ bound: 'depth', limit: 64 }), 'is nested more than 64 levels deep')
    assert.equal(describeExcess({ bound: 'values', limit: 9 }), 'holds more than 9 values')
    assert.equal(describeExcess({ bound: 'keys', limit: 9 }), 'holds more than 9 keys')
    assert.equal(describeExcess({ bound: 'keyLength', limit: 9 }), 'holds a key of more than 9 characters')
  })
})

function count(value: unknown): { values: number; keys: number } {
  if (typeof value !== 'object' || value === null) return { values: 1, keys: 0 }
  const parts = Object.values(value).map(count)
  return {
    values: 1 + parts.reduce((sum, { values }) => sum + values, 0),
    keys: (Array.isArray(value) ? 0 : parts.length) + parts.reduce((sum, { keys }) => sum + keys, 0),
  }
}
