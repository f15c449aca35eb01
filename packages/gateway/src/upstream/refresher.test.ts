import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import { createRefresher, type Refresher } from './refresher.ts'

/** A refresher whose refreshes last until `finish`. */
function counted(t: TestContext): {
  refresher: Refresher
  runs: () => number
  finish: (ttlMs?: number) => Promise<void>
} {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const running: PromiseWithResolvers<number | undefined>[] = []
  const refresher = createRefresher(() => {
    const run = Promise.withResolvers<number | undefined>()
    running.push(run)
    return run.promise
  })
  t.after(() => refresher.close())
  const finish = async (ttlMs?: number) => {
    running.at(-1)?.resolve(ttlMs)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { refresher, runs: () => running.length, finish }
}

describe('createRefresher', () => {
  it('makes one run of many requests, and one at a time', async (t) => {
    const { refresher, runs, finish } = counted(t)
    for (let i = 0; i < 5; i++) refresher.request()
    t.mock.timers.tick(100)
    assert.equal(runs(), 1)
    for (let i = 0; i < 5; i++) refresher.request()
    t.mock.timers.tick(10_000)
    assert.equal(runs(), 1)
    await finish()
    t.mock.timers.tick(999)
    assert.equal(runs(), 1, 'a second between runs')
    t.mock.timers.tick(1)
    assert.equal(runs(), 2)
  })

  it('asks again when the list is stale, at most every 30 s', async (t) => {
    const { refresher, runs, finish } = counted(t)
    refresher.requestAfterTtl(0)
    t.mock.timers.tick(30_000)
    t.mock.timers.tick(100)
    assert.equal(runs(), 1)
    await finish(60_000)
    t.mock.timers.tick(59_999)
    t.mock.timers.tick(100)
    assert.equal(runs(), 1)
    t.mock.timers.tick(1)
    t.mock.timers.tick(100)
    assert.equal(runs(), 2)
    await finish(undefined)
    t.mock.timers.tick(1_000_000)
    assert.equal(runs(), 2, 'without a TTL it is never stale')
  })

  it('runs no more when it is closed', (t) => {
    const { refresher, runs } = counted(t)
    refresher.requestAfterTtl(30_000)
    refresher.request()
    refresher.close()
    refresher.request()
    t.mock.timers.tick(100_000)
    assert.equal(runs(), 0)
  })
})
