import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { Latencies } from './latency.ts'

describe('Latencies', () => {
  it('has no percentiles without durations', () => {
    assert.equal(new Latencies().percentiles(), undefined)
  })

  it('is off by 3 % at most from the exact percentiles, merged or not', () => {
    const durations = fc.array(fc.double({ min: 1, max: 3_600_000, noNaN: true }), { minLength: 1 })
    fc.assert(
      fc.property(durations, fc.nat(), (all, cut) => {
        const [one, other] = [new Latencies(), new Latencies()]
        for (const [i, ms] of all.entries()) (i < cut % all.length ? one : other).add(ms)
        one.merge(other)
        const sorted = all.toSorted((a, b) => a - b)
        const found = one.percentiles()
        for (const [name, part] of [
          ['p50', 0.5],
          ['p95', 0.95],
          ['p99', 0.99],
        ] as const) {
          const exact = sorted[Math.ceil(all.length * part) - 1] ?? 0
          // And half a millisecond of rounding.
          assert.ok(Math.abs((found?.[name] ?? 0) - exact) <= exact * 0.03 + 0.5, `${name}: ${exact}`)
        }
      }),
    )
  })

  it('takes durations of 0', () => {
    const latencies = new Latencies()
    latencies.add(0)
    assert.deepEqual(latencies.percentiles(), { p50: 0.1, p95: 0.1, p99: 0.1 })
  })
})
