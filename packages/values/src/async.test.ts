import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller } from './cancelling.ts'
import { systemClock } from '@toolgate/core/stores'
import { createDeadlines, type Deadlines } from './deadlines.ts'
import {
  AbortedError,
  backoffMs,
  endsWithin,
  isThenable,
  type Outcome,
  runWithDeadline,
  safely,
  startTask,
  TimeoutError,
  withDeadline,
} from './async.ts'

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

describe('withDeadline', () => {
  it('gives what the promise gives, and rejects with what it rejects with', async () => {
    const deadlines = countedDeadlines()
    assert.equal(await withDeadline(Promise.resolve(7), deadlines, systemClock, 60_000), 7)
    const error = new Error('boom')
    await assert.rejects(withDeadline(Promise.reject(error), deadlines, systemClock, 60_000), error)
    assert.equal(deadlines.watched, 0)
  })

  it('rejects when it is late, and leaves no later rejection unhandled', async () => {
    const late = Promise.withResolvers<void>()
    await assert.rejects(withDeadline(late.promise, newDeadlines(), systemClock, 1), (error) => {
      assert.ok(error instanceof TimeoutError)
      assert.deepEqual([error.message, error.deadlineMs], ['no answer in 0.001 s', 1])
      return true
    })
    late.reject(new Error('late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('rejects when nobody waits any longer, with the reason as cause', async () => {
    const deadlines = countedDeadlines()
    const caller = createCanceller()
    const waiting = withDeadline(never(), deadlines, systemClock, 60_000, caller)
    caller.abort('gone')
    await assert.rejects(waiting, (error) => error instanceof AbortedError && error.cause === 'gone')
    assert.equal(deadlines.watched, 0)
    await assert.rejects(withDeadline(never(), deadlines, systemClock, 60_000, caller), AbortedError)
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
    await withDeadline(Promise.resolve(), newDeadlines(), systemClock, 60_000, caller)
    await assert.rejects(withDeadline(never(), newDeadlines(), systemClock, 1, caller), TimeoutError)
    assert.equal(listeners.size, 0)
  })

  it('rejects for a thenable that throws in its then, or when it is looked at', async () => {
    const thrown = new Error('boom')
    const throwing = () => {
      throw thrown
    }
    // oxlint-disable-next-line unicorn/no-thenable -- what a hook may answer
    const thrower = Object.defineProperty({}, 'then', { value: throwing }) as PromiseLike<void>
    await assert.rejects(withDeadline(thrower, newDeadlines(), systemClock, 60_000), thrown)
    const broken = Object.defineProperty(Promise.resolve(), 'constructor', { get: throwing })
    await assert.rejects(withDeadline(broken, newDeadlines(), systemClock, 60_000), thrown)
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

describe('safely', () => {
  it('tells the listener, and says of its failures where it is told to', async () => {
    const heard: unknown[] = []
    safely((...told: unknown[]) => heard.push(told))(1, 2)
    const gone = new Error('gone')
    const failing = (): never => {
      throw gone
    }
    for (const listener of [failing, async () => failing()]) safely(listener, (error) => heard.push(error))()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(heard, [[1, 2], gone, gone])
  })

  it('changes nothing where nobody listens, and where the failures go nowhere', () => {
    safely(undefined)()
    safely(() => assert.fail('unheard'))()
  })
})

describe('backoffMs', () => {
  it('doubles the delay up to its maximum, half of it at random', () => {
    const delays = [1, 2, 3, 7, 1000].map((failures) => backoffMs(failures, { random: () => 1 }))
    assert.deepEqual(delays, [1000, 2000, 4000, 60_000, 60_000])
    assert.equal(backoffMs(1, { firstMs: 250, random: () => 0 }), 125)
  })
})

describe('endsWithin', () => {
  it('tells work that ends in time from work that does not', async () => {
    assert.equal(await endsWithin(Promise.resolve(), 1000), true)
    assert.equal(await endsWithin(never(), 1), false)
  })

  it('rejects with work that rejects in time', async () => {
    await assert.rejects(endsWithin(Promise.reject(new Error('no disk')), 1000), /no disk/)
  })
})

describe('startTask', () => {
  const settle = () => new Promise((resolve) => setTimeout(resolve, 5))

  it('ends at once where the work answers or throws at once', () => {
    const outcomes: Outcome<unknown>[] = []
    const error = new Error('full')
    const thrower = () => {
      throw error
    }
    for (const run of [() => 1, thrower])
      startTask({ run, deadlineMs: 1000, onEnd: (outcome) => outcomes.push(outcome) })
    assert.deepEqual(outcomes, [{ value: 1 }, { error }])
  })

  it('ends with what was rejected', async () => {
    const outcomes: Outcome<unknown>[] = []
    const error = new Error('full')
    const run = () => Promise.reject(error)
    startTask({ run, deadlineMs: 1000, onEnd: (outcome) => outcomes.push(outcome) })
    await settle()
    assert.deepEqual(outcomes, [{ error }])
  })

  it('ends once: at the deadline, and not again when the work is over', async () => {
    const outcomes: Outcome<number>[] = []
    const work = Promise.withResolvers<number>()
    let isOver = false
    let signal: AbortSignal | undefined
    const run = (given: AbortSignal) => {
      signal = given
      return work.promise
    }
    startTask({ run, deadlineMs: 1, onEnd: (outcome) => outcomes.push(outcome), onOver: () => (isOver = true) })
    while (outcomes.length === 0) await settle()
    assert.deepEqual([signal?.aborted, isOver], [true, false])
    work.resolve(1)
    await settle()
    assert.ok(isOver)
    assert.deepEqual(
      outcomes.map((outcome) => 'error' in outcome && outcome.error instanceof TimeoutError),
      [true],
    )
  })

  it('does not end when it is stopped, which aborts its signal', async () => {
    const work = Promise.withResolvers<number>()
    let signal: AbortSignal | undefined
    const run = (given: AbortSignal) => {
      signal = given
      return work.promise
    }
    const stop = startTask({ run, deadlineMs: 1, onEnd: () => assert.fail('ended') })
    stop()
    work.resolve(1)
    await settle()
    assert.equal(signal?.aborted, true)
  })
})

describe('runWithDeadline', () => {
  it('gives what the work gives, and rejects when it is late', async () => {
    assert.equal(await runWithDeadline(() => 1, 1000), 1)
    await assert.rejects(
      runWithDeadline(() => new Promise(() => {}), 1),
      TimeoutError,
    )
  })
})
