import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalize, frozenCopy } from './json.ts'
import { toJsonText } from './json-text.ts'
import { readJson, readOwnJson } from './read-json.ts'

const ID = 1915883588174806058n
const integer = fc.bigInt({ min: -(10n ** 300n), max: 10n ** 300n })

describe('toJsonText', () => {
  it('writes a bigint as its digits, at any place and with an indent', () => {
    assert.equal(toJsonText({ a: [ID, { b: -ID }], c: 'x' }), `{"a":[${ID},{"b":-${ID}}],"c":"x"}`)
    assert.equal(toJsonText([ID], 2), `[\n  ${ID}\n]`)
  })

  it('writes any other value as JSON.stringify does', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => assert.equal(toJsonText(value), JSON.stringify(value))))
    assert.equal(toJsonText(undefined), undefined)
  })

  it('writes digits where a host has given bigints a toJSON', (t) => {
    // oxlint-disable-next-line no-extend-native -- hosts do so
    Object.defineProperty(BigInt.prototype, 'toJSON', { value: () => 'text', configurable: true })
    t.after(() => Reflect.deleteProperty(BigInt.prototype, 'toJSON'))
    assert.equal(toJsonText({ id: ID }), `{"id":${ID}}`)
  })

  it('throws for a value that holds itself', () => {
    const value: Record<string, unknown> = { id: ID }
    value['self'] = value
    assert.throws(() => toJsonText(value), TypeError)
  })
})

describe('an integer', () => {
  it('is read, copied, written and read again with the same digits', () => {
    fc.assert(
      fc.property(integer, (n) => {
        const text = `{"n":${n}}`
        const copy = frozenCopy(readJson(text, { integers: 'exact' }))
        assert.ok('value' in copy)
        assert.deepEqual([toJsonText(copy.value), canonicalize(copy.value)], [text, text])
        assert.deepEqual(readOwnJson(text, 'exact'), copy.value)
      }),
    )
  })

  it('has one form and one canonical text, as a bigint or as a number', () => {
    assert.deepEqual(frozenCopy({ a: 5n, b: -9007199254740991n }), { value: { a: 5, b: -9007199254740991 } })
    assert.deepEqual(frozenCopy(9007199254740992n), { value: 9007199254740992n })
    assert.equal(canonicalize({ a: 5n, b: 2n ** 60n }), '{"a":5,"b":1152921504606846976}')
  })
})
