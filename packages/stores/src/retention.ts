import { setTimeout as delay } from 'node:timers/promises'
import {
  type AuditEntry,
  type AuditRecord,
  createRecordTree,
  readLink,
  readSeq,
  type RecordTree,
  type SignedPoint,
} from '@toolgate/core/audit'
import { hashRecord, parseRecord } from '@toolgate/core/internal'
import type { AuditFile } from './audit-file.ts'
import type { CheckpointFile } from './checkpoint-file.ts'
import { createOpenCalls, ownEntry } from './own-records.ts'
import { Rounds } from './rounds.ts'

/** The pause between parts of the work, in milliseconds, so that calls do not wait. A part takes a few milliseconds. */
const PAUSE_MS = 10
const SHOWN_CALLS = 8
/** The number of checkpoints that are read at once. */
const POINTS = 100

/** The parts of an open audit that retention uses. */
interface RetentionParts {
  readonly file: AuditFile
  readonly place: CheckpointFile
  readonly retainMs: number
  readonly nowMs: () => number
  readonly onFault: (error: unknown) => void
  /** Stores a record of the audit itself, durably. */
  readonly record: (entry: AuditEntry) => Promise<void>
  /** Signs all records, and that records up to a point may be removed. */
  readonly sign: (pruned: SignedPoint) => Promise<void>
  /** Returns the time when the oldest running call of this process began. */
  readonly openSince: () => number
}

/** What checkpoints say about the records that are not removed. */
interface SignedRecords {
  /** The last record that may be removed, according to a checkpoint; 0 for none. */
  readonly prunedSeq: number
  /** From the point with that record on, oldest first. */
  readonly points: readonly SignedPoint[]
}

/** The records that one round removes. */
interface RecordRemoval {
  readonly from: number
  /** What the last checkpoint over these records says. */
  readonly voucher: SignedPoint
  readonly openCalls: readonly AuditRecord[]
}

/**
 * Removes the oldest records of an audit, so that the others still verify.
 *
 * Only whole groups of records that a checkpoint has signed are removed, after they were compared with it, because a
 * removal would otherwise hide a change. An `audit_pruned` record and then a signed checkpoint announce the removal;
 * only then are the records removed. After a crash at any point, the next round continues.
 */
export class Retention {
  readonly #parts: RetentionParts
  readonly #rounds: Rounds

  constructor(parts: RetentionParts) {
    this.#parts = parts
    this.#rounds = new Rounds(() => this.#round(), parts.onFault)
  }

  start(): void {
    this.#rounds.start()
  }

  /**
   * Removes records older than retention allows.
   * @throws if it fails; everything that was not removed still verifies
   */
  run(): Promise<void> {
    return this.#rounds.run()
  }

  /** Stops between two parts of the work. */
  close(): Promise<void> {
    return this.#rounds.close()
  }

  async #round(): Promise<void> {
    const { record, sign, nowMs, retainMs } = this.#parts
    await this.#removeRest(await this.#signed())
    // Uses the start time of the round, so that records that the round itself writes do not prolong it.
    const untilMs = nowMs() - retainMs
    const next = () => this.#plan(untilMs)
    for (let plan = await next(); plan !== undefined && !this.#rounds.isClosed; plan = await next()) {
      await record(prunedEntry(plan, nowMs()))
      await sign(plan.voucher)
      await this.#remove(plan.voucher.seq)
    }
    while (!this.#rounds.isClosed && this.#parts.file.reclaim()) await delay(PAUSE_MS)
  }

  /**
   * Removes the remaining records of an earlier round that a crash interrupted.
   *
   * @throws if the audit has changed since, such as a new audit beside old checkpoints
   */
  async #removeRest({ prunedSeq: seq, points }: SignedRecords): Promise<void> {
    const { file } = this.#parts
    if (file.firstSeq() > seq) return
    // A closed file of JSON lines is read whole, including the records before this one.
    const texts = file
      .textsIn(seq - 1, seq)
      .toArray()
      .flat()
    const hash = readLink(texts.find((one) => readSeq(one) === seq) ?? '')?.hash
    // Another process may have removed these records meanwhile.
    if (file.firstSeq() > seq) return
    if (!points.some((point) => point.seq === seq && point.headHash === hash))
      throw unsafe(`record ${seq} is not the one that a checkpoint signed`)
    await this.#remove(seq)
  }

  async #remove(seq: number): Promise<void> {
    const { file } = this.#parts
    for (let hasMore = file.firstSeq() <= seq; hasMore && !this.#rounds.isClosed;) {
      try {
        hasMore = file.removeUpTo(seq)
      } catch (error) {
        if (!file.isPassing(error)) throw error
      }
      await delay(PAUSE_MS)
    }
  }

  /** Returns the next records to remove. They were signed before a time and match their checkpoints. */
  async #plan(untilMs: number): Promise<RecordRemoval | undefined> {
    const { file, openSince } = this.#parts
    const { prunedSeq, points } = await this.#signed()
    const signed = signedUntil(Math.min(untilMs, openSince() - 1), prunedSeq, points)
    const cut = file.lastCut(signed.map(({ seq }) => seq))
    const removed = signed.filter(({ seq }) => seq <= cut)
    const voucher = removed.at(-1)
    if (voucher === undefined) return undefined
    const first = file.firstSeq()
    if (first !== prunedSeq + 1) throw unsafe(`record ${prunedSeq + 1} is not its first`)
    const openCalls = await this.#compare(prunedSeq, removed)
    return openCalls && { from: first, voucher, openCalls }
  }

  /**
   * Reads the checkpoints of the records that are not removed.
   *
   * @throws for an invalid checkpoint
   */
  async #signed(): Promise<SignedRecords> {
    const points: SignedPoint[] = []
    let prunedSeq = 0
    for (const point of this.#parts.place.pointsBackwards()) {
      prunedSeq = Math.max(prunedSeq, point.prunedSeq ?? 0)
      points.push(point)
      if (prunedSeq > 0 && point.seq <= prunedSeq) break
      if (points.length % POINTS === 0) await delay(PAUSE_MS)
    }
    return { prunedSeq, points: points.toReversed() }
  }

  /**
   * Compares the records after a number with their checkpoints. Returns the calls that begin but do not end among them,
   * or `undefined` if the audit is closed meanwhile.
   *
   * @throws if the records differ from the signed ones
   */
  async #compare(after: number, signed: readonly SignedPoint[]): Promise<readonly AuditRecord[] | undefined> {
    const calls = createOpenCalls<AuditRecord>()
    const checked = createComparison(signed)
    const last = signed.at(-1)?.seq ?? after
    for (const texts of this.#parts.file.textsIn(after, last)) {
      for (const text of texts) {
        checked.add(text)
        const record = parseRecord(text)
        if (record !== undefined) calls.note(record)
      }
      await delay(PAUSE_MS)
      if (this.#rounds.isClosed) return undefined
    }
    checked.finish()
    return calls.list()
  }
}

/**
 * Returns the points after `after` that were signed before `untilMs`, up to the first that is out of order.
 *
 * @throws if a checkpoint is missing
 */
function signedUntil(untilMs: number, after: number, points: readonly SignedPoint[]): readonly SignedPoint[] {
  const found: SignedPoint[] = []
  let last = after
  for (const point of points.filter(({ seq }) => seq > after)) {
    if (Date.parse(point.ts) > untilMs) break
    if (point.seq - point.count !== last) throw unsafe(`no checkpoint signs the records after ${last}`)
    last = point.seq
    if (point.count > 0) found.push(point)
  }
  return found
}

/**
 * Compares records, in order, with the checkpoints that sign them. `tree`: the tree over earlier records, for
 * checkpoints that sign a chain from its beginning.
 */
export function createComparison(
  signed: readonly SignedPoint[],
  tree: RecordTree = createRecordTree(),
): { add(text: string): void; finish(): void } {
  let [at, over, head] = [0, tree, '']

  return {
    add(text) {
      const checkpoint = signed[at]
      const link = readLink(text)
      const goesOn = link !== undefined && (head === '' || link.prev === head)
      if (checkpoint === undefined || !goesOn || hashRecord(link.prev, link.hashed) !== link.hash)
        throw unsafe(`record ${readSeq(text)} or one before it was changed`)
      over.add(link.hash)
      head = link.hash
      if (over.size < checkpoint.count) return
      if (link.seq !== checkpoint.seq || head !== checkpoint.headHash || over.root() !== checkpoint.merkleRoot)
        throw unsafe(`the records up to ${checkpoint.seq} are not those that a checkpoint signed`)
      const next = signed[++at]
      if (next !== undefined && next.seq - next.count === checkpoint.seq) over = createRecordTree()
    },
    finish() {
      if (at < signed.length) throw unsafe(`records before ${signed[at]?.seq} are missing`)
    },
  }
}

export function unsafe(why: string): Error {
  return new Error(`retention removes nothing, as ${why}: run toolgate audit verify`)
}

function prunedEntry({ from, voucher, openCalls }: RecordRemoval, wallMs: number): AuditEntry {
  const { seq, ts, merkleRoot } = voucher
  const range = `records ${from} to ${seq}, signed by the checkpoint ${merkleRoot} of ${ts}`
  return ownEntry('audit_pruned', wallMs, { reason: 'retention', detail: `${range}${aboutCalls(openCalls)}` })
}

/** Returns a text about the calls whose beginning is removed, but whose end is kept or missing. */
export function aboutCalls(calls: readonly AuditRecord[]): string {
  if (calls.length === 0) return ''
  const ids = calls.slice(0, SHOWN_CALLS).map(({ tool_call_id: id = '' }) => id.slice(0, 64))
  const more = calls.length > SHOWN_CALLS ? ` and ${calls.length - SHOWN_CALLS} more` : ''
  return `; these calls begin there and do not end there: ${ids.join(', ')}${more}`
}
