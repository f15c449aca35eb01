import type { AuditExporter, AuditReader, AuditRecord } from '@toolgate/core/audit'
import type { Clock } from '@toolgate/core/stores'
import { type Figures, LONGEST_MS, type Period, Tally } from './tally.ts'

export interface CountedAuditDeps {
  readonly audit: AuditReader & AuditExporter
  readonly clock: Clock
  /** How long an answer waits for records to be counted. Default 250 ms. */
  readonly waitMs?: number
}

export interface CountedFigures extends Figures {
  /** Whether every record of the period is counted. */
  readonly isComplete: boolean
}

const PAGE = 1000
const MAX_PAGES = 20
const WAIT_MS = 250

/**
 * Counts the records of an audit, whatever store it is in.
 *
 * Nothing is counted before someone asks. The first question reads the longest period, and each later one the records since
 * then. Where that takes long, the answer has what is counted so far.
 */
export class CountedAudit {
  readonly #deps: CountedAuditDeps
  readonly #tally = new Tally()
  #afterSeq: number | undefined
  #counting: Promise<void> | undefined

  constructor(deps: CountedAuditDeps) {
    this.#deps = deps
  }

  /** Returns what happened in a period, of one tenant or of all. Rejects if the audit cannot be read. */
  async read(period: Period, tenant: string | undefined): Promise<CountedFigures> {
    const { clock, waitMs = WAIT_MS } = this.#deps
    this.#counting ??= this.#count().finally(() => (this.#counting = undefined))
    const isComplete = await inTime(this.#counting, waitMs)
    return { ...this.#tally.read(period, tenant, clock.wallMs()), isComplete }
  }

  async #count(): Promise<void> {
    const { audit, clock } = this.#deps
    const since = clock.wallMs() - LONGEST_MS
    const newer = this.#afterSeq === undefined ? undefined : await this.#readNewer(this.#afterSeq)
    if (newer) {
      for (const record of newer.toReversed()) this.#add(record)
      return
    }
    // Read before the others: what comes meanwhile is newer.
    const [newest] = await audit.query({ limit: 1 })
    const after = this.#afterSeq === undefined ? {} : { afterSeq: this.#afterSeq }
    for await (const record of audit.exportRecords({ since, ...after })) this.#add(record)
    // An audit without records in the period was read to its end, too.
    this.#afterSeq ??= newest?.seq ?? 0
  }

  /** Returns the records after one, newest first; `undefined` if there are too many for pages. */
  async #readNewer(afterSeq: number): Promise<readonly AuditRecord[] | undefined> {
    const found: AuditRecord[] = []
    for (let page = 0; page < MAX_PAGES; page++) {
      const before = found.at(-1)
      const range = { afterSeq, limit: PAGE, ...(before && { beforeSeq: before.seq }) }
      const records = await this.#deps.audit.query(range)
      found.push(...records)
      if (records.length < PAGE) return found
    }
    return undefined
  }

  #add(record: AuditRecord): void {
    this.#tally.add(record, this.#deps.clock.wallMs())
    this.#afterSeq = Math.max(this.#afterSeq ?? 0, record.seq)
  }
}

/** Returns whether the work is done in time. A failure after that is the next question's. */
async function inTime(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  work.catch(() => {})
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
