import { ConfigError } from '@toolgate/core'
import { isObject } from '@toolgate/values/json'
import { messageOf, sha256Hex } from '@toolgate/values'
import type { Clock, Fence, StateStore } from '@toolgate/core/stores'

/** A configuration that all replicas run: the text of a file. Each replica fills the `${…}` itself. */
interface Published {
  /** Hash of the text. */
  readonly id: string
  readonly text: string
  /** When it was published, in wall-clock milliseconds. */
  readonly at: number
  /** The person who published it; absent for the file of the first replica. */
  readonly by?: string | undefined
}

const KEY = 'config:published'
const ID_LENGTH = 16
/** A configuration that cannot run is tried again after this time, as a missing secret file may have been added. */
const RETRY_MS = 5000

/** Returns the id of a configuration's text. */
export function idOfText(text: string): string {
  return sha256Hex(text).slice(0, ID_LENGTH)
}

/** The published configuration of a state store. */
export class Publication {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>
  #sinceMs = 0
  #running: Published | undefined
  #candidate: Published | undefined
  #refused: { readonly id: string; readonly atMs: number; readonly error: unknown } | undefined

  constructor(state: StateStore, clock: Pick<Clock, 'wallMs'>) {
    this.#state = state
    this.#clock = clock
  }

  /** The configuration that this replica runs. */
  get running(): Published {
    if (!this.#running) throw new ConfigError('stores', 'are not open yet')
    return this.#running
  }

  /** When this replica began to run it, in wall-clock milliseconds. */
  get sinceMs(): number {
    return this.#sinceMs
  }

  /** The configuration that is being tried, or is running. */
  get candidate(): Published {
    return this.#candidate ?? this.running
  }

  /** Returns the published configuration. In an empty store, the text is published first. */
  async open(text: string): Promise<Published> {
    const own = this.#toPublished(text, undefined)
    const before = await this.#read()
    if (!before) await this.#put(own, (value) => this.#state.add(KEY, value))
    return this.#run(before ?? (await this.#read()) ?? own)
  }

  /** Returns the id of the published configuration, which this replica may not run yet. */
  async latestId(): Promise<string | undefined> {
    return (await this.#read())?.id
  }

  /** Publishes a text. When the promise resolves, every replica runs it. @throws {ConfigError} */
  async publish(text: string, by: string | undefined, fence?: Fence): Promise<Published> {
    const published = this.#toPublished(text, by)
    await this.#put(published, (value) => this.#state.set(KEY, value, { fence }))
    return published
  }

  /** Runs each later publication before the lease covers it. Returns the function that stops this. */
  follow(run: (published: Published) => Promise<unknown>): () => void {
    return this.#state.subscribe((change) => {
      const applied = this.#follow(run)
      if (change) change.waitUntil(applied)
      else void applied.catch(() => undefined)
    })
  }

  async #follow(run: (published: Published) => Promise<unknown>): Promise<void> {
    const published = await this.#read()
    if (!published) throw new Error('the published configuration is gone, or cannot be read')
    if (published.id === this.#running?.id) return
    const { id } = published
    const nowMs = this.#clock.wallMs()
    if (this.#refused?.id === id && Math.abs(nowMs - this.#refused.atMs) < RETRY_MS) throw this.#refused.error
    this.#candidate = published
    try {
      await run(published)
      this.#run(published)
      this.#refused = undefined
    } catch (cause) {
      const error = new Error(`the configuration ${id} cannot be run here: ${messageOf(cause)}`, { cause })
      this.#refused = { id, atMs: nowMs, error }
      throw error
    } finally {
      this.#candidate = undefined
    }
  }

  #run(published: Published): Published {
    this.#sinceMs = this.#clock.wallMs()
    return (this.#running = published)
  }

  async #put(published: Published, put: (value: Published) => unknown): Promise<void> {
    try {
      await put(published)
    } catch (error) {
      throw new ConfigError('stores', `the configuration cannot be published: ${messageOf(error)}`, { cause: error })
    }
  }

  async #read(): Promise<Published | undefined> {
    return toPublished(await this.#state.get(KEY))
  }

  #toPublished(text: string, by: string | undefined): Published {
    return { id: idOfText(text), text, at: this.#clock.wallMs(), ...(by === undefined ? {} : { by }) }
  }
}

/** Returns `undefined` for an invalid value, or for a text with another hash. */
function toPublished(value: unknown): Published | undefined {
  if (!isObject(value)) return undefined
  const { id, text, at, by } = value
  if (typeof text !== 'string' || typeof at !== 'number' || id !== idOfText(text)) return undefined
  return { id, text, at, ...(typeof by === 'string' ? { by } : {}) }
}
