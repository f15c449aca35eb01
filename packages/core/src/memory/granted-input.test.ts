import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Grant, NamedField } from '../ports/grants.ts'
import { coversInput, fixedPart, MAX_GRANTED_CHARS, parseFields } from './granted-input.ts'

const PAID = { to: 'bob@corp', amount: 150, order: { lines: [{ n: 1 }, { n: 2 }], note: 'x' } }

/** Returns whether a grant of fields of an approved input covers another input. */
function covers(input: unknown, fields: Readonly<Record<string, unknown>>, approved: unknown = PAID): boolean {
  const free = parseFields(approved, fields as Readonly<Record<string, NamedField>>)
  return coversInput({ covers: 'fields', fields: free, ...fixedPart(approved, free) } as Grant, input)
}

const UP_TO_200 = { amount: { upTo: 200 } }

describe('coversInput', () => {
  const amounts: readonly (readonly [amount: unknown, covered: boolean])[] = [
    [150, true],
    [0, true],
    [200, true],
    [199.99, true],
    [200.01, false],
    [201, false],
    [-1, false],
    [-1e300, false],
    [1e308, false],
    [Infinity, false],
    [Number.NaN, false],
    [2n ** 64n, false],
    [-(2n ** 64n), false],
    ['200', false],
    ['1', false],
    [null, false],
    [true, false],
    [[150], false],
    [{ valueOf: 150 }, false],
    [undefined, false],
  ]
  for (const [amount, covered] of amounts)
    it(`${covered ? 'covers' : 'does not cover'} ${typeof amount} ${String(amount)} up to 200`, () => {
      assert.equal(covers({ ...PAID, amount }, UP_TO_200), covered)
    })

  it('does not cover an input without the bounded field', () => {
    const { amount: _, ...rest } = PAID
    assert.equal(covers(rest, UP_TO_200), false)
  })

  it('compares digits beyond 2^53 exactly', () => {
    const fields = { id: { upTo: 9007199254740993n } }
    const approved = { id: 9007199254740992n }
    assert.equal(covers({ id: 9007199254740993n }, fields, approved), true)
    assert.equal(covers({ id: 9007199254740994n }, fields, approved), false)
    assert.equal(covers({ id: 1915883588174806058n, n: 1 }, { n: { any: true } }, { id: 1915883588174806058n }), true)
    assert.equal(covers({ id: 1915883588174806059n, n: 1 }, { n: { any: true } }, { id: 1915883588174806058n }), false)
  })

  it('covers negative amounts down to the approved one', () => {
    const covered = [-20, -5, 0].map((amount) => covers({ amount }, { amount: { upTo: 0 } }, { amount: -5 }))
    assert.deepEqual(covered, [false, true, true])
  })

  it('covers an equal input in any order of its keys', () => {
    const { to, amount, order } = PAID
    assert.equal(covers({ order: { note: order.note, lines: order.lines }, amount, to }, UP_TO_200), true)
  })

  const others: readonly (readonly [what: string, input: unknown])[] = [
    ['an added field', { ...PAID, cc: 'eve@evil' }],
    ['an added field that is null', { ...PAID, cc: null }],
    ['a field called __proto__', JSON.parse('{"to":"bob@corp","amount":150,"__proto__":{}}')],
    ['a missing field', { to: PAID.to, amount: 150 }],
    ['another addressee', { ...PAID, to: 'eve@evil' }],
    ['another case', { ...PAID, to: 'Bob@corp' }],
    ['a text with a space', { ...PAID, to: 'bob@corp ' }],
    ['a list in place of a text', { ...PAID, to: ['bob@corp'] }],
    ['a list with one more item', { ...PAID, order: { ...PAID.order, lines: [...PAID.order.lines, { n: 3 }] } }],
    ['a list in another order', { ...PAID, order: { ...PAID.order, lines: PAID.order.lines.toReversed() } }],
    ['a nested field that is added', { ...PAID, order: { ...PAID.order, rush: true } }],
    ['no object', 'bob@corp'],
    ['null', null],
  ]
  for (const [what, input] of others)
    it(`does not cover ${what}`, () => {
      assert.equal(covers(input, UP_TO_200), false)
      assert.equal(coversInput({ covers: 'input', ...fixedPart(PAID) } as Grant, input), false)
    })

  it('tells composed from decomposed letters', () => {
    const approved = { name: '\u00e9' }
    assert.equal(coversInput({ covers: 'input', ...fixedPart(approved) } as Grant, { name: 'e\u0301' }), false)
    assert.equal(coversInput({ covers: 'input', ...fixedPart(approved) } as Grant, { name: '\u00e9' }), true)
  })

  it('leaves a field free by name only, present or absent', () => {
    const fields = { '/order/note': { any: true } } as const
    assert.equal(covers({ ...PAID, order: { lines: PAID.order.lines, note: { any: ['thing'] } } }, fields), true)
    assert.equal(covers({ ...PAID, order: { lines: PAID.order.lines } }, fields), true)
    assert.equal(covers({ ...PAID, order: { ...PAID.order, rush: 1 } }, fields), false)
    assert.equal(covers({ to: PAID.to, amount: 150 }, fields), false)
    assert.equal(covers({ ...PAID, order: null }, fields), false)
  })

  it('takes a name with a slash or a dot literally, and a pointer for a place', () => {
    const approved = { 'a/b': 1, 'a.b': 1, a: { b: 1 }, '/x': 1 }
    assert.equal(covers({ ...approved, 'a/b': 2 }, { 'a/b': { any: true } }, approved), true)
    assert.equal(covers({ ...approved, a: { b: 2 } }, { 'a/b': { any: true } }, approved), false)
    assert.equal(covers({ ...approved, a: { b: 2 } }, { '/a/b': { any: true } }, approved), true)
    assert.equal(covers({ ...approved, a: { b: 2 } }, { 'a.b': { any: true } }, approved), false)
    assert.equal(covers({ ...approved, '/x': 2 }, { '/~1x': { any: true } }, approved), true)
  })

  it('keeps the length of a list whose item is free', () => {
    const fields = { '/order/lines/1': { any: true } } as const
    const withLines = (...lines: unknown[]) => ({ ...PAID, order: { ...PAID.order, lines } })
    assert.equal(covers(withLines({ n: 1 }, 'other'), fields), true)
    assert.equal(covers(withLines({ n: 1 }), fields), false)
    assert.equal(covers(withLines({ n: 1 }, 'other', 'more'), fields), false)
  })

  it('does not read what an object inherits', () => {
    assert.throws(() => parseFields({ a: 1 }, { toString: { is: 1 } }), { code: 'grant_invalid' })
    assert.equal(covers({}, { constructor: { any: true } }, {}), true)
    assert.equal(covers({ amount: 1 }, { constructor: { any: true } }, {}), false)
  })
})

describe('parseFields', () => {
  const wrong: readonly (readonly [what: string, fields: Readonly<Record<string, unknown>>])[] = [
    ['no field', {}],
    ['a bound below the approved value', { amount: { upTo: 149 } }],
    ['a bound that is a text', { amount: { upTo: '200' } }],
    ['an endless bound', { amount: { upTo: Infinity } }],
    ['a bound of a text', { to: { upTo: 3 } }],
    ['a bound of a missing field', { amuont: { upTo: 200 } }],
    ['a value that is not the approved one', { to: { is: 'eve@evil' } }],
    ['a value of a missing field', { cc: { is: 'eve@evil' } }],
    ['a value without JSON', { to: { is: () => 1 } }],
    ['two rules for a field', { amount: { upTo: 200, any: true } }],
    ['no rule', { amount: {} }],
    ['an unknown rule', { amount: { max: 200 } }],
    ['a bare value', { to: 'bob@corp' }],
    ['null', { to: null }],
    ['any: false', { to: { any: false } }],
    ['a place within a text', { '/to/0': { any: true } }],
    ['a place of a list that is not there', { '/order/lines/2': { any: true } }],
    ['an index with a zero', { '/order/lines/01': { any: true } }],
    ['the end of a list', { '/order/lines/-': { any: true } }],
    ['a place in an absent object', { '/address/city': { any: true } }],
    ['a field twice', { amount: { upTo: 200 }, '/amount': { any: true } }],
    ['a field twice, in two spellings', { '/a~b': { any: true }, '/a~0b': { any: true } }],
    ['a field and its parent', { order: { any: true }, '/order/note': { any: true } }],
    ['a parent after its field', { '/order/note': { any: true }, order: { any: true } }],
  ]
  for (const [what, fields] of wrong)
    it(`refuses ${what}`, () => {
      assert.throws(() => parseFields(PAID, fields as Record<string, NamedField>), { code: 'grant_invalid' })
    })

  it('checks a stated value, and grants nothing by it', () => {
    assert.deepEqual(parseFields(PAID, { to: { is: 'bob@corp' }, amount: { upTo: 200 } }), {
      '/amount': { from: 0, upTo: 200 },
    })
  })
})

describe('fixedPart', () => {
  it('keeps nothing of the free fields', () => {
    const free = parseFields(PAID, { order: { any: true }, ...UP_TO_200 })
    assert.deepEqual(fixedPart(PAID, free).input, { to: 'bob@corp' })
  })

  it('refuses an input that is too long to be looked through', () => {
    const long = { text: 'x'.repeat(MAX_GRANTED_CHARS), n: 1 }
    assert.throws(() => fixedPart(long), { code: 'grant_invalid' })
    assert.ok(fixedPart(long, parseFields(long, { text: { any: true } })))
  })
})
