import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createValidator } from '@toolgate/core/call'

const MAX = 9223372036854775807n
const validate = createValidator()
const isValid = (schema: object, input: unknown) => validate(schema, input) === undefined

describe('integers beyond 2^53 in a schema or an input', () => {
  const table: readonly (readonly [string, object, readonly unknown[], readonly unknown[]])[] = [
    ['type integer', { type: 'integer' }, [MAX, -MAX, 5], [2 ** 53, 1e20, '5', 0.5]],
    ['type number', { type: 'number' }, [MAX, 1e20, 0.5], ['5']],
    ['maximum', { maximum: MAX }, [MAX, 5], [MAX + 1n, 1e20]],
    ['minimum', { minimum: -MAX }, [-MAX], [-MAX - 1n]],
    ['exclusiveMaximum', { exclusiveMaximum: MAX }, [MAX - 1n], [MAX]],
    ['exclusiveMinimum', { exclusiveMinimum: MAX }, [MAX + 1n], [MAX]],
    ['a bound that is a double', { maximum: 2 ** 53 }, [9007199254740992n], [9007199254740993n]],
    ['multipleOf', { multipleOf: 3 }, [MAX - (MAX % 3n)], [MAX - (MAX % 3n) + 1n, 9007199254740990 + 1]],
    ['multipleOf a large integer', { multipleOf: MAX }, [MAX * 2n, 0], [MAX + 1n, 7]],
    ['multipleOf a fraction', { multipleOf: 0.25 }, [MAX, 0.75], [0.3]],
    ['multipleOf a fraction that does not divide', { multipleOf: 0.7 }, [7n * 10n ** 17n], [10n ** 17n]],
    ['enum', { enum: [MAX, 'x'] }, [MAX], [MAX - 1n, 2 ** 63]],
    ['const', { const: { id: MAX } }, [{ id: MAX }], [{ id: MAX - 1n }]],
    ['a double that is the same integer', { const: 2 ** 60 }, [2n ** 60n], [2n ** 60n + 1n]],
    [
      'uniqueItems',
      { uniqueItems: true },
      [[MAX, MAX - 1n]],
      [
        [MAX, 1, MAX],
        [{ a: 2 ** 60 }, { a: 2n ** 60n }],
      ],
    ],
    ['maxLength', { maxLength: MAX }, ['x'], []],
    ['maxItems', { maxItems: MAX }, [[1]], []],
  ]
  for (const [what, schema, valid, invalid] of table)
    it(`are compared exactly by ${what}`, () => {
      for (const input of valid) assert.ok(isValid(schema, input), String(input))
      for (const input of invalid) assert.ok(!isValid(schema, input), String(input))
    })

  it('divide as arithmetic does', () => {
    const large = fc.bigInt({ min: 2n ** 53n, max: 2n ** 200n })
    fc.assert(
      fc.property(large, fc.bigInt({ min: 2n, max: 2n ** 70n }), (value, divisor) => {
        assert.equal(isValid({ multipleOf: divisor }, value), value % divisor === 0n)
        assert.ok(isValid({ multipleOf: divisor }, value * divisor))
      }),
    )
  })

  it('are named with their digits, and a rounded number with advice on what to send', () => {
    assert.equal(validate({ maximum: MAX }, MAX + 1n)?.message, 'must be <= 9223372036854775807')
    assert.match(validate({ enum: [MAX] }, 1)?.message ?? '', /9223372036854775807/)
    assert.match(validate({ type: 'integer' }, 2 ** 60)?.message ?? '', /send it as text/)
  })
})
