const FIRST_MS = 10_000
const EVERY_MS = 3_600_000

/** Runs rounds of background work, one at a time: soon after the start, and then every hour. */
export class Rounds {
  readonly #round: () => Promise<void>
  readonly #onFault: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(round: () => Promise<void>, onFault: (error: unknown) => void) {
    this.#round = round
    this.#onFault = onFault
  }

  /** Whether a round should end early. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  start(): void {
    this.#schedule(FIRST_MS)
  }

  /** Runs a round now, or waits for the current one. @throws the round's error */
  run(): Promise<void> {
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Waits for the current round, which ends early. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running?.catch(() => {})
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => void this.#runScheduled(), ms).unref()
  }

  async #runScheduled(): Promise<void> {
    await this.run().catch(this.#onFault)
    if (!this.#isClosed) this.#schedule(EVERY_MS)
  }
}
