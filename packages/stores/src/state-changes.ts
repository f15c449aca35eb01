import { createEmitter } from '@toolgate/values'

/** The time between polls, in milliseconds. Changes must be seen within a second. */
const POLL_MS = 250

/**
 * Notifies listeners of changes of the state. Each change increments the state's revision. While there are listeners,
 * it polls four times a second for changes by other processes.
 */
export class StateChanges {
  readonly #emitter = createEmitter()
  readonly #readRevision: () => Promise<number>
  /** The latest revision that the listeners know. */
  #revision: number
  #timer: NodeJS.Timeout | undefined

  constructor(readRevision: () => Promise<number>, seen: number) {
    this.#readRevision = readRevision
    this.#revision = seen
  }

  /** Notifies the listeners, if they do not know this revision yet. */
  readonly notify = (revision: number): void => {
    if (revision === this.#revision) return
    this.#revision = revision
    this.#emitter.emit()
  }

  /** The first poll comes soon, and also notifies of changes since the last subscription. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#timer ??= setTimeout(() => void this.#poll(), 0).unref()
    return this.#emitter.subscribe(listener)
  }

  readonly close = (): void => {
    this.#emitter.clear()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async #poll(): Promise<void> {
    try {
      this.notify(await this.#readRevision())
    } catch {
      // The next poll comes soon. Meanwhile reads and writes report the fault.
    }
    this.#timer = this.#emitter.size > 0 ? setTimeout(() => void this.#poll(), POLL_MS).unref() : undefined
  }
}
