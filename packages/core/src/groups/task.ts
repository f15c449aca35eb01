import { type Outcome, startTask, TimeoutError } from '@toolgate/values'

interface GroupTaskOptions<T> {
  run(signal: AbortSignal): T | PromiseLike<T>
  readonly deadlineMs: () => number
  /** Called at the start, before `run`. */
  readonly onBegin?: () => void
  /** Called at the end, unless the task was closed. */
  readonly onEnd: (outcome: Outcome<T>) => void
  /** Calls `run` when it is the task's turn. The task calls `done` at the end. Default: at once. */
  readonly inTurn?: (run: (done: () => void) => void) => void
}

/** Bounds work that ignores its signal. */
const MAX_LEFT = 3

/** Repeated work, such as a probe or a load of tools: one run at a time, with a deadline. */
export class GroupTask<T> {
  readonly #options: GroupTaskOptions<T>
  #underWay: PromiseWithResolvers<void> | undefined
  #stop: (() => void) | undefined
  /** How many runs have not ended, including those that timed out. */
  #left = 0
  #isClosed = false

  constructor(options: GroupTaskOptions<T>) {
    this.#options = options
  }

  get isUnderWay(): boolean {
    return this.#underWay !== undefined
  }

  /** Begins, unless it is under way or closed. Resolves at the end, also when it fails. */
  begin(): Promise<void> {
    if (this.#underWay) return this.#underWay.promise
    if (this.#isClosed) return Promise.resolve()
    const { promise } = (this.#underWay = Promise.withResolvers<void>())
    const { inTurn = (run) => run(() => {}), onBegin } = this.#options
    onBegin?.()
    inTurn((done) => this.#run(done))
    return promise
  }

  close(): void {
    this.#isClosed = true
    this.#stop?.()
    this.#underWay?.resolve()
  }

  #run(done: () => void): void {
    const deadlineMs = this.#options.deadlineMs()
    const end = (outcome: Outcome<T>) => {
      done()
      this.#end(outcome)
    }
    if (this.#isClosed || this.#left >= MAX_LEFT) return end({ error: new TimeoutError(deadlineMs) })
    this.#left++
    const stop = startTask<T>({
      run: (signal) => this.#options.run(signal),
      deadlineMs,
      onEnd: end,
      onOver: () => this.#left--,
    })
    if (this.#underWay) this.#stop = stop
  }

  #end(outcome: Outcome<T>): void {
    const underWay = this.#underWay
    this.#underWay = undefined
    this.#stop = undefined
    if (!this.#isClosed) this.#options.onEnd(outcome)
    underWay?.resolve()
  }
}
