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

/** Lets mocked time pass in small steps, and lets what is due run in between. */
async function pass(t: TestContext, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    t.mock.timers.tick(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('createRefresher', () => {
  it('makes one run of many requests, and one at a time', async (t) => {
    const { refresher, runs, finish } = counted(t)
    for (let i = 0; i < 5; i++) refresher.request()
    t.mock.timers.tick(25)
    assert.equal(runs(), 1)
    for (let i = 0; i < 5; i++) refresher.request()
    t.mock.timers.tick(10_000)
    assert.equal(runs(), 1)
    await finish()
    t.mock.timers.tick(25)
    assert.equal(runs(), 2)
  })

  it('reads a server that announces a change at each reading with growing pauses', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let runs = 0
    const refresher = createRefresher(async () => {
      runs++
      setTimeout(refresher.request, 5)
      return undefined
    })
    t.after(() => refresher.close())
    refresher.request()
    await pass(t, 1_600)
    assert.equal(runs, 4, 'two at once, then after 0.4 s and 0.8 s')
    await pass(t, 10_500)
    assert.equal(runs, 7, 'after 1.6 s, 3.2 s and then every 5 s')
  })

  it('reads a server that announces changes by itself, however many, in less than 500 ms', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let runs = 0
    const refresher = createRefresher(async () => (runs++, undefined))
    t.after(() => refresher.close())
    for (let i = 0; i < 25; i++) {
      refresher.request()
      await pass(t, 100)
    }
    assert.equal(runs, 7, 'two at once, then five in 2.5 s')
  })

  it('reads the last of many changes at the end of the pause', async (t) => {
    const { refresher, runs, finish } = counted(t)
    for (let i = 1; i <= 2; i++) {
      refresher.request()
      await pass(t, 30)
      await finish()
    }
    refresher.request()
    await pass(t, 360)
    assert.equal(runs(), 2)
    await pass(t, 80)
    assert.equal(runs(), 3)
  })

  it('reads an announced change at once, however often the stale list is read', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let runs = 0
    const refresher = createRefresher(async () => (runs++, 1_000))
    t.after(() => refresher.close())
    refresher.requestAfterTtl(1_000)
    await pass(t, 10_500)
    assert.equal(runs, 10)
    refresher.request()
    await pass(t, 30)
    assert.equal(runs, 11)
  })

  it('reads at once again after a quiet time', async (t) => {
    const { refresher, runs, finish } = counted(t)
    for (let i = 1; i <= 3; i++) {
      refresher.request()
      await pass(t, 1_050)
      await finish()
    }
    assert.equal(runs(), 3)
    await pass(t, 4_000)
    refresher.request()
    await pass(t, 30)
    assert.equal(runs(), 4)
  })

  it('reads again when the list is stale, after 60 s without a TTL', async (t) => {
    const { refresher, runs, finish } = counted(t)
    refresher.requestAfterTtl(2_000)
    await pass(t, 1_990)
    assert.equal(runs(), 0)
    await pass(t, 10)
    assert.equal(runs(), 1)
    await finish(undefined)
    await pass(t, 59_990)
    assert.equal(runs(), 1)
    await pass(t, 10)
    assert.equal(runs(), 2)
  })

  it('reads at most once a second, and every 30 s with a TTL of 0', async (t) => {
    const { refresher, runs, finish } = counted(t)
    refresher.requestAfterTtl(1)
    await pass(t, 1_000)
    assert.equal(runs(), 1)
    await finish(0)
    await pass(t, 29_990)
    assert.equal(runs(), 1)
    await pass(t, 10)
    assert.equal(runs(), 2)
  })

  it('does not run after it is closed', (t) => {
    const { refresher, runs } = counted(t)
    refresher.requestAfterTtl(30_000)
    refresher.request()
    refresher.close()
    refresher.request()
    t.mock.timers.tick(100_000)
    assert.equal(runs(), 0)
  })
})
