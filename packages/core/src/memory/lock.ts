import {
  type Cancelling,
  checkShape,
  createDeadlines,
  type Deadlines,
  shapeOf,
  type Timed,
  toCancelling,
  ToolgateError,
  type Watched,
} from '@toolgate/values'
import type { Clock, Lease, LockOptions, SessionLock } from '../ports/ports.ts'
import { systemClock } from './clock.ts'
import { checkLockOptions } from './lock-options.ts'

export interface MemoryLock extends SessionLock {
  /** How many sessions are held now. */
  readonly size: number
}

interface MemoryLockOptions {
  readonly clock?: Pick<Clock, 'monotonicMs'>
}

const OPTIONS = shapeOf<MemoryLockOptions>({ clock: true })

/** Creates a lock for the sessions of this process. Fencing tokens grow across all of its sessions. */
export function memoryLock(options: MemoryLockOptions = {}): MemoryLock {
  checkShape('memoryLock', options, OPTIONS)
  return new ProcessLock(options.clock ?? systemClock)
}

/** The waiters of one session, first come first. It exists exactly while the session is held. */
interface LockQueue {
  readonly session: string
  first: LockWaiter | undefined
  last: LockWaiter | undefined
}

// Classes, because every run takes a lease, and closures would cost more than the lease itself.

class ProcessLock implements MemoryLock {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #deadlines: Deadlines
  readonly #lines = new Map<string, LockQueue>()
  #token = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
    this.#deadlines = createDeadlines(() => clock.monotonicMs())
  }

  get size(): number {
    return this.#lines.size
  }

  acquire(session: string, options: LockOptions = {}): Promise<Lease> {
    checkLockOptions(options)
    const { signal, deadlineMs } = options
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's own
    if (signal?.aborted) return Promise.reject(signal.reason)
    const line = this.#lines.get(session)
    if (line === undefined) {
      const held: LockQueue = { session, first: undefined, last: undefined }
      this.#lines.set(session, held)
      return Promise.resolve(this.#leaseOf(held))
    }
    return new Promise((resolve, reject) => {
      const waiter = new LockWaiter(line, resolve, reject)
      if (signal) waiter.follow(toCancelling(signal))
      if (deadlineMs !== undefined && deadlineMs < Number.POSITIVE_INFINITY)
        waiter.expireAfter(this.#deadlines, this.#clock.monotonicMs(), deadlineMs)
    })
  }

  /** Gives the session to the next waiter, or removes it. */
  next(line: LockQueue): void {
    const waiter = line.first
    if (waiter === undefined) this.#lines.delete(line.session)
    else waiter.begin(this.#leaseOf(line))
  }

  #leaseOf(line: LockQueue): Lease {
    return new LockTurn(this, line, ++this.#token)
  }
}

class LockTurn implements Lease {
  readonly fencingToken: number
  readonly #lock: ProcessLock
  #line: LockQueue | undefined

  constructor(lock: ProcessLock, line: LockQueue, fencingToken: number) {
    this.#lock = lock
    this.#line = line
    this.fencingToken = fencingToken
  }

  release(): void {
    const line = this.#line
    this.#line = undefined
    if (line) this.#lock.next(line)
  }
}

class LockWaiter implements Timed {
  readonly #line: LockQueue
  readonly #resolve: (lease: Lease) => void
  readonly #reject: (reason: unknown) => void
  #before: LockWaiter | undefined
  #after: LockWaiter | undefined
  #unfollow: (() => void) | undefined
  #deadlines: Deadlines | undefined
  #watched: Watched | undefined

  constructor(line: LockQueue, resolve: (lease: Lease) => void, reject: (reason: unknown) => void) {
    this.#line = line
    this.#resolve = resolve
    this.#reject = reject
    this.#before = line.last
    if (line.last) line.last.#after = this
    else line.first = this
    line.last = this
  }

  follow(signal: Cancelling): void {
    this.#unfollow = signal.onAbort(() => {
      this.#leave()
      this.#reject(signal.reason)
    })
  }

  expireAfter(deadlines: Deadlines, nowMs: number, deadlineMs: number): void {
    this.#deadlines = deadlines
    this.#watched = deadlines.watch(this, nowMs, deadlineMs)
  }

  expire(): void {
    this.#watched = undefined
    this.#leave()
    this.#reject(new ToolgateError('lock_timeout', 'The session is busy: its turn did not come in time.'))
  }

  begin(lease: Lease): void {
    this.#leave()
    this.#resolve(lease)
  }

  #leave(): void {
    this.#unfollow?.()
    if (this.#watched) this.#deadlines?.unwatch(this.#watched)
    this.#watched = undefined
    if (this.#before) this.#before.#after = this.#after
    else this.#line.first = this.#after
    if (this.#after) this.#after.#before = this.#before
    else this.#line.last = this.#before
  }
}
