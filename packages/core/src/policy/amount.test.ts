import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, it } from 'node:test'
import { defineTool } from '../tools/tool.ts'
import { WorkSpentError } from '@toolgate/values'
import { parseAmount, units } from './amount.ts'

const context = { caller: { user: 'vera' }, tool: defineTool({ name: 'pay' }) }
const amountOf = (text: string, input: unknown) => parseAmount('cost', text, 'input').evaluate({ ...context, input })

describe('units', () => {
  const exact: readonly (readonly [value: unknown, places: number, amount: number])[] = [
    ['12.34', 2, 1234],
    [12.34, 2, 1234],
    [0.07, 2, 7],
    [1.005, 2, 101],
    ['1.005', 3, 1005],
    ['12.345', 2, 1235],
    ['0.001', 2, 1],
    ['000', 2, 0],
    [5n, 2, 500],
    [1e-7, 2, 1],
    ['1e3', 0, 1000],
    ['1.5E+2', 1, 1500],
    ['90071992547409.91', 2, Number.MAX_SAFE_INTEGER],
    ['-0.4', 0, -1],
    ['0e999', 2, 0],
    ['1e-999', 2, 1],
    ['-1e-999', 2, -1],
    ['1e999', 2, Infinity],
    ['-1e999', 2, -Infinity],
    ['1e399', 18, Infinity],
  ]
  for (const [value, places, amount] of exact)
    it(`returns ${amount} for ${String(value)} with ${places} places`, () => assert.equal(units(value, places), amount))

  for (const value of [
    '',
    'abc',
    '1,5',
    '1.',
    '.5',
    '0x10',
    ' 1',
    'Infinity',
    Number.NaN,
    Infinity,
    null,
    undefined,
    {},
    [],
    true,
  ])
    it(`refuses ${inspect(value)}`, () => assert.throws(() => units(value, 2), RangeError))
  for (const places of [-1, 19, 1.5, Number.NaN])
    it(`refuses ${places} places`, () => assert.throws(() => units('1', places), RangeError))

  it('is exact for every decimal text, where a product is not', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000_000), fc.nat(99), (whole, cents) => {
        const text = `${whole}.${String(cents).padStart(2, '0')}`
        assert.equal(units(text, 2), whole * 100 + cents)
        assert.equal(units(Number(text), 2), whole * 100 + cents)
      }),
    )
  })
})

describe('parseAmount', () => {
  it('returns the number of the input, fractions rounded up', () => {
    assert.equal(amountOf('input.tokens', { tokens: 120 }), 120)
    assert.equal(amountOf('input.tokens', { tokens: 0.01 }), 1)
    assert.equal(amountOf('size(input.rows)', { rows: [1, 2, 3] }), 3)
    assert.equal(amountOf('units(input.amount, 2)', { amount: '5.00' }), 500)
    assert.equal(amountOf('has(input.n) ? input.n : 7', {}), 7)
    assert.equal(amountOf('caller.user == "vera" ? 1 : 2', {}), 1)
    assert.equal(amountOf('units(input.amount, 2) * 2.0', { amount: 1 }), 200)
  })

  it('counts the steps of units()', () => {
    let read = 0
    const items = Array.from({ length: 40_000 }, () =>
      Object.defineProperty({}, 'n', { enumerable: true, get: () => (read++, '1e-99') }),
    )
    assert.throws(() => amountOf('input.items.exists(i, units(i.n, 2) > 5.0) ? 1 : 2', { items }), WorkSpentError)
    assert.ok(read < 25_000, `${read} items were read`)
  })

  const wrong: readonly (readonly [text: string, input: unknown, problem: RegExp])[] = [
    ['input.n', { n: -1 }, /-1, which is less than 0/],
    ['input.n', { n: -0.5 }, /less than 0/],
    ['input.n', { n: '5' }, /"5", which is no number/],
    ['input.n', { n: null }, /no number/],
    ['input.n', { n: 2 ** 53 }, /more than 2\^53 - 1/],
    ['1.0 / 0.0', {}, /no number/],
    ['input.n', {}, /No such key/],
    ['units(input.n, 2)', { n: '-3' }, /less than 0/],
  ]
  for (const [text, input, problem] of wrong)
    it(`throws for ${text} over ${JSON.stringify(input)}`, () => assert.throws(() => amountOf(text, input), problem))

  const refused: readonly (readonly [text: string, problem: RegExp])[] = [
    ['', /must be CEL text that is not empty/],
    ['input.', /character/],
    ['"text"', /must be a number, this one is of type string/],
    ['input.n > 1', /of type bool/],
    ['output.n', /output/],
    ['run.labels', /run/],
    ['input.matches("a")', /matches\(\) is not offered/],
  ]
  for (const [text, problem] of refused)
    it(`refuses ${JSON.stringify(text)} when it is loaded`, () =>
      assert.throws(() => parseAmount('cost', text, 'input'), { path: 'cost', code: 'condition_invalid', problem }))
})
