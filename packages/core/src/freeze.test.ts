import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalize } from './canonical.ts'
import { frozenCopy } from './freeze.ts'

describe('frozenCopy', () => {
  it('copies plain JSON, so that later changes of the input do not reach it', () => {
    const input = { list: [{ a: 1 }], text: 'x' }
    const copy = frozenCopy(input)
    input.list[0] = { a: 2 }
    assert.deepEqual(copy, { value: { list: [{ a: 1 }], text: 'x' } })
  })

  it('freezes every level', () => {
    const { value } = frozenCopy({ list: [{ a: 1 }] }) as { value: { list: { a: number }[] } }
    assert.throws(() => value.list.push({ a: 2 }), TypeError)
    assert.throws(() => Object.assign(value.list[0] as object, { a: 2 }), TypeError)
  })

  it('leaves out fields that are undefined, as JSON does', () => {
    assert.deepEqual(frozenCopy({ a: undefined, b: 1 }), { value: { b: 1 } })
  })

  it('gives what has a canonical form, for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (json) => {
        const copy = frozenCopy(json)
        if ('value' in copy) assert.equal(canonicalize(copy.value), canonicalize(json))
        else assert.match(copy.problem.message, /lone surrogate|name that is not allowed/)
      }),
    )
  })

  class Path {
    readonly path = '/a'
  }
  const sparse: unknown[] = [1]
  sparse[2] = 3
  const refused: readonly (readonly [what: string, input: unknown, pointer: string, message: RegExp])[] = [
    ['a function', { a: [() => 1] }, '/a/0', /of type function/],
    ['undefined in a list', [undefined], '/0', /of type undefined/],
    ['a hole in a list', { list: sparse }, '/list/1', /of type undefined/],
    ['a bigint', { a: 1n }, '/a', /of type bigint/],
    ['a symbol', { a: Symbol('a') }, '/a', /of type symbol/],
    ['NaN', { a: Number.NaN }, '/a', /not a number that JSON can say/],
    ['infinity', -Infinity, '', /not a number that JSON can say/],
    ['a date', { a: new Date(0) }, '/a', /not a plain object/],
    ['a map', new Map(), '', /not a plain object/],
    ['an instance', { a: new Path() }, '/a', /not a plain object/],
    ['an own __proto__', JSON.parse('{"a":{"__proto__":{"admin":true}}}'), '/a/__proto__', /name that is not allowed/],
    ['a lone surrogate', { a: 'x\ud83d' }, '/a', /lone surrogate/],
    ['a lone surrogate in a name', { 'x\ud83d': 1 }, '/x\ufffd', /lone surrogate/],
    ['names with slashes', { 'a/b': { 'c~d': Number.NaN } }, '/a~1b/c~0d', /not a number/],
  ]
  for (const [what, input, pointer, message] of refused) {
    it(`refuses ${what}, and points at it`, () => {
      const copy = frozenCopy(input)
      assert.ok('problem' in copy)
      assert.equal(copy.problem.pointer, pointer)
      assert.match(copy.problem.message, message)
    })
  }

  it('takes 64 levels and refuses 65, and a value that holds itself', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
    assert.ok('value' in frozenCopy(nested(64)))
    assert.ok('problem' in frozenCopy(nested(65)))
    const circle: { self?: unknown } = {}
    circle.self = circle
    assert.ok('problem' in frozenCopy(circle))
  })

  it('does not mistake the names that objects have', () => {
    const input = JSON.parse('{"constructor":1,"toString":2,"hasOwnProperty":3}') as unknown
    assert.deepEqual(frozenCopy(input), { value: input })
  })
})
