import { createEmitter } from '@toolgate/values'
import type { MaybePromise } from '@toolgate/core/internal'

/** Well below the second within which a change must be seen. */
const POLL_MS = 250

/**
 * Notifies listeners of changes of the state, which has a number that each change counts up. While there are listeners, it
 * polls four times a second for changes of other processes.
 */
export class StateChanges {
  readonly #emitter = createEmitter()
  readonly #readRevision: () => MaybePromise<number>
  /** The changes that the listeners know of. */
  #revision: number
  #timer: NodeJS.Timeout | undefined

  constructor(readRevision: () => MaybePromise<number>, seen: number) {
    this.#readRevision = readRevision
    this.#revision = seen
  }

  /** Notifies the listeners, if they do not know of so many changes yet. */
  readonly notify = (revision: number): void => {
    if (revision === this.#revision) return
    this.#revision = revision
    this.#emitter.emit()
  }

  /** The first poll is soon: it also notifies of changes since the last subscription. */
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
      // The next poll is soon; reads and writes report the fault meanwhile.
    }
    this.#timer = this.#emitter.size > 0 ? setTimeout(() => void this.#poll(), POLL_MS).unref() : undefined
  }
}
