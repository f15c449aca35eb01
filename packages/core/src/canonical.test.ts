import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalize } from './canonical.ts'

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
    ['a BigInt', { big: 1n }, '/big'],
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
