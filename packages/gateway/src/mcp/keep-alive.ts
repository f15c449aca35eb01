import { type Link, LinkedList } from '@toolgate/values'

/** A response that may be silent for long. */
export interface Silent {
  /** Called every so often. */
  tick(): void
}

/** Proxies and clients give up on connections that are silent for long. */
const EVERY_MS = 5_000

/** Ticks for the responses that are under way. One timer serves all. */
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
    // Calls come and go faster than the timer, so it is stopped only here.
    if (!this.#silent.isEmpty) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
