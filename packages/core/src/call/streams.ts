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

/** How a stream came to its end. */
export type StreamEnd =
  /** It gave all it had. */
  | { readonly how: 'ended' }
  /** It threw, or kept no protocol. */
  | { readonly how: 'failed'; readonly error: unknown }
  /** Nobody reads on: the consumer broke off, or let it go without reading. */
  | { readonly how: 'abandoned' }
  | { readonly how: 'timeout' | 'aborted' | 'flooded'; readonly error: unknown }

export interface StreamOptions {
  /** Called exactly once. Its errors are ignored. */
  readonly onEnd: (end: StreamEnd) => MaybePromise<void>
  /** Told of each item before the consumer has it. */
  readonly onItem?: ((item: unknown) => void) | undefined
  readonly deadlines: Deadlines
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** From now on, until the last item; one of a second or more is kept to 100 ms. Default: no end. */
  readonly deadlineMs?: number | undefined
  readonly cancelling?: Cancelling | undefined
  /** Of all items together, as `sizeOf` counts. Default: no end. */
  readonly maxChars?: number | undefined
  /** How long a consumer who breaks off waits for the stream to close. Default: 1 s. */
  readonly closeMs?: number | undefined
}

const CLOSE_MS = 1000

/** A stream gave more than it may. */
export class StreamTooLongError extends Error {
  override readonly name = 'StreamTooLongError'

  constructor(maxChars: number) {
    super(`the stream was cut: it gave more than ${maxChars} characters`)
  }
}

/**
 * Returns a stream of the same items in the same order, and reports how it ended.
 *
 * The end is reported exactly once: when the items end, when the stream throws (the consumer gets the error too), when
 * the
 * consumer breaks off or lets the stream go unread, when the call is aborted, at the deadline, and when there are more
 * characters than may be; at the last three the consumer gets an error. In each case the source is closed. A
 * `ReadableStream` stays one; of any other stream an async generator is given, which is read once.
 */
export function watchStream<T extends AsyncIterable<unknown>>(stream: T, options: StreamOptions): T
export function watchStream(stream: AsyncIterable<unknown>, options: StreamOptions): AsyncIterable<unknown> {
  return isReadableStream(stream) ? watchReadable(stream, options) : watchIterable(stream, options)
}

/** Ends streams that were collected before their end was read. */
const unread = new FinalizationRegistry<StreamWatch>((watch) => watch.abandon())

/** How one stream ends. Holds nothing that holds what the consumer has: else that would never be let go. */
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

  /** Nobody will read on, or close it. */
  abandon(): void {
    void this.end({ how: 'abandoned' })
    dropResult(this.#closeSource)
  }

  /** Answers whether an item may still be given; if not, the stream has been stopped. */
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

  /** Waits for the source to close. Returns `otherwise` when that takes too long. */
  closed<T>(closing: PromiseLike<T>, otherwise: T): Promise<T> {
    const { deadlines, clock, closeMs = CLOSE_MS } = this.#options
    return withDeadline(closing, deadlines, clock, closeMs).catch((error: unknown) => {
      if (error instanceof TimeoutError) return otherwise
      throw error
    })
  }
}

/** Rounds the rest of a deadline, as one timer serves all that wait equally long. */
function rounded(deadlineMs: number): number {
  const stepMs = deadlineMs < 1000 ? 1 : 100
  return Math.ceil(deadlineMs / stepMs) * stepMs
}

async function tellEnd({ onEnd }: StreamOptions, end: StreamEnd): Promise<void> {
  try {
    await onEnd(end)
  } catch {
    // A fault in `onEnd` must not take the items from the consumer.
  }
}

function dropResult(work: () => unknown): void {
  new Promise((resolve) => resolve(work())).catch(() => {})
}

function watchIterable(stream: AsyncIterable<unknown>, options: StreamOptions): AsyncGenerator {
  const source = new Source(stream)
  const asks = new Set<Ask>()
  const watch = new StreamWatch(
    options,
    () => source.close(),
    (error) => {
      // A consumer that is not waiting gets it at the next read.
      if (asks.size === 0) source.error = { error }
      for (const ask of asks) ask.reject(error)
    },
  )
  const given = new WatchedGenerator(source, watch, asks)
  watch.start(given)
  return given
}

/** The tool's stream, opened when it is first read. */
class Source {
  readonly stream: AsyncIterable<unknown> & Partial<AsyncIterator<unknown>> & { destroy?: unknown }
  /** The end that the consumer has not read yet. */
  error: { readonly error: unknown } | undefined
  #iterator: AsyncIterator<unknown> | undefined

  constructor(stream: AsyncIterable<unknown>) {
    this.stream = stream
  }

  open(): AsyncIterator<unknown> {
    return (this.#iterator ??= this.stream[Symbol.asyncIterator]())
  }

  /** Returns the answer of the source, where it has one. */
  close(value?: unknown): MaybePromise<IteratorResult<unknown>> | undefined {
    const { stream } = this
    // A stream of Node closes by this even while it is asked for an item, or before it was read.
    if (typeof stream.destroy === 'function') stream.destroy()
    // One that is its own iterator, as a generator is, starts nothing by being opened.
    const opened = this.#iterator ?? (typeof stream.next === 'function' ? this.open() : undefined)
    return opened?.return?.(value)
  }
}

/** An item that the consumer waits for. Holds the stream, which must not be let go meanwhile. */
class Ask {
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
    // One that the consumer has stopped waiting for may be rejected at a deadline that is not its own.
    promise.catch(() => {})
  }
}

type Step = () => MaybePromise<IteratorResult<unknown>>

class WatchedGenerator implements AsyncGenerator {
  readonly #source: Source
  readonly #watch: StreamWatch
  readonly #asks: Set<Ask>

  constructor(source: Source, watch: StreamWatch, asks: Set<Ask>) {
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

  #ask(step: Step, how: 'ended' | 'abandoned'): Promise<IteratorResult<unknown>> {
    if (this.#watch.isOver) return this.#afterEnd()
    const ask = new Ask(this)
    this.#asks.add(ask)
    void this.#answer(ask, step, how)
    return ask.promise
  }

  async #answer(ask: Ask, step: Step, how: 'ended' | 'abandoned'): Promise<void> {
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

  /** Ends the wait for an item of a stream that was closed. */
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
        // Whether it closes well is for the consumer, who gets what this rejects with.
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
 * Somebody has it in hand already, and who lets it go later would give it to a reader whom nobody watches: what is
 * given
 * instead only says so.
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
      // A consumer that reads into its own buffer gets it back empty.
      ;(controller as Partial<ReadableByteStreamController>).byobRequest?.respond(0)
    } else if (watch.admits(value)) controller.enqueue(value)
  } catch (error) {
    await watch.end({ how: 'failed', error })
    throw error
  }
}

/** A stream of bytes can be read into the consumer's buffer, and stays one. */
function isByteStream(stream: ReadableStream<unknown>): boolean {
  try {
    ;(stream as ReadableStream<Uint8Array<ArrayBuffer>>).getReader({ mode: 'byob' }).releaseLock()
    return true
  } catch {
    return false
  }
}
