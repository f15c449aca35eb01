import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { findMembers, splitItems } from './json-text.ts'

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
