import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { retryAfterSeconds } from './reason.ts'

describe('retryAfterSeconds', () => {
  const told: readonly (readonly [resetMs: number, seconds: number])[] = [
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
  for (const [resetMs, seconds] of told) {
    it(`is ${seconds} for ${resetMs} ms: whole seconds, rounded up, at least 1`, () => {
      assert.equal(retryAfterSeconds(resetMs), seconds)
    })
  }
})
