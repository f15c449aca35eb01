import { runWithDeadline } from '@toolgate/values'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'

export interface FleetFailuresDeps {
  /** The incarnation of this replica. */
  readonly incarnation: string
  readonly state: Pick<StateStore, 'list' | 'set'>
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly onFault: (error: unknown) => void
}

/** The failures of an address or key, and when the last one was, in wall-clock milliseconds. */
type Counted = readonly [key: string, failures: number, lastMs: number]

const PREFIX = 'gateway/failed-logins/'
const FORGET_MS = 10 * 60_000
/** Reads and writes of one replica are no closer than this, however many logins fail. */
const EVERY_MS = 500
const ANSWER_MS = 1000
/** Addresses and keys that a replica tells the others: those that failed last. */
const MAX_TOLD = 500

/**
 * The failed logins that other replicas have counted, at most about a second old. A failure costs the database nothing of its
 * own: an attacker must not be able to load what every call depends on. Without the database, each replica counts alone.
 */
export class FleetFailures {
  readonly #deps: FleetFailuresDeps
  readonly #key: string
  /** By address or key, the one that failed last at the end. */
  readonly #own = new Map<string, Counted>()
  #others: ReadonlyMap<string, number> = new Map()
  #readAtMs = Number.NEGATIVE_INFINITY
  #toldAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(deps: FleetFailuresDeps) {
    this.#deps = deps
    this.#key = PREFIX + deps.incarnation
  }

  /** Tells the others how often an address or key has failed here. */
  note(key: string, failures: number): void {
    this.#own.delete(key)
    this.#own.set(key, [key, failures, this.#deps.clock.wallMs()])
    const [oldest] = this.#own.keys()
    if (this.#own.size > MAX_TOLD && oldest !== undefined) this.#own.delete(oldest)
    if (this.#isClosed) return
    const waitMs = this.#toldAtMs + EVERY_MS - this.#deps.clock.monotonicMs()
    this.#timer ??= setTimeout(() => void this.#tell(), Math.max(0, waitMs)).unref()
  }

  /** Returns how often addresses and keys have failed at other replicas. Never rejects. */
  async read(): Promise<ReadonlyMap<string, number>> {
    if (this.#deps.clock.monotonicMs() - this.#readAtMs >= EVERY_MS) await (this.#reading ??= this.#read())
    return this.#others
  }

  /** What was told counts until it is forgotten, so that a restart excuses nobody. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #tell(): Promise<void> {
    const { state, clock } = this.#deps
    this.#timer = undefined
    this.#toldAtMs = clock.monotonicMs()
    const expiresAt = clock.wallMs() + FORGET_MS
    await this.#safely(async () => state.set(this.#key, [...this.#own.values()], { expiresAt }))
  }

  async #read(): Promise<void> {
    const { state, clock } = this.#deps
    await this.#safely(async () => {
      const entries = await state.list(PREFIX)
      const others = entries.filter(({ key }) => key !== this.#key).flatMap((entry) => toCounted(entry))
      const sums = new Map<string, number>()
      for (const [key, failures, lastMs] of others)
        if (clock.wallMs() - lastMs < FORGET_MS) sums.set(key, (sums.get(key) ?? 0) + failures)
      this.#others = sums
    })
    this.#readAtMs = clock.monotonicMs()
    this.#reading = undefined
  }

  async #safely(work: () => Promise<void>): Promise<void> {
    try {
      await runWithDeadline(work, ANSWER_MS)
    } catch (error) {
      this.#deps.onFault(error)
    }
  }
}

function toCounted({ value }: StateEntry): readonly Counted[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, MAX_TOLD).flatMap((one: unknown): Counted[] => {
    const [key, failures, lastMs] = Array.isArray(one) ? (one as readonly unknown[]) : []
    const isCounted = typeof key === 'string' && typeof failures === 'number' && failures > 0
    return isCounted && typeof lastMs === 'number' ? [[key, failures, lastMs]] : []
  })
}
