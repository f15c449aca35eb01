import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller } from '../cancelling.ts'
import { systemClock } from '../memory/clock.ts'
import { createDeadlines, type Deadlines } from '../deadlines.ts'
import { GoneError, inTime, isThenable, LateError } from './in-time.ts'

const never = () => new Promise<never>(() => {})
const newDeadlines = () => createDeadlines(systemClock.monotonicMs)

/** Deadlines that count what is watched. */
function countedDeadlines(): Deadlines & { watched: number } {
  const deadlines = newDeadlines()
  const counted = {
    watched: 0,
    watch(...args: Parameters<Deadlines['watch']>) {
      counted.watched++
      return deadlines.watch(...args)
    },
    unwatch(watched: Parameters<Deadlines['unwatch']>[0]) {
      counted.watched--
      deadlines.unwatch(watched)
    },
  }
  return counted
}

describe('inTime', () => {
  it('gives what the promise gives, and rejects with what it rejects with', async () => {
    const deadlines = countedDeadlines()
    assert.equal(await inTime(Promise.resolve(7), deadlines, systemClock, 60_000), 7)
    const error = new Error('boom')
    await assert.rejects(inTime(Promise.reject(error), deadlines, systemClock, 60_000), error)
    assert.equal(deadlines.watched, 0)
  })

  it('rejects when it is late, and leaves no later rejection unhandled', async () => {
    const late = Promise.withResolvers<void>()
    await assert.rejects(inTime(late.promise, newDeadlines(), systemClock, 1), (error) => {
      assert.ok(error instanceof LateError)
      assert.deepEqual([error.message, error.deadlineMs], ['no answer in 0.001 s', 1])
      return true
    })
    late.reject(new Error('late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('rejects when nobody waits any longer, with the reason as cause', async () => {
    const deadlines = countedDeadlines()
    const caller = createCanceller()
    const waiting = inTime(never(), deadlines, systemClock, 60_000, caller)
    caller.abort('gone')
    await assert.rejects(waiting, (error) => error instanceof GoneError && error.cause === 'gone')
    assert.equal(deadlines.watched, 0)
    await assert.rejects(inTime(never(), deadlines, systemClock, 60_000, caller), GoneError)
    assert.equal(deadlines.watched, 0)
  })

  it('keeps no listener of a caller who outlives the wait', async () => {
    const listeners = new Set<() => void>()
    const caller = {
      aborted: false,
      reason: undefined,
      onAbort(listener: () => void) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    }
    await inTime(Promise.resolve(), newDeadlines(), systemClock, 60_000, caller)
    await assert.rejects(inTime(never(), newDeadlines(), systemClock, 1, caller), LateError)
    assert.equal(listeners.size, 0)
  })

  it('rejects for a thenable that throws in its then, or when it is looked at', async () => {
    const thrown = new Error('boom')
    const throwing = () => {
      throw thrown
    }
    // oxlint-disable-next-line unicorn/no-thenable -- what a hook may answer
    const thrower = Object.defineProperty({}, 'then', { value: throwing }) as PromiseLike<void>
    await assert.rejects(inTime(thrower, newDeadlines(), systemClock, 60_000), thrown)
    const broken = Object.defineProperty(Promise.resolve(), 'constructor', { get: throwing })
    await assert.rejects(inTime(broken, newDeadlines(), systemClock, 60_000), thrown)
  })
})

describe('isThenable', () => {
  it('knows what must be waited for', () => {
    // oxlint-disable-next-line unicorn/no-thenable -- what is looked for
    const thenable = Object.assign(() => {}, { then() {} })
    assert.deepEqual([Promise.resolve(), thenable].map(isThenable), [true, true])
    // oxlint-disable-next-line unicorn/no-thenable -- what is looked for
    assert.deepEqual([undefined, null, 1, 'then', {}, { then: 1 }].map(isThenable), Array(6).fill(false))
  })
})
