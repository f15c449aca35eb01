import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  compareStrictness,
  type Decision,
  strictest,
  reason,
  type ReasonCode,
  REASONS,
  LAYER_ORDER,
  OUTCOMES,
  retryAfterSeconds,
} from './decision.ts'

const reasonArbitrary = fc
  .record({
    layer: fc.constantFrom(...LAYER_ORDER),
    code: fc.constantFrom(...(Object.keys(REASONS) as ReasonCode[])),
    order: fc.nat(3),
  })
  .map(({ layer, code, order }) => reason(layer, code, `${layer} ${code} ${order}`, { order }))
const answer: fc.Arbitrary<Decision> = reasonArbitrary.map((one) => ({ outcome: one.outcome, reasons: [one] }))
const answers = fc.array(answer, { maxLength: 8 })

describe('strictest', () => {
  it('allows where nobody has anything to say', () => {
    assert.deepEqual(strictest([]), { outcome: 'allow', reasons: [] })
  })

  it('never loosens when an answer is added', () => {
    fc.assert(
      fc.property(answers, answer, (some, more) => {
        const before = strictest(some).outcome
        const after = strictest([...some, more]).outcome
        assert.ok(OUTCOMES.indexOf(after) >= OUTCOMES.indexOf(before))
        assert.ok(OUTCOMES.indexOf(after) >= OUTCOMES.indexOf(more.outcome))
      }),
    )
  })

  it('has the same outcome in any order and any grouping', () => {
    fc.assert(
      fc.property(answers, fc.nat(8), (some, at) => {
        const whole = strictest(some)
        assert.equal(strictest(some.toReversed()).outcome, whole.outcome)
        const grouped = strictest([strictest(some.slice(at)), strictest(some.slice(0, at))])
        assert.equal(grouped.outcome, whole.outcome)
        assert.equal(grouped.reasons.length, whole.reasons.length)
      }),
    )
  })

  it('puts the deciding reasons first, then by layer, then as they were written', () => {
    fc.assert(
      fc.property(answers, (some) => {
        const { outcome, reasons } = strictest(some)
        if (reasons.length > 0) assert.equal(reasons[0]?.outcome, outcome)
        for (const [i, next] of reasons.entries()) {
          const before = reasons[i - 1]
          if (!before) continue
          const byStrictness = compareStrictness(before.outcome, next.outcome)
          const byLayer = LAYER_ORDER.indexOf(before.layer) - LAYER_ORDER.indexOf(next.layer)
          assert.ok((byStrictness || byLayer || before.order - next.order) <= 0)
        }
      }),
    )
  })
})

describe('REASONS', () => {
  it('has the outcome of its code for each reason', () => {
    for (const [code, { outcome }] of Object.entries(REASONS)) {
      assert.equal(reason('door', code as ReasonCode, 'text').outcome, outcome)
    }
  })
})

describe('retryAfterSeconds', () => {
  const cases: readonly (readonly [resetMs: number, seconds: number])[] = [
    [0, 1],
    [1, 1],
    [0.001, 1],
    [999, 1],
    [1000, 1],
    [1000.5, 2],
    [13_001, 14],
    [60_000, 60],
    [31 * 86_400_000, 2_678_400],
    [Number.POSITIVE_INFINITY, 2_678_400],
    [-5, 1],
    [Number.NaN, 1],
  ]
  for (const [resetMs, seconds] of cases) {
    it(`is ${seconds} for ${resetMs} ms: whole seconds, rounded up, at least 1`, () => {
      assert.equal(retryAfterSeconds(resetMs), seconds)
    })
  }
})
