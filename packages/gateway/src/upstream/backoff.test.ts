import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createBackoff } from './backoff.ts'

describe('createBackoff', () => {
  it('doubles the delay to its maximum and begins anew after a good run', () => {
    const backoff = createBackoff({ firstMs: 100, maxMs: 400, resetMs: 1_000, random: () => 1 })
    const delays = (count: number) => Array.from({ length: count }, () => backoff.nextDelayMs())
    assert.deepEqual(delays(4), [100, 200, 400, 400])
    backoff.ranFor(999)
    assert.deepEqual(delays(1), [400])
    backoff.ranFor(1_000)
    assert.deepEqual(delays(2), [100, 200])
  })

  it('takes half of each delay at random', () => {
    assert.equal(createBackoff({ firstMs: 100, random: () => 0 }).nextDelayMs(), 50)
    assert.equal(createBackoff({ firstMs: 100, random: () => 0.5 }).nextDelayMs(), 75)
  })
})
