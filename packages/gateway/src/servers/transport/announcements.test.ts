import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { keepListening } from './announcements.ts'

/** Streams that each end after a time. Returns when they were opened. */
async function openedAt(t: TestContext, { livesMs, forMs }: { livesMs: number; forMs: number }): Promise<number[]> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const opened: number[] = []
  const listening = keepListening({
    open: (_stopped, onOpen) => {
      opened.push(nowMs)
      onOpen()
      return new Promise((resolve) => setTimeout(() => resolve({ again: true }), livesMs))
    },
    onGap: () => {},
  })
  t.after(() => listening.stop())
  while (nowMs < forMs) {
    nowMs += 10
    t.mock.timers.tick(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return opened
}

const gaps = (opened: readonly number[], livesMs: number) =>
  opened.slice(1).map((atMs, i) => atMs - (opened[i] ?? 0) - livesMs)

describe('keepListening', () => {
  it('opens a stream that is cut now and then within 300 ms, however often', async (t) => {
    const opened = await openedAt(t, { livesMs: 5_000, forMs: 100_000 })
    assert.ok(opened.length >= 18, String(opened.length))
    assert.ok(gaps(opened, 5_000).every((gapMs) => gapMs <= 300))
  })

  it('opens a stream that ends at once with growing delays', async (t) => {
    const opened = await openedAt(t, { livesMs: 0, forMs: 100_000 })
    assert.ok(opened.length <= 10, String(opened.length))
    assert.ok((gaps(opened, 0).at(-1) ?? 0) >= 25_000)
  })
})
