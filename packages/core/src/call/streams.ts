import {
  type Cancelling,
  type Deadlines,
  isReadableStream,
  sizeOf,
  type Timed,
  TimeoutError,
  type Watched,
  withDeadline,
} from '@toolgate/values'
import type { Clock, MaybePromise } from '../ports/ports.ts'

/** How a stream ended. */
export type StreamEnd =
  /** All items were read. */
  | { readonly how: 'ended' }
  /** The stream threw, or broke the iterator protocol. */
  | { readonly how: 'failed'; readonly error: unknown }
  /** The consumer stopped reading, or dropped the stream without reading. */
  | { readonly how: 'abandoned' }
  | { readonly how: 'timeout' | 'aborted' | 'flooded'; readonly error: unknown }

export interface StreamOptions {
  /** Called exactly once. Its errors are ignored. */
  readonly onEnd: (end: StreamEnd) => MaybePromise<void>
  /** Called with each item before the consumer gets it. */
  readonly onItem?: ((item: unknown) => void) | undefined
  readonly deadlines: Deadlines
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Milliseconds from now until the last item. A deadline of a second or more is accurate to 100 ms. Default: none. */
  readonly deadlineMs?: number | undefined
  readonly cancelling?: Cancelling | undefined
  /** The most characters of all items together, as `sizeOf` counts. Default: no limit. */
  readonly maxChars?: number | undefined
  /** Milliseconds that a consumer who stops reading waits for the stream to close. Default: 1 s. */
  readonly closeMs?: number | undefined
}

const CLOSE_MS = 1000

/** A stream returned more characters than allowed. */
export class StreamTooLongError extends Error {
  override readonly name = 'StreamTooLongError'

  constructor(maxChars: number) {
    super(`the stream was cut: it gave more than ${maxChars} characters`)
  }
}

/**
 * Returns a stream of the same items in the same order, and reports how it ended.
 *
 * The end is reported exactly once: when the items end, when the stream throws, when the consumer stops reading or drops
 * the stream, when the call is aborted, at the deadline, and at too many characters. The consumer gets an error if the
 * stream throws, and in the last three cases. The source is always closed. A `ReadableStream` stays one; any other stream
 * becomes an async generator, which can be read once.
 */
export function watchStream<T extends AsyncIterable<unknown>>(stream: T, options: StreamOptions): T
export function watchStream(stream: AsyncIterable<unknown>, options: StreamOptions): AsyncIterable<unknown> {
  return isReadableStream(stream) ? watchReadable(stream, options) : watchIterable(stream, options)
}

/** Ends streams that were garbage-collected before they were read to the end. */
const unread = new FinalizationRegistry<StreamWatch>((watch) => watch.abandon())

/**
 * Tracks how one stream ends. Must not reference anything that references the consumer's object, which would then never be
 * garbage-collected.
 */
class StreamWatch implements Timed {
  readonly #options: StreamOptions
  readonly #deadlineMs: number | undefined
  readonly #closeSource: () => unknown
  readonly #failConsumer: (error: unknown) => void
  #ending: Promise<void> | undefined
  #watched: Watched | undefined
  #unlisten: (() => void) | undefined
  #chars = 0

  constructor(options: StreamOptions, closeSource: () => unknown, failConsumer: (error: unknown) => void) {
    this.#options = options
    this.#deadlineMs = options.deadlineMs === undefined ? undefined : rounded(options.deadlineMs)
    this.#closeSource = closeSource
    this.#failConsumer = failConsumer
  }

  start(given: object): void {
    const { deadlines, clock, cancelling } = this.#options
    if (cancelling?.aborted) return this.#abort(cancelling)
    unread.register(given, this, this)
    if (this.#deadlineMs !== undefined) this.#watched = deadlines.watch(this, clock.monotonicMs(), this.#deadlineMs)
    this.#unlisten = cancelling?.onAbort(() => this.#abort(cancelling))
  }

  expire(): void {
    const seconds = (this.#deadlineMs ?? 0) / 1000
    this.#stop('timeout', new DOMException(`the stream did not end in ${seconds} s`, 'TimeoutError'))
  }

  #abort({ reason }: Cancelling): void {
    this.#stop('aborted', reason ?? new DOMException('the call was aborted', 'AbortError'))
  }

  /** Ends the stream, because nobody will read or close it. */
  abandon(): void {
    void this.end({ how: 'abandoned' })
    dropResult(this.#closeSource)
  }

  /** Returns whether an item may still be passed on; if not, stops the stream. */
  admits(item: unknown): boolean {
    const { maxChars = Infinity } = this.#options
    if (this.isOver) return false
    if (maxChars !== Infinity) this.#chars += sizeOf(item, maxChars - this.#chars)
    if (this.#chars > maxChars) {
      this.#stop('flooded', new StreamTooLongError(maxChars))
      return false
    }
    this.#options.onItem?.(item)
    return true
  }

  get isOver(): boolean {
    return this.#ending !== undefined
  }

  /** Resolves when the end has been reported. Only the first end counts. */
  end(end: StreamEnd): Promise<void> {
    if (this.#ending) return this.#ending
    this.#ending = tellEnd(this.#options, end)
    unread.unregister(this)
    if (this.#watched) this.#options.deadlines.unwatch(this.#watched)
    this.#unlisten?.()
    return this.#ending
  }

  /** Ends the stream. The consumer gets the error. */
  #stop(how: 'timeout' | 'aborted' | 'flooded', error: unknown): void {
    if (this.isOver) return
    void this.end({ how, error })
    dropResult(this.#closeSource)
    this.#failConsumer(error)
  }

  /** Waits for the source to close. Returns `otherwise` if that takes too long. */
  closed<T>(closing: PromiseLike<T>, otherwise: T): Promise<T> {
    const { deadlines, clock, closeMs = CLOSE_MS } = this.#options
    return withDeadline(closing, deadlines, clock, closeMs).catch((error: unknown) => {
      if (error instanceof TimeoutError) return otherwise
      throw error
    })
  }
}

/** Rounds the rest of a deadline, because one timer serves all equal waits. */
function rounded(deadlineMs: number): number {
  const stepMs = deadlineMs < 1000 ? 1 : 100
  return Math.ceil(deadlineMs / stepMs) * stepMs
}

async function tellEnd({ onEnd }: StreamOptions, end: StreamEnd): Promise<void> {
  try {
    await onEnd(end)
  } catch {
    // An error in `onEnd` must not keep items from the consumer.
  }
}

function dropResult(work: () => unknown): void {
  new Promise((resolve) => resolve(work())).catch(() => {})
}

function watchIterable(stream: AsyncIterable<unknown>, options: StreamOptions): AsyncGenerator {
  const source = new StreamSource(stream)
  const asks = new Set<PendingRead>()
  const watch = new StreamWatch(
    options,
    () => source.close(),
    (error) => {
      // If the consumer is not waiting, it gets the error at the next read.
      if (asks.size === 0) source.error = { error }
      for (const ask of asks) ask.reject(error)
    },
  )
  const given = new WatchedGenerator(source, watch, asks)
  watch.start(given)
  return given
}

/** The tool's stream, opened when it is first read. */
class StreamSource {
  readonly stream: AsyncIterable<unknown> & Partial<AsyncIterator<unknown>> & { destroy?: unknown }
  /** An error that the consumer has not read yet. */
  error: { readonly error: unknown } | undefined
  #iterator: AsyncIterator<unknown> | undefined

  constructor(stream: AsyncIterable<unknown>) {
    this.stream = stream
  }

  open(): AsyncIterator<unknown> {
    return (this.#iterator ??= this.stream[Symbol.asyncIterator]())
  }

  /** Closes the source and returns its answer, if there is one. */
  close(value?: unknown): MaybePromise<IteratorResult<unknown>> | undefined {
    const { stream } = this
    // Closes a Node stream even during a read or before the first read.
    if (typeof stream.destroy === 'function') stream.destroy()
    // A stream that is its own iterator, such as a generator, starts nothing when it is opened.
    const opened = this.#iterator ?? (typeof stream.next === 'function' ? this.open() : undefined)
    return opened?.return?.(value)
  }
}

/** A read that the consumer waits for. References the stream, which must not be collected meanwhile. */
class PendingRead {
  readonly holder: WatchedGenerator
  readonly promise: Promise<IteratorResult<unknown>>
  readonly resolve: (result: IteratorResult<unknown>) => void
  readonly reject: (error: unknown) => void

  constructor(holder: WatchedGenerator) {
    this.holder = holder
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<unknown>>()
    this.promise = promise
    this.resolve = resolve
    this.reject = reject
    // A read that the consumer stopped waiting for may be rejected at the deadline of another.
    promise.catch(() => {})
  }
}

type ReadStep = () => MaybePromise<IteratorResult<unknown>>

class WatchedGenerator implements AsyncGenerator {
  readonly #source: StreamSource
  readonly #watch: StreamWatch
  readonly #asks: Set<PendingRead>

  constructor(source: StreamSource, watch: StreamWatch, asks: Set<PendingRead>) {
    this.#source = source
    this.#watch = watch
    this.#asks = asks
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return(undefined)
  }

  next(value?: unknown): Promise<IteratorResult<unknown>> {
    return this.#ask(() => this.#source.open().next(value), 'ended')
  }

  return(value: unknown): Promise<IteratorResult<unknown>> {
    const done = { done: true as const, value }
    if (this.#watch.isOver) return Promise.resolve(done)
    return this.#ask(() => {
      const closing = this.#source.close(value)
      return closing === undefined ? done : this.#watch.closed(Promise.resolve(closing), done)
    }, 'abandoned')
  }

  throw(error: unknown): Promise<IteratorResult<unknown>> {
    if (this.#watch.isOver) return Promise.reject(error)
    return this.#ask(() => {
      const iterator = this.#source.open()
      if (iterator.throw) return iterator.throw(error)
      dropResult(() => this.#source.close())
      throw error
    }, 'ended')
  }

  #ask(step: ReadStep, how: 'ended' | 'abandoned'): Promise<IteratorResult<unknown>> {
    if (this.#watch.isOver) return this.#afterEnd()
    const ask = new PendingRead(this)
    this.#asks.add(ask)
    void this.#answer(ask, step, how)
    return ask.promise
  }

  async #answer(ask: PendingRead, step: ReadStep, how: 'ended' | 'abandoned'): Promise<void> {
    try {
      const result = await step()
      if (typeof result !== 'object' || result === null) throw new TypeError('the stream gave no iterator result')
      if (result.done) await this.#watch.end({ how })
      if (result.done || this.#watch.admits(result.value)) ask.resolve(result)
      if (result.done) this.#finish()
    } catch (error) {
      await this.#watch.end({ how: 'failed', error })
      ask.reject(error)
    } finally {
      this.#asks.delete(ask)
    }
  }

  /** Ends a pending read of a closed stream. */
  #finish(): void {
    for (const ask of this.#asks) ask.resolve({ done: true, value: undefined })
  }

  #afterEnd(): Promise<IteratorResult<unknown>> {
    const { error } = this.#source
    this.#source.error = undefined
    return error ? Promise.reject(error.error) : Promise.resolve({ done: true, value: undefined })
  }
}

function watchReadable(stream: ReadableStream<unknown>, options: StreamOptions): ReadableStream<unknown> {
  if (stream.locked) return refuseLocked(options)
  const type = isByteStream(stream) ? 'bytes' : undefined
  const source = stream.getReader()
  let given: WeakRef<Controller> | undefined
  const watch = new StreamWatch(
    options,
    () => source.cancel(),
    (error) => given?.deref()?.error(error),
  )
  const watched = new ReadableStream<unknown>(
    {
      type: type as undefined,
      start(controller) {
        given = new WeakRef<Controller>(controller)
      },
      pull: (controller) => pullItem(source, watch, controller),
      async cancel(reason) {
        if (watch.isOver) return
        const closing = watch.closed(source.cancel(reason), undefined)
        // The consumer handles an error of closing: the returned promise rejects with it.
        await closing.catch(() => {})
        await watch.end({ how: 'abandoned' })
        await closing
      },
    },
    { highWaterMark: 0 },
  )
  watch.start(watched)
  return watched
}

/**
 * Somebody else holds a reader of the stream, and could release it to an unwatched reader. The returned stream only throws
 * an error that says so.
 */
function refuseLocked(options: StreamOptions): ReadableStream<unknown> {
  const error = new TypeError('the stream is locked to another reader')
  void tellEnd(options, { how: 'failed', error })
  return new ReadableStream({ start: (controller) => controller.error(error) })
}

type Controller = Pick<ReadableStreamDefaultController<unknown>, 'error'>

async function pullItem(
  source: ReadableStreamDefaultReader<unknown>,
  watch: StreamWatch,
  controller: ReadableStreamDefaultController<unknown>,
): Promise<void> {
  try {
    const { done, value } = await source.read()
    if (done) {
      await watch.end({ how: 'ended' })
      controller.close()
      // A consumer that reads into its own buffer gets the buffer back empty.
      ;(controller as Partial<ReadableByteStreamController>).byobRequest?.respond(0)
    } else if (watch.admits(value)) controller.enqueue(value)
  } catch (error) {
    await watch.end({ how: 'failed', error })
    throw error
  }
}

/** Returns whether a stream is a byte stream. Such a stream can be read into the consumer's buffer, and stays one. */
function isByteStream(stream: ReadableStream<unknown>): boolean {
  try {
    ;(stream as ReadableStream<Uint8Array<ArrayBuffer>>).getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}
