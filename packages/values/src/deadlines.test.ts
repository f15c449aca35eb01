import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createDeadlines } from './deadlines.ts'

describe('createDeadlines', () => {
  it('expires what is watched, in the order in which it was due, and once', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let nowMs = 0
    const expired: string[] = []
    const deadlines = createDeadlines(() => nowMs)
    const watch = (name: string, delayMs: number) =>
      deadlines.watch({ expire: () => expired.push(name) }, nowMs, delayMs)
    const pass = (ms: number) => {
      nowMs += ms
      t.mock.timers.tick(ms)
    }
    watch('a', 100)
    pass(40)
    watch('b', 100)
    watch('c', 10)
    pass(10)
    assert.deepEqual(expired, ['c'])
    pass(50)
    assert.deepEqual(expired, ['c', 'a'])
    pass(39)
    assert.deepEqual(expired, ['c', 'a'])
    pass(1)
    assert.deepEqual(expired, ['c', 'a', 'b'])
    pass(1000)
    assert.equal(expired.length, 3)
  })

  it('does not expire what is over, wherever in the line it stood', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let nowMs = 0
    const expired: number[] = []
    const deadlines = createDeadlines(() => nowMs)
    const watched = Array.from({ length: 5 }, (_, i) => deadlines.watch({ expire: () => expired.push(i) }, nowMs, 50))
    for (const [i, one] of watched.entries()) if (i % 2 === 0) deadlines.unwatch(one)
    nowMs = 50
    t.mock.timers.tick(50)
    assert.deepEqual(expired, [1, 3])
  })

  it('watches anew after all was over', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let nowMs = 0
    let expired = 0
    const deadlines = createDeadlines(() => nowMs)
    deadlines.unwatch(deadlines.watch({ expire: () => expired++ }, nowMs, 50))
    nowMs = 30
    t.mock.timers.tick(30)
    deadlines.watch({ expire: () => expired++ }, nowMs, 50)
    nowMs = 79
    t.mock.timers.tick(49)
    assert.equal(expired, 0)
    nowMs = 80
    t.mock.timers.tick(1)
    assert.equal(expired, 1)
  })

  it('waits for a deadline that no timer can hold', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let expired = 0
    createDeadlines(() => 0).watch({ expire: () => expired++ }, 0, Number.MAX_SAFE_INTEGER)
    t.mock.timers.tick(1_000_000)
    assert.equal(expired, 0)
  })
})
