import { toCancelling } from '@toolgate/values'
import type { ServerConfig } from '../../config/config.ts'
import { findDownloads } from '../../config/fetched-program.ts'
import { CACHE_VARIABLES } from '../../util/package-caches.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** The time for a download, in addition to the time limit of a start. */
const DOWNLOAD_MS = 5 * 60_000

/** A start that may download packages. */
interface FetchingStart {
  /** The packages, as they are written. */
  readonly packages: readonly string[]
  /** Whether this command has not started before, so that it probably downloads. */
  readonly isFirst: boolean
  /**
   * Runs the start. A first start waits for that of another instance with the same packages. `extraMs`: the time that it
   * has in addition to its time limit.
   */
  run<T>(signal: AbortSignal, start: (extraMs: number) => Promise<T>): Promise<T>
}

/**
 * The commands whose first start downloads packages (`npx`, `uvx`, `docker run`) into the same folders, for all servers
 * of a gateway.
 *
 * Until a command has started once, its starts run one after the other, because instances share the folder of packages
 * and not every package manager locks it.
 */
export class FirstStarts {
  readonly #done = new Set<string>()
  readonly #running = new Map<string, Promise<unknown>>()

  /** Returns the next start of a server; `undefined` if its command downloads nothing. */
  of({ command, args, env }: Pick<ServerConfig, 'command' | 'args' | 'env'>): FetchingStart | undefined {
    const packages = command === undefined ? [] : findDownloads(command, args)
    if (packages.length === 0) return undefined
    const folders = CACHE_VARIABLES.map((name) => env[name])
    const key = JSON.stringify([command, packages, folders])
    return { packages, isFirst: !this.#done.has(key), run: (signal, start) => this.#run(key, signal, start) }
  }

  async #run<T>(key: string, signal: AbortSignal, start: (extraMs: number) => Promise<T>): Promise<T> {
    for (let before = this.#running.get(key); before && !signal.aborted; before = this.#running.get(key))
      await endOf(before, signal)
    if (this.#done.has(key)) return this.#again(key, start)
    const running = start(DOWNLOAD_MS)
    this.#running.set(key, running)
    try {
      const started = await running
      this.#done.add(key)
      return started
    } finally {
      this.#running.delete(key)
    }
  }

  /** Starts a command again. After a timeout the next start counts as a first one: there may be a new version. */
  async #again<T>(key: string, start: (extraMs: number) => Promise<T>): Promise<T> {
    try {
      return await start(0)
    } catch (error) {
      if (UpstreamError.from(error).code === 'upstream_timeout') this.#done.delete(key)
      throw error
    }
  }
}

/** Resolves when a start has ended or the signal is aborted. */
async function endOf(start: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const unwatch = toCancelling(signal).onAbort(() => resolve())
  try {
    await Promise.race([start.catch(() => undefined), aborted])
  } finally {
    unwatch()
  }
}
