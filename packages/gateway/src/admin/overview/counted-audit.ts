import type { AuditExporter, AuditReader, AuditRecord } from '@toolgate/core/audit'
import type { Clock } from '@toolgate/core/stores'
import { nextTurn, RECORDS_A_PAGE, recordPages } from '../../util/next-turn.ts'
import { CallerTally, type CountedCaller } from './caller-tally.ts'
import { type CountedRun, RunTally } from './run-tally.ts'
import type { OverviewFigures } from './sum.ts'
import { LONGEST_MS, type Period, OverviewTally } from './tally.ts'

interface CountedAuditDeps {
  readonly audit: AuditReader & AuditExporter
  readonly clock: Clock
  /** How long an answer waits until records are counted. Default 250 ms. */
  readonly waitMs?: number
  /** The number of records after which an answer no longer waits. Default 2,000. */
  readonly enoughRecords?: number
}

/** How far an answer has counted. */
interface CountedSoFar {
  /** Whether every record of the period is counted. */
  readonly isComplete: boolean
  /** The time of the latest counted record, while there are others. Wall-clock milliseconds. */
  readonly countedTo?: number
}

interface AuditCounting {
  readonly done: Promise<void>
  readonly enough: Promise<void>
}

const MAX_PAGES = 20
const WAIT_MS = 250
const ENOUGH_RECORDS = 2000
const RECORDS_A_TURN = 500

/**
 * Counts the records of an audit in any store: by tool and time, by run, and by user.
 *
 * Counting starts with the first request, which reads the longest period. Each later request reads the records since
 * then. If there are many, the answer has the current counts, and counting continues.
 */
export class CountedAudit {
  readonly #deps: CountedAuditDeps
  readonly #tally = new OverviewTally()
  readonly #runs = new RunTally()
  readonly #callers = new CallerTally()
  #afterSeq: number | undefined
  /** The time of the latest counted record. */
  #latest: string | undefined
  #counting: AuditCounting | undefined

  constructor(deps: CountedAuditDeps) {
    this.#deps = deps
  }

  /** Returns the counts of a period, for one tenant or for all. Rejects if the audit cannot be read. */
  async read(period: Period, tenant: string | undefined): Promise<OverviewFigures & CountedSoFar> {
    const soFar = await this.#countInTime()
    return { ...this.#tally.read(period, tenant, this.#deps.clock.wallMs()), ...soFar }
  }

  /** Returns the runs of the last week, latest first. Rejects if the audit cannot be read. */
  async readRuns(
    tenant: string | undefined,
  ): Promise<{ readonly runs: readonly Readonly<CountedRun>[] } & CountedSoFar> {
    const soFar = await this.#countInTime()
    return { runs: this.#runs.read(tenant, this.#deps.clock.wallMs()), ...soFar }
  }

  /** Returns the users with calls in the last week by `personKey`. Rejects if the audit cannot be read. */
  async readCallers(
    tenant: string | undefined,
  ): Promise<{ readonly callers: ReadonlyMap<string, Readonly<CountedCaller>> } & CountedSoFar> {
    const soFar = await this.#countInTime()
    return { callers: this.#callers.read(tenant, this.#deps.clock.wallMs()), ...soFar }
  }

  async #countInTime(): Promise<CountedSoFar> {
    this.#counting ??= this.#startCounting()
    const isComplete = await inTime(this.#counting, this.#deps.waitMs ?? WAIT_MS)
    if (isComplete || this.#latest === undefined) return { isComplete }
    return { isComplete, countedTo: Date.parse(this.#latest) }
  }

  #startCounting(): AuditCounting {
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    return { done: this.#count(resolve).finally(() => (this.#counting = undefined)), enough }
  }

  async #count(onEnough: () => void): Promise<void> {
    const { enoughRecords = ENOUGH_RECORDS } = this.#deps
    const { audit, clock } = this.#deps
    const since = clock.wallMs() - LONGEST_MS
    const newer = this.#afterSeq === undefined ? undefined : await this.#readNewer(this.#afterSeq)
    if (newer) {
      for (const record of newer.toReversed()) this.#add(record)
      return
    }
    // This record is read first, so every record that arrives meanwhile is newer.
    const [newest] = await audit.query({ limit: 1 })
    const after = this.#afterSeq === undefined ? {} : { afterSeq: this.#afterSeq }
    let counted = 0
    for await (const record of audit.exportRecords({ since, ...after })) {
      this.#add(record)
      // Other requests, and the answer that has waited long enough, can run in between.
      if (++counted >= enoughRecords) onEnough()
      if (counted % RECORDS_A_TURN === 0) await nextTurn()
    }
    // An audit without records in the period was also read to its end.
    this.#afterSeq ??= newest?.seq ?? 0
  }

  /** Returns the records after a given one, newest first; `undefined` if there are too many for pages. */
  async #readNewer(afterSeq: number): Promise<readonly AuditRecord[] | undefined> {
    const found: AuditRecord[] = []
    let isWhole = false
    for await (const records of recordPages(this.#deps.audit, { afterSeq }, MAX_PAGES)) {
      found.push(...records)
      isWhole = records.length < RECORDS_A_PAGE
    }
    return isWhole ? found : undefined
  }

  #add(record: AuditRecord): void {
    this.#tally.add(record, this.#deps.clock.wallMs())
    this.#runs.add(record)
    this.#callers.add(record)
    this.#afterSeq = Math.max(this.#afterSeq ?? 0, record.seq)
    this.#latest = record.ts
  }
}

/**
 * Resolves when the work is done, enough is counted, or the time is over. Returns whether the work is done. The next
 * request reports a later failure.
 */
async function inTime({ done, enough }: AuditCounting, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  done.catch(() => {})
  try {
    return await Promise.race([done.then(() => true), enough.then(() => false), late])
  } finally {
    clearTimeout(timer)
  }
}
