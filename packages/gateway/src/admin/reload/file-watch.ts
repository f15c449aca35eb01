import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'

/** The default of `everyMs`, in milliseconds. */
const EVERY_MS = 1000

/**
 * Checks a file periodically. It reports a changed text once two checks have found the same text, because the file may
 * be written in parts.
 *
 * Each check opens the path again. So it works for a file that an editor renames into place, for the folder of links
 * that Kubernetes swaps, and for a file that is written in place. Times and sizes are ignored, as they may stay the
 * same.
 */
export class FileWatch {
  readonly #file: string
  readonly #onChanged: () => Promise<void>
  /** The last handled state. The next field is the state at the last check. */
  #handled: string | undefined
  #seen: string | undefined
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(file: string, onChanged: () => Promise<void>) {
    this.#file = file
    this.#onChanged = onChanged
  }

  /** Starts the checks. The current file does not count as a change. */
  async start(everyMs: number = EVERY_MS): Promise<void> {
    this.#handled = this.#seen = await stateOf(this.#file)
    this.#timer = setInterval(() => void this.look(), everyMs).unref()
  }

  /** Checks the file, one check at a time. Never rejects. */
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

/** Returns the state of the file. A missing file is a state too. A pipe is not read, since that could block forever. */
async function stateOf(file: string): Promise<string> {
  try {
    const stats = await stat(file)
    if (!stats.isFile() || stats.size > MAX_BYTES) return 'unreadable'
    return hash('sha256', await readFile(file))
  } catch {
    return 'unreadable'
  }
}
