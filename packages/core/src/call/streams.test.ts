import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { createCanceller, createDeadlines, isStream } from '@toolgate/values'
import { systemClock } from '../memory/clock.ts'
import { type StreamEnd, type StreamOptions, watchStream } from './streams.ts'
import { runs } from '../../../testing/src/runs.ts'

const boom = new Error('boom')
const never = () => new Promise<never>(() => {})
const turn = () => new Promise((resolve) => setImmediate(resolve))
const MINUTE_MS = 60_000

/** Watches a stream, and keeps the ends that were reported. */
function watch<T extends AsyncIterable<unknown>>(stream: T, more: Partial<StreamOptions> = {}) {
  const ends: StreamEnd[] = []
  const told = Promise.withResolvers<void>()
  const watched = watchStream(stream, {
    onEnd(end) {
      ends.push(end)
      told.resolve()
    },
    deadlines: createDeadlines(systemClock.monotonicMs),
    clock: systemClock,
    deadlineMs: MINUTE_MS,
    ...more,
  })
  return { watched, ends, told: told.promise }
}

async function readAll(stream: AsyncIterable<unknown>): Promise<{ items: unknown[]; error?: unknown }> {
  const items: unknown[] = []
  try {
    for await (const item of stream) items.push(item)
    return { items }
  } catch (error) {
    return { items, error }
  }
}

/** A source of each kind that gives these items and then `then` happens; says whether it was closed. */
interface Made {
  readonly stream: AsyncIterable<unknown>
  readonly closed: () => number
}
type Then = 'end' | 'throw' | 'hang'

function generator(items: readonly unknown[], then: Then): Made {
  let closed = 0
  async function* give() {
    try {
      yield* items
      if (then === 'throw') throw boom
      if (then === 'hang') await never()
    } finally {
      closed++
    }
  }
  return { stream: give(), closed: () => closed }
}

function iterable(items: readonly unknown[], then: Then): Made {
  let closed = 0
  let at = 0
  const next = () => {
    if (at < items.length) return Promise.resolve({ done: false, value: items[at++] })
    if (then === 'throw') return Promise.reject(boom)
    return then === 'hang' ? never() : Promise.resolve({ done: true as const, value: undefined })
  }
  const iterator = {
    next,
    return() {
      closed++
      return Promise.resolve({ done: true as const, value: undefined })
    },
  }
  return { stream: { [Symbol.asyncIterator]: () => iterator }, closed: () => closed }
}

function readable(items: readonly unknown[], then: Then): Made {
  let closed = 0
  let at = 0
  const stream = new ReadableStream(
    {
      pull(controller) {
        if (at < items.length) controller.enqueue(items[at++])
        else if (then === 'end') controller.close()
        else if (then === 'throw') controller.error(boom)
        else return never()
        return undefined
      },
      cancel() {
        closed++
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, closed: () => closed }
}

const KINDS = { generator, iterable, readable }

describe('isStream', () => {
  it('knows what is read item by item as it comes', () => {
    for (const make of Object.values(KINDS)) assert.ok(isStream(make([], 'end').stream))
    assert.ok(isStream(Readable.from(['a'])))
  })

  it('takes the rest for plain values', () => {
    const thrower = new Proxy(
      {},
      {
        get() {
          throw boom
        },
        getPrototypeOf() {
          throw boom
        },
      },
    )
    const plain = [
      'text',
      [1],
      new Set([1]),
      new Map(),
      (function* () {
        yield 1
      })(),
      null,
      undefined,
      7,
      () => {},
      {},
      { [Symbol.asyncIterator]: 1 },
      new Uint8Array(2),
      thrower,
    ]
    for (const value of plain) assert.equal(isStream(value), false)
  })
})

for (const [kind, make] of Object.entries(KINDS)) {
  describe(`watchStream of a ${kind}`, () => {
    const items = [{ a: 1 }, 'b', undefined, [3]]

    it('gives the very same items in order, and reports the end before the consumer sees it', async () => {
      const { watched, ends } = watch(make(items, 'end').stream)
      const read = await readAll(watched)
      assert.equal(read.items.length, items.length)
      for (const [i, item] of read.items.entries()) assert.equal(item, items[i])
      assert.deepEqual(ends, [{ how: 'ended' }])
    })

    it('waits for `onEnd`, and ignores its errors', async () => {
      for (const onEnd of [
        () => Promise.reject(boom),
        () => {
          throw boom
        },
      ]) {
        assert.deepEqual((await readAll(watch(make(items, 'end').stream, { onEnd }).watched)).items.length, 4)
      }
      let isTold = false
      const onEnd = async () => {
        await turn()
        isTold = true
      }
      await readAll(watch(make(items, 'end').stream, { onEnd }).watched)
      assert.ok(isTold)
    })

    it('reports an error, and throws it to the consumer', async () => {
      const { watched, ends } = watch(make(items, 'throw').stream)
      assert.deepEqual(await readAll(watched), { items, error: boom })
      assert.deepEqual(ends, [{ how: 'failed', error: boom }])
    })

    it('closes the source when the consumer breaks off', async () => {
      const { stream, closed } = make(items, 'hang')
      const { watched, ends } = watch(stream)
      for await (const item of watched) if (item === 'b') break
      assert.deepEqual([ends, closed()], [[{ how: 'abandoned' }], 1])
    })

    it('ends at the deadline: the consumer who waits gets the error', async () => {
      const { watched, ends } = watch(make(items, 'hang').stream, { deadlineMs: 5 })
      const { items: read, error } = await readAll(watched)
      assert.deepEqual(read, items)
      assert.match(String(error), /TimeoutError: the stream did not end in 0\.005 s/)
      assert.deepEqual(ends, [{ how: 'timeout', error }])
    })

    it('ends at the deadline: the consumer who comes later gets the error, once', async () => {
      const { stream, closed } = make(items, 'hang')
      const { watched, ends, told } = watch(stream, { deadlineMs: 1 })
      await told
      assert.match(String((await readAll(watched)).error), /TimeoutError/)
      if (kind !== 'readable') assert.deepEqual(await readAll(watched), { items: [] })
      assert.equal(ends.length, 1)
      // A generator that never began, and an iterable that was never opened, have nothing to close.
      assert.equal(closed(), kind === 'readable' ? 1 : 0)
    })

    it('ends when the call is aborted, before or while it is read', async () => {
      for (const isBefore of [true, false]) {
        const caller = createCanceller()
        if (isBefore) caller.abort(boom)
        const { watched, ends } = watch(make(items, 'hang').stream, { cancelling: caller })
        const reading = readAll(watched)
        await turn()
        caller.abort(boom)
        assert.deepEqual(await reading, { items: isBefore ? [] : items, error: boom })
        assert.deepEqual(ends, [{ how: 'aborted', error: boom }])
      }
    })

    it('ends one that floods, and the consumer sees why', async () => {
      const { stream, closed } = make(Array(1000).fill('ten chars'), 'hang')
      const { watched, ends } = watch(stream, { maxChars: 100 })
      const { items: read, error } = await readAll(watched)
      assert.equal(read.length, 9)
      assert.match(String(error), /StreamTooLongError: the stream was cut: it gave more than 100 characters/)
      assert.deepEqual([ends, closed()], [[{ how: 'flooded', error }], 1])
    })

    it('reports that nobody reads it when it is collected', async () => {
      const { stream, closed } = make(items, 'hang')
      const { ends, told } = await unheld(stream)
      await collected(told)
      assert.deepEqual(ends, [{ how: 'abandoned' }])
      assert.equal(closed(), kind === 'iterable' || kind === 'generator' ? 0 : 1)
    })

    it('is not collected while somebody waits for an item', async () => {
      const late = Promise.withResolvers<unknown>()
      const { waiting, ends, told } = waitingOnly(make, late.promise)
      const gc = exposedGc()
      for (let i = 0; i < 5; i++) {
        gc()
        await turn()
      }
      assert.deepEqual(ends, [])
      late.resolve('late')
      assert.equal(await waiting, 'late')
      await collected(told)
    })

    it('leaves no listener with a caller who stays', async () => {
      const listeners = new Set<() => void>()
      const cancelling = {
        aborted: false,
        reason: undefined,
        onAbort(listener: () => void) {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      }
      for (const then of ['end', 'throw'] as const)
        await readAll(watch(make(items, then).stream, { cancelling }).watched)
      for await (const _ of watch(make(items, 'hang').stream, { cancelling }).watched) break
      await watch(make(items, 'hang').stream, { cancelling, deadlineMs: 1 }).told
      assert.equal(listeners.size, 0)
    })

    it('is reported exactly once, wherever the consumer stops and whatever the source does', async () => {
      const then = fc.constantFrom<Then>('end', 'throw', 'hang')
      await fc.assert(
        fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 5 }), then, fc.nat(6), async (some, last, stopAt) => {
          const { stream } = make(some, last)
          const { watched, ends, told } = watch(stream, { deadlineMs: 2 })
          let count = 0
          try {
            for await (const item of watched) {
              assert.equal(item, some[count])
              if (++count > stopAt) break
            }
          } catch {
            // The property is of what is told.
          }
          await told
          await turn()
          assert.equal(ends.length, 1)
          if (count > stopAt) assert.equal(ends[0]?.how, 'abandoned')
        }),
        runs(50, 50),
      )
    })
  })
}

describe('watchStream', () => {
  it('passes what a generator is given and gives, its last value too', async () => {
    async function* talk(): AsyncGenerator<string, string, string> {
      const heard = yield 'hello'
      try {
        yield `you said ${heard}`
      } catch (error) {
        yield `you threw ${String(error)}`
      }
      return 'bye'
    }
    const { watched, ends } = watch(talk())
    assert.deepEqual(await watched.next(), { done: false, value: 'hello' })
    assert.deepEqual(await watched.next('hi' as never), { done: false, value: 'you said hi' })
    assert.deepEqual(await watched.throw('a stone'), { done: false, value: 'you threw a stone' })
    assert.deepEqual(await watched.next(), { done: true, value: 'bye' })
    assert.deepEqual(await watched.next(), { done: true, value: undefined })
    assert.deepEqual(await watched.return('x'), { done: true, value: 'x' })
    await assert.rejects(watched.throw(boom), boom)
    assert.deepEqual(ends, [{ how: 'ended' }])
  })

  it('shares the timer of those that have about as long', async () => {
    const delays = new Set<number>()
    const deadlines = createDeadlines(systemClock.monotonicMs)
    const counting: typeof deadlines = {
      ...deadlines,
      watch(timed, nowMs, delayMs) {
        delays.add(delayMs)
        return deadlines.watch(timed, nowMs, delayMs)
      },
    }
    for (const deadlineMs of [59_999.9, 59_950, 60_000, 4.5])
      await readAll(watch(generator([1], 'end').stream, { deadlines: counting, deadlineMs }).watched)
    assert.deepEqual([...delays], [60_000, 5])
  })

  it('passes return on, and goes on with a generator that yields in its finally', async () => {
    async function* stubborn() {
      try {
        yield 1
      } finally {
        yield 'one more'
      }
    }
    const { watched, ends } = watch(stubborn())
    await watched.next()
    assert.deepEqual(await watched.return('r' as never), { done: false, value: 'one more' })
    assert.deepEqual(ends, [])
    assert.deepEqual(await watched.next(), { done: true, value: 'r' })
    assert.equal(ends.length, 1)
  })

  it('reports a finally that throws', async () => {
    async function* broken() {
      try {
        yield 1
      } finally {
        // oxlint-disable-next-line no-unsafe-finally -- what a tool may do
        throw boom
      }
    }
    const { watched, ends } = watch(broken())
    await watched.next()
    await assert.rejects(watched.return(undefined), boom)
    assert.deepEqual(ends, [{ how: 'failed', error: boom }])
  })

  it('does not wait for ever for a source to close, and ends the wait for an item', async () => {
    const { watched, ends } = watch(generator([1], 'hang').stream as AsyncGenerator, { closeMs: 2 })
    await watched.next()
    const waiting = watched.next()
    assert.deepEqual(await watched.return('r'), { done: true, value: 'r' })
    assert.deepEqual(await waiting, { done: true, value: undefined })
    assert.deepEqual(ends, [{ how: 'abandoned' }])
  })

  it('does not wait for ever for a stream to be cancelled', async () => {
    const hanging = new ReadableStream({ cancel: never })
    const { watched, ends } = watch(hanging, { closeMs: 2 })
    await watched.cancel()
    assert.deepEqual(ends, [{ how: 'abandoned' }])
  })

  it('disposes', async () => {
    const { stream, closed } = generator([1, 2], 'end')
    const { watched, ends } = watch(stream as AsyncGenerator)
    await watched.next()
    await watched[Symbol.asyncDispose]()
    assert.deepEqual([ends, closed()], [[{ how: 'abandoned' }], 1])
  })

  it('reports a source that breaks the protocol', async () => {
    const streams = [
      { [Symbol.asyncIterator]: () => ({ next: () => 7 }) },
      { [Symbol.asyncIterator]: () => ({}) },
      {
        [Symbol.asyncIterator]() {
          throw boom
        },
      },
      {
        [Symbol.asyncIterator]: () => ({
          next() {
            throw boom
          },
        }),
      },
      {
        [Symbol.asyncIterator]: () => ({
          next: () => ({
            get done() {
              throw boom
            },
          }),
        }),
      },
    ]
    for (const stream of streams) {
      const { watched, ends } = watch(stream as unknown as AsyncIterable<unknown>)
      const { error } = await readAll(watched)
      assert.ok(error instanceof Error)
      assert.deepEqual(ends, [{ how: 'failed', error }])
    }
  })

  it('closes a source that throws when it is closed, and leaves nothing unhandled', async () => {
    const stream = {
      [Symbol.asyncIterator]: () => ({ next: never, return: () => Promise.reject(boom), throw: undefined }),
    } as unknown as AsyncGenerator
    const first = watch(stream, { deadlineMs: 1 })
    void first.watched.next()
    await first.told
    const second = watch(stream).watched
    void second.next()
    await assert.rejects(second.return(undefined), boom)
    await assert.rejects(watch(stream).watched.throw(new Error('a stone')), /a stone/)
    await turn()
  })

  it('destroys a stream of Node, read or not', async () => {
    for (const isRead of [true, false]) {
      const source = new Readable({ objectMode: true, read() {} })
      source.on('error', () => {})
      const { watched, told } = watch<AsyncIterable<unknown>>(source, { deadlineMs: 1 })
      if (isRead) await assert.rejects(watched[Symbol.asyncIterator]().next(), /TimeoutError/)
      await told
      assert.ok(source.destroyed)
    }
    const items = Readable.from(['a', 'b'])
    assert.deepEqual(await readAll(watch<AsyncIterable<unknown>>(items).watched), { items: ['a', 'b'] })
  })

  it('keeps a stream of bytes one that is read into a buffer', async () => {
    const source = new ReadableStream({
      type: 'bytes',
      pull(controller) {
        controller.enqueue(new Uint8Array([1, 2, 3]))
        controller.close()
      },
    })
    const { watched, ends } = watch(source)
    assert.ok(watched instanceof ReadableStream)
    const reader = watched.getReader({ mode: 'byob' })
    const first = await reader.read(new Uint8Array(2))
    assert.deepEqual([...(first.value ?? [])], [1, 2])
    assert.deepEqual([...((await reader.read(new Uint8Array(2))).value ?? [])], [3])
    assert.equal((await reader.read(new Uint8Array(2))).done, true)
    assert.deepEqual(ends, [{ how: 'ended' }])
  })

  it('returns nothing of a stream that another reader has locked, nor of one that it releases later', async () => {
    const { stream } = readable([1], 'end')
    const reader = (stream as ReadableStream).getReader()
    const { watched, ends, told } = watch(stream)
    await told
    reader.releaseLock()
    const { items, error } = await readAll(watched)
    assert.deepEqual([items, String(error)], [[], 'TypeError: the stream is locked to another reader'])
    assert.equal(ends[0]?.how, 'failed')
  })
})

function exposedGc(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

async function collected(told: Promise<void>): Promise<void> {
  const gc = exposedGc()
  const end = told.then(() => true)
  for (let i = 0; i < 100; i++) {
    gc()
    if (await Promise.race([end, new Promise((resolve) => setTimeout(resolve, 1))])) return
  }
}

/** Lets the watched stream go: only its ends are given. */
async function unheld(stream: AsyncIterable<unknown>) {
  const { ends, told } = watch(stream)
  return { ends, told }
}

/** Asks for one item, and lets the stream itself go. */
function waitingOnly(make: (items: readonly unknown[], then: Then) => Made, item: Promise<unknown>) {
  const slow = async function* () {
    yield await item
  }
  const stream = make === readable ? ReadableStream.from(slow()) : slow()
  const { watched, ends, told } = watch<AsyncIterable<unknown>>(stream)
  const waiting = watched[Symbol.asyncIterator]()
    .next()
    .then(({ value }) => value as unknown)
  return { waiting, ends, told }
}
