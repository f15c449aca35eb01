/** Announcements within this time cause one read. */
const DEBOUNCE_MS = 25
/** The maximum number of reads without a pause. */
const BURST = 2
/** The pause after the burst. With the read after it, a change is seen within 500 ms. */
const FIRST_PAUSE_MS = 400
/** An announcement this soon after a read counts as its consequence, and doubles the next pause. */
const ECHO_MS = 100
const MAX_PAUSE_MS = 5_000
/** Without announcements for this long, the burst and the pause are reset. */
const RESET_MS = 2_000

const MIN_TTL_MS = 1_000
/** The interval for a TTL of 0. */
const NO_TTL_MS = 30_000
/** The interval for a server without a TTL: earlier revisions of MCP have none. */
const DEFAULT_TTL_MS = 60_000
/** The longest delay of a timer. */
const MAX_TTL_MS = 2 ** 31 - 1
/** The maximum share of time for reading, so that a slow list is read less often. */
const READING_SHARE = 1 / 20
/** The maximum share of time for reading announced changes. */
const ANNOUNCED_SHARE = 1 / 5

/**
 * Runs a refresh on request. Several requests cause one run. Runs never overlap, and never follow each other too
 * quickly.
 */
export interface Refresher {
  readonly request: () => void
  /** Requests a refresh once the list is stale. */
  requestAfterTtl(ttlMs: number | undefined): void
  close(): void
}

/** Returns a refresher. `refresh` returns the TTL of the list that it has read, and never rejects. */
export function createRefresher(refresh: () => Promise<number | undefined>): Refresher {
  return new BoundedRefresher(refresh)
}

type TimerName = 'soon' | 'echo' | 'pause' | 'reset' | 'stale'

class BoundedRefresher implements Refresher {
  readonly #refresh: () => Promise<number | undefined>
  readonly #timers = new Map<TimerName, NodeJS.Timeout>()
  #running = false
  #again = false
  #burst = BURST
  #pauseMs = FIRST_PAUSE_MS
  #tookMs = 0
  #closed = false

  constructor(refresh: () => Promise<number | undefined>) {
    this.#refresh = refresh
  }

  readonly request = (): void => {
    if (this.#closed) return
    const isEcho = this.#running || this.#timers.has('echo')
    if (!isEcho) this.#pauseMs = FIRST_PAUSE_MS
    this.#schedule()
  }

  #schedule(): void {
    this.#clear('reset')
    if (this.#running || this.#timers.has('pause')) this.#again = true
    else if (!this.#timers.has('soon')) this.#set('soon', DEBOUNCE_MS, () => void this.#runAnnounced())
  }

  requestAfterTtl(ttlMs: number | undefined): void {
    const wantedMs = ttlMs === 0 ? NO_TTL_MS : (ttlMs ?? DEFAULT_TTL_MS)
    const delayMs = Math.max(wantedMs, MIN_TTL_MS, this.#tookMs / READING_SHARE)
    this.#set('stale', Math.min(delayMs, MAX_TTL_MS), () => void this.#runStale())
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  async #run(): Promise<void> {
    this.#clear('soon')
    this.#running = true
    this.#again = false
    const startedMs = performance.now()
    const ttlMs = await this.#refresh()
    this.#tookMs = performance.now() - startedMs
    this.#running = false
    this.#set('echo', ECHO_MS, () => {})
    this.requestAfterTtl(ttlMs)
  }

  async #runStale(): Promise<void> {
    if (this.#running) return
    await this.#run()
    if (!this.#timers.has('pause')) this.#continue()
  }

  /** Delays reads after a burst. Reads of a stale list do not count. */
  async #runAnnounced(): Promise<void> {
    if (this.#running) {
      this.#again = true
      return
    }
    await this.#run()
    if (--this.#burst > 0) return this.#continue()
    this.#set('pause', Math.max(this.#pauseMs, this.#tookMs / ANNOUNCED_SHARE), () => this.#continue())
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS)
  }

  #continue(): void {
    if (!this.#again) return this.#set('reset', RESET_MS, () => this.#reset())
    this.#again = false
    this.#schedule()
  }

  #reset(): void {
    this.#burst = BURST
    this.#pauseMs = FIRST_PAUSE_MS
  }

  #set(name: TimerName, delayMs: number, due: () => void): void {
    this.#clear(name)
    if (this.#closed) return
    const timer = setTimeout(() => {
      this.#timers.delete(name)
      due()
    }, delayMs)
    this.#timers.set(name, timer)
  }

  #clear(name: TimerName): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
  }
}
