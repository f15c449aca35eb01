/** Counts the running calls of a server, over all of its users' lists. */
export class RunningCalls {
  #running = 0
  #idle: PromiseWithResolvers<void> | undefined

  /** Resolves when no call runs. */
  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : (this.#idle ??= Promise.withResolvers()).promise
  }

  async count<T>(running: Promise<T>): Promise<T> {
    this.#running++
    try {
      return await running
    } finally {
      this.#running--
      if (this.#running === 0) {
        this.#idle?.resolve()
        this.#idle = undefined
      }
    }
  }
}
