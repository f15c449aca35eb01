import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { describeExcess, findMembers, measureJson, splitItems } from './json-text.ts'

const excessOf = (text: string, bounds: Partial<Parameters<typeof measureJson>[1]>) =>
  measureJson(text, { depth: 64, ...bounds }).excess

describe('measureJson', () => {
  it('counts the members of all objects', () => {
    assert.deepEqual(measureJson('{"a":1,"b":{"c":[{"d:":":"}]}}', { depth: 64 }), { members: 4 })
    assert.deepEqual(measureJson('"a:b"', { depth: 64 }), { members: 0 })
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

  it('finds a key that is too long, whatever is before its colon', () => {
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
        assert.deepEqual(measureJson(text, { depth: 64 }), { members: keys })
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

const textAt = (text: string, ...path: readonly string[]) => {
  const span = findMembers(text, [path.join('.')]).get(path.join('.'))
  return span && text.slice(span.start, span.end)
}

describe('findMembers', () => {
  it('finds the text of a value by its path of keys', () => {
    const text = '{"id":7,"result":{"a":[{"tools":0}],"tools": [1, {"tools":2}] ,"b":"}"},"c":1}'
    assert.equal(textAt(text, 'id'), '7')
    assert.equal(textAt(text, 'result', 'tools'), ' [1, {"tools":2}] ')
    assert.equal(textAt(text, 'result', 'b'), '"}"')
    assert.equal(textAt(text, 'c'), '1')
  })

  it('finds nothing inside of arrays, strings and other keys', () => {
    for (const text of ['[{"id":1}]', '{"a":{"id":1}}', '{"a":"id","b":"\\"id\\":1"}', '{"a":[{"id":1}]}', '"id"', ''])
      assert.equal(textAt(text, 'id'), undefined, text)
  })

  it('finds nothing if the path occurs twice', () => {
    assert.equal(textAt('{"id":1,"id":2}', 'id'), undefined)
    assert.equal(textAt('{"result":{"tools":[]},"result":{"tools":[1]}}', 'result', 'tools'), undefined)
  })

  it('finds several paths in one pass, and keys with a dot for none', () => {
    const text = '{"method":"x","result":{"tools":[{"id":2}],"id":3},"id":1,"result.tools":[]}'
    const found = findMembers(text, ['id', 'result.tools', 'missing'])
    assert.deepEqual(
      [...found].map(([path, { start, end }]) => [path, text.slice(start, end)]),
      [
        ['result.tools', '[{"id":2}]'],
        ['id', '1'],
      ],
    )
  })

  it('property: finds the same values as JSON.parse', () => {
    const key = fc.constantFrom('a', 'b', 'c')
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.dictionary(key, fc.jsonValue({ maxDepth: 3 }))),
        key,
        key,
        (value, one, two) => {
          for (const indent of [0, 2]) {
            const found = textAt(JSON.stringify(value, undefined, indent), one, two)
            assert.equal(
              found === undefined ? undefined : JSON.stringify(JSON.parse(found)),
              JSON.stringify(value[one]?.[two]),
            )
          }
        },
      ),
    )
  })
})

describe('splitItems', () => {
  it('splits an array into the texts of its items', () => {
    assert.deepEqual(splitItems('[1, [2,3] ,{"a":",]"}]'), ['1', ' [2,3] ', '{"a":",]"}'])
    assert.deepEqual(splitItems(' [ ] '), [])
  })

  it('splits nothing else', () => {
    for (const text of ['{}', '1', '', '"[]"', '[1']) assert.equal(splitItems(text), undefined, text)
  })

  it('property: returns the same items as JSON.parse', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), (list) => {
        for (const indent of [0, 2]) {
          const items = splitItems(JSON.stringify(list, undefined, indent))
          assert.deepEqual(
            items?.map((item) => JSON.parse(item) as unknown),
            JSON.parse(JSON.stringify(list)),
          )
        }
      }),
    )
  })
})
