import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LimitUse } from '../ports.ts'
import { counterStoreContract } from '../testing/counter-store.ts'
import { manualClock } from '../testing/manual-clock.ts'
import { memoryCounters } from './counters.ts'

counterStoreContract('memoryCounters', memoryCounters)

function use(key: string, max = 1, windowMs = 1000): LimitUse {
  return { key, max, windowMs }
}

describe('memoryCounters', () => {
  it('forgets keys whose windows have passed, as new ones come', async () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    for (let i = 0; i < 1000; i++) await counters.take([use(`old-${i}`)])
    assert.equal(counters.size, 1000)
    clock.advance(1000)
    for (let i = 0; i < 1000; i++) await counters.take([use(`new-${i}`)])
    assert.ok(counters.size <= 1001, `${counters.size} keys are held`)
  })

  it('holds no more keys than it may: a use of another is refused until one has passed', async () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 2 })
    await counters.take([use('a')])
    clock.advance(400)
    await counters.take([use('b')])
    for (let i = 0; i < 2; i++) {
      const { allowed, refused, resetMs } = await counters.take([use('b', 5), use('c')])
      assert.deepEqual([allowed, refused, resetMs], [false, 1, 600])
    }
    clock.advance(599)
    assert.equal((await counters.take([use('c')])).allowed, false)
    clock.advance(1)
    assert.equal((await counters.take([use('c')])).allowed, true)
    assert.equal(counters.size, 2)
  })

  it('never holds more keys than it may, also when one take brings several', async () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock, maxKeys: 3 })
    await counters.take([use('a'), use('b'), use('c')])
    clock.advance(1000)
    assert.equal((await counters.take([use('a'), use('d'), use('e')])).allowed, true)
    assert.equal(counters.size, 3)
    assert.equal((await counters.take([use('d', 9), use('f')])).allowed, false)
    clock.advance(1000)
    assert.equal((await counters.take([use('a'), use('b'), use('c'), use('d')])).allowed, false)
    assert.ok(counters.size <= 3)
  })

  it('has room again for a key once another was given back', async () => {
    const counters = memoryCounters({ clock: manualClock(), maxKeys: 1 })
    const taken = await counters.take([use('a')])
    assert.equal((await counters.take([use('b')])).allowed, false)
    await counters.giveBack([use('a')], taken)
    assert.equal((await counters.take([use('b')])).allowed, true)
  })

  it('makes no key for a peek', async () => {
    const counters = memoryCounters({ clock: manualClock() })
    await counters.peek([use('a')])
    assert.equal(counters.size, 0)
  })

  it('counts one key in windows of different lengths', async () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    const both = [use('a', 4, 1000), use('a', 40, 10_000)]
    for (let i = 0; i < 10; i++) {
      assert.equal((await counters.take(both)).allowed, true)
      assert.equal((await counters.take(both)).allowed, true)
      assert.equal((await counters.take(both)).refused, 0)
      clock.advance(1000)
    }
    clock.advance(-1)
    assert.equal((await counters.take(both)).allowed, false)
  })

  it('does not let time that goes back free a use', async () => {
    const clock = manualClock()
    const counters = memoryCounters({ clock })
    await counters.take([use('a')])
    clock.advance(-5000)
    assert.equal((await counters.take([use('a')])).resetMs, 1000)
    clock.advance(5999)
    assert.equal((await counters.take([use('a')])).allowed, false)
    clock.advance(1)
    assert.equal((await counters.take([use('a')])).allowed, true)
  })

  it('refuses everything under a limit of none', async () => {
    const counters = memoryCounters({ clock: manualClock() })
    assert.equal((await counters.take([use('a', 0)])).allowed, false)
  })
})
