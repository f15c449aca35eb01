import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalize, frozenCopy } from './json.ts'

describe('canonicalize', () => {
  it('writes the example of RFC 8785 as the RFC does', () => {
    const value = {
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"\u002f',
      literals: [null, true, false],
    }
    assert.equal(
      canonicalize(value),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it('sorts keys by UTF-16 units, as RFC 8785 §3.2.3 does', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 }
    assert.equal(canonicalize(value), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  it('writes equal values equally, whatever the order of their keys', () => {
    assert.equal(canonicalize({ b: { d: 1, c: 2 }, a: [] }), canonicalize({ a: [], b: { c: 2, d: 1 } }))
  })

  it('writes -0 as 0', () => {
    assert.equal(canonicalize([-0, { a: -0 }]), '[0,{"a":0}]')
  })

  it('keeps keys that objects own in other ways', () => {
    const value: unknown = JSON.parse('{"__proto__":{"x":1},"constructor":2,"toString":3,"":4}')
    assert.equal(canonicalize(value), '{"":4,"__proto__":{"x":1},"constructor":2,"toString":3}')
  })

  it('calls no toJSON', () => {
    assert.equal(canonicalize({ toJSON: 'text' }), '{"toJSON":"text"}')
    assert.throws(() => canonicalize({ toJSON: () => 'other' }), { code: 'value_not_canonical' })
  })

  it('takes objects without a prototype', () => {
    assert.equal(canonicalize(Object.assign(Object.create(null), { a: 1 })), '{"a":1}')
  })

  const refused: readonly [string, unknown, string][] = [
    ['undefined', undefined, ''],
    ['undefined in a list', [1, undefined], '/1'],
    ['a gap in a list', Array(2), '/0'],
    ['undefined in an object', { a: { b: undefined } }, '/a/b'],
    ['NaN', { n: Number.NaN }, '/n'],
    ['an infinity', [Number.NEGATIVE_INFINITY], '/0'],
    ['a BigInt of too many digits', { big: 10n ** 1000n }, '/big'],
    ['a function', { f: () => 1 }, '/f'],
    ['a symbol', [Symbol('s')], '/0'],
    ['a lone surrogate', { text: 'a\ud800' }, '/text'],
    ['a key with a lone surrogate', { a: { '\udc00': 1 } }, '/a'],
    ['a date, which has no keys', { at: new Date(0) }, '/at'],
    ['a map, which has no keys', new Map([['a', 1]]), ''],
    ['an instance of a class', [new URL('a:b')], '/0'],
    ['a boxed string', Object('text'), ''],
    ['what is under a key with slashes', { 'a/b': { '~': undefined } }, '/a~1b/~0'],
  ]
  for (const [what, value, pointer] of refused) {
    it(`refuses ${what}, and says where it is`, () => {
      assert.throws(() => canonicalize(value), { code: 'value_not_canonical', detail: pointer })
    })
  }

  it('takes 64 levels and refuses 65', () => {
    assert.equal(canonicalize(nested(64)).length, 128)
    assert.throws(() => canonicalize(nested(65)), { code: 'value_not_canonical', message: /64 levels/ })
  })

  it('refuses 200,000 levels without running out of stack', () => {
    assert.throws(() => canonicalize(nested(200_000)), { code: 'value_not_canonical' })
    assert.throws(() => canonicalize(JSON.parse('{"a":'.repeat(50_000) + '1' + '}'.repeat(50_000))), {
      code: 'value_not_canonical',
    })
  })

  it('refuses a value that holds itself', () => {
    const value: Record<string, unknown> = {}
    value['self'] = value
    assert.throws(() => canonicalize(value), { code: 'value_not_canonical' })
  })

  it('refuses a small value that is huge when written out', () => {
    let value: unknown = 'x'
    for (let i = 0; i < 60; i++) value = [value, value]
    assert.throws(() => canonicalize(value), { code: 'value_not_canonical', message: /1000000 parts/ })
  })

  it('writes any JSON so that it reads back the same, and equal values have equal text', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value).toWellFormed())
        const text = tryCanonicalize(plain)
        if (text === undefined) return // a lone surrogate, written as an escape
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(plain)))
        assert.equal(canonicalize(JSON.parse(text)), text)
        assert.equal(canonicalize(withKeysReversed(plain)), text)
      }),
    )
  })

  it('writes different JSON differently', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
        const [textA, textB] = [tryCanonicalize(a), tryCanonicalize(b)]
        if (textA === undefined || textA !== textB) return
        assert.deepEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)))
      }),
    )
  })
})

function nested(levels: number): unknown {
  let value: unknown[] = []
  for (let i = 1; i < levels; i++) value = [value]
  return value
}

function tryCanonicalize(value: unknown): string | undefined {
  try {
    return canonicalize(value)
  } catch {
    return undefined
  }
}

function withKeysReversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withKeysReversed)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toReversed()
  return Object.fromEntries(entries.map(([key, item]) => [key, withKeysReversed(item)]))
}

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
    ['a bigint of too many digits', { a: -(10n ** 1000n) }, '/a', /more than 1000 digits/],
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
    const nestedTo = (levels: number): unknown => (levels === 0 ? 1 : [nestedTo(levels - 1)])
    assert.ok('value' in frozenCopy(nestedTo(64)))
    assert.ok('problem' in frozenCopy(nestedTo(65)))
    const circle: { self?: unknown } = {}
    circle.self = circle
    assert.ok('problem' in frozenCopy(circle))
  })

  it('does not mistake the names that objects have', () => {
    const input = JSON.parse('{"constructor":1,"toString":2,"hasOwnProperty":3}') as unknown
    assert.deepEqual(frozenCopy(input), { value: input })
  })
})
