import { type Link, LinkedList } from '@toolgate/values'

/** A response that may stay silent for a long time. */
export interface Silent {
  /** Called at each interval. */
  tick(): void
}

/** The interval. Proxies and clients close connections that are silent for long. */
const EVERY_MS = 5_000

/** Calls `tick` on all open responses. They share one timer. */
export class KeepAlive {
  readonly #silent = new LinkedList<Silent>()
  readonly #everyMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(everyMs: number = EVERY_MS) {
    this.#everyMs = everyMs
  }

  add(one: Silent): Link<Silent> {
    this.#timer ??= setInterval(() => this.#tick(), this.#everyMs).unref()
    return this.#silent.add(one)
  }

  remove(link: Link<Silent>): void {
    this.#silent.remove(link)
  }

  #tick(): void {
    for (const one of this.#silent.items()) one.tick()
    // Calls start and end more often than the timer fires, so the timer is stopped only here.
    if (!this.#silent.isEmpty) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
