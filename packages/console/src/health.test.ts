import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHealth } from './health.ts'

describe('createHealth', () => {
  it('keeps the time of the last answer, and notifies only of changes', () => {
    let now = 1000
    let told = 0
    const health = createHealth(() => now)
    health.subscribe(() => told++)
    now = 2000
    health.ok()
    now = 3000
    health.failed()
    health.failed()
    assert.deepEqual([health.current, told], [{ isStale: true, sinceMs: 2000 }, 1])
    now = 9000
    health.ok()
    assert.deepEqual([health.current.isStale, told], [false, 2])
  })
})
