import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'

/** Default of `everyMs`. */
const EVERY_MS = 1000

/**
 * Looks at a file from time to time, and calls back once its text is another one and has stayed so for two looks: it may
 * be written in parts.
 *
 * It opens the path anew at each look, so it sees a file that an editor renames into place, and the folder of links that
 * Kubernetes swaps, as well as one that is written in place. Times and sizes do not count: they may be the same.
 */
export class FileWatch {
  readonly #file: string
  readonly #onChanged: () => Promise<void>
  /** What was handled last, and what the last look found. */
  #handled: string | undefined
  #seen: string | undefined
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(file: string, onChanged: () => Promise<void>) {
    this.#file = file
    this.#onChanged = onChanged
  }

  /** Looks for the first time, and then again and again. The file as it is now is no change. */
  async start(everyMs: number = EVERY_MS): Promise<void> {
    this.#handled = this.#seen = await stateOf(this.#file)
    this.#timer = setInterval(() => void this.look(), everyMs).unref()
  }

  /** One look at a time. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    return this.#looking
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look(): Promise<void> {
    const now = await stateOf(this.#file)
    const isStill = now === this.#seen
    this.#seen = now
    if (!isStill || now === this.#handled) return
    this.#handled = now
    await this.#onChanged()
  }
}

const MAX_BYTES = 8 * 1024 * 1024

/** A file that is not there for a moment is another state. A pipe could be waited for, for ever. */
async function stateOf(file: string): Promise<string> {
  try {
    const stats = await stat(file)
    if (!stats.isFile() || stats.size > MAX_BYTES) return 'unreadable'
    return hash('sha256', await readFile(file))
  } catch {
    return 'unreadable'
  }
}
