import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { joined, toBucketRange } from './bucket-range.ts'

const chart = { since: 0, bucketMs: 5000, buckets: Array.from({ length: 10 }) }
const at = (ms: number) => new Date(ms).toISOString()

describe('toBucketRange', () => {
  it('returns the buckets of a range', () => {
    assert.deepEqual(toBucketRange(at(10_000), at(20_000), chart), { first: 2, end: 4 })
  })

  it('cuts a range at the ends of the chart', () => {
    assert.deepEqual(toBucketRange(at(-9000), at(90_000), chart), { first: 0, end: 10 })
  })

  it('returns nothing for no range, a range outside, and an invalid one', () => {
    for (const [from, to] of [
      ['', ''],
      [at(-20_000), at(-10_000)],
      ['then', at(10_000)],
      [at(20_000), at(10_000)],
    ] as const)
      assert.equal(toBucketRange(from, to, chart), undefined, `${from} ${to}`)
  })
})

describe('joined', () => {
  it('returns both ends, in either order', () => {
    assert.deepEqual(joined(4, 2), { first: 2, end: 5 })
  })
})
