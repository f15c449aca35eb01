import { NEWER, NONE, OLDER, type Rows, wordsAt } from './rows.ts'

/** The rows of one length of window, in the order of their latest uses: the first is the first to pass. */
export interface PassingQueue {
  readonly id: number
  readonly windowMs: number
  oldest: number
  newest: number
  /** None of its rows passes before. */
  quietUntilMs: number
}

/** Rows in queues, one for each length of window that is in use. */
export class PassingOrder {
  /** Those that hold a row. */
  readonly queues: PassingQueue[] = []
  readonly #rows: Rows
  readonly #byWindow = new Map<number, PassingQueue>()
  readonly #byId: PassingQueue[] = []
  readonly #freeIds: number[] = []

  constructor(rows: Rows) {
    this.#rows = rows
  }

  byId(id: number): PassingQueue {
    return this.#byId[id] as PassingQueue
  }

  /** Gives the queue of a length of window, for a row to be put in it. */
  ofWindow(windowMs: number): PassingQueue {
    return this.#byWindow.get(windowMs) ?? this.#open(windowMs)
  }

  append(queue: PassingQueue, row: number): void {
    this.#joinOlder(queue, row, queue.newest)
    this.#joinNewer(queue, row, NONE)
    this.#joinNewer(queue, queue.newest, row)
    queue.newest = row
  }

  remove(queue: PassingQueue, row: number): void {
    const older = this.#olderOf(row)
    const newer = this.#newerOf(row)
    this.#joinNewer(queue, older, newer)
    this.#joinOlder(queue, newer, older)
    if (queue.oldest === NONE) this.#close(queue)
  }

  /** The row `from` has become the row `to`. */
  move(queue: PassingQueue, from: number, to: number): void {
    this.#joinNewer(queue, this.#olderOf(from), to)
    this.#joinOlder(queue, this.#newerOf(from), to)
  }

  #open(windowMs: number): PassingQueue {
    const id = this.#freeIds.pop() ?? this.#byId.length
    const queue: PassingQueue = { id, windowMs, oldest: NONE, newest: NONE, quietUntilMs: Number.NEGATIVE_INFINITY }
    this.#byId[id] = queue
    this.#byWindow.set(windowMs, queue)
    this.queues.push(queue)
    return queue
  }

  #close(queue: PassingQueue): void {
    this.#freeIds.push(queue.id)
    this.#byWindow.delete(queue.windowMs)
    this.queues.splice(this.queues.indexOf(queue), 1)
  }

  /** The end of a queue has no row, but what the queue itself begins or ends with. */
  #joinOlder(queue: PassingQueue, row: number, older: number): void {
    if (row === NONE) queue.newest = older
    else this.#rows.words(row)[wordsAt(row) + OLDER] = older
  }

  #joinNewer(queue: PassingQueue, row: number, newer: number): void {
    if (row === NONE) queue.oldest = newer
    else this.#rows.words(row)[wordsAt(row) + NEWER] = newer
  }

  #olderOf(row: number): number {
    return this.#rows.words(row)[wordsAt(row) + OLDER] as number
  }

  #newerOf(row: number): number {
    return this.#rows.words(row)[wordsAt(row) + NEWER] as number
  }
}
