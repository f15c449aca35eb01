import { runWithDeadline } from '@toolgate/values'
import type { Clock, StateEntry, StateStore } from '@toolgate/core/stores'

interface FleetFailuresDeps {
  /** The id of this replica's current process. */
  readonly incarnation: string
  readonly state: Pick<StateStore, 'list' | 'set'>
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly onFault: (error: unknown) => void
}

/** An address or key, its number of failures, and the time of the last one in wall-clock milliseconds. */
type CountedFailures = readonly [key: string, failures: number, lastMs: number]

const PREFIX = 'gateway/failed-logins/'
const FORGET_MS = 10 * 60_000
/** The shortest interval between a replica's reads and writes, even if many logins fail. */
const EVERY_MS = 500
const ANSWER_MS = 1000
/** The maximum number of addresses and keys that a replica publishes. It publishes those that failed last. */
const MAX_TOLD = 500

/**
 * The failed logins that other replicas have counted, at most about a second old. A single failure causes no database
 * access, so that an attacker cannot overload the database that every call needs. Without the database, each replica
 * counts alone.
 */
export class FleetFailures {
  readonly #deps: FleetFailuresDeps
  readonly #key: string
  /** By address or key; the one that failed last is at the end. */
  readonly #own = new Map<string, CountedFailures>()
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

  /** Publishes how often an address or key has failed at this replica. */
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

  /** Published failures stay in the store until they expire, so a restart does not reset them. */
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

function toCounted({ value }: StateEntry): readonly CountedFailures[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, MAX_TOLD).flatMap((one: unknown): CountedFailures[] => {
    const [key, failures, lastMs] = Array.isArray(one) ? (one as readonly unknown[]) : []
    const isCounted = typeof key === 'string' && typeof failures === 'number' && failures > 0
    return isCounted && typeof lastMs === 'number' ? [[key, failures, lastMs]] : []
  })
}
