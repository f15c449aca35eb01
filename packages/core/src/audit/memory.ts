import { backgroundTimeout, checkShape, shapeOf, ToolgateError } from '@toolgate/values'
import type {
  AuditCounter,
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExporter,
  AuditExportQuery,
  AuditQuery,
  AuditReader,
  AuditRecord,
  AuditSink,
} from '../ports/ports.ts'
import { hashOfText } from './facts.ts'
import { checkAuditQuery, checkCountQuery, createOutcomeTally, matchesAuditQuery, outcomeOfRecord } from './query.ts'
import { checkSealOptions, sealedOf, sealEntry, type SealOptions } from './record.ts'
import type { InputBoxes } from './sealed-input.ts'

const SEAL_MS = 1000

export interface MemoryAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter, InputBoxes {
  /** The newest records, oldest first. */
  readonly records: readonly AuditRecord[]
  write(entry: AuditEntry): void
  query(query: AuditQuery): readonly AuditRecord[]
  countOutcomes(query: AuditCountQuery): AuditCounts
  inputBoxes(records: readonly AuditRecord[]): readonly (string | undefined)[]
  /** Returns the keyed hash of a text, as `facts` store it, for `whatIf`. */
  hashText(text: string): string
}

interface MemoryAuditOptions extends SealOptions {
  /** How many records are kept. Default 10,000. */
  readonly capacity?: number
}

const OPTIONS = shapeOf<MemoryAuditOptions>({
  capacity: true,
  redact: true,
  preview: true,
  inputs: true,
  inputKey: true,
})

/**
 * Returns an audit that keeps its newest records in memory, for tests and embedding.
 *
 * An entry is sealed when it is first read, or within a second, so that a write is cheap. Its input is kept until then.
 * Records do not survive the process and are not chained: anyone who can change them can change the process.
 */
export function memoryAudit(given: MemoryAuditOptions = {}): MemoryAudit {
  checkShape('memoryAudit', given, OPTIONS)
  const { capacity = 10_000, ...options } = given
  if (!Number.isInteger(capacity) || capacity < 1) throw new RangeError('capacity must be a whole number above 0')
  checkSealOptions(options)
  const sealing = { ...options, inputKey: options.inputKey ?? crypto.getRandomValues(new Uint8Array(32)) }
  /** Oldest first. A ring once it is full: a record is at `seq - 1` modulo the capacity. */
  const kept: (AuditEntry | undefined)[] = []
  const sealed: AuditRecord[] = []
  const boxes = new KeptBoxes(typeof options.inputs === 'object' ? options.inputs.keepForMs : undefined)
  let written = 0
  let sealedTo = 0
  let sealTimer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  const oldestSeq = (): number => Math.max(1, written - capacity + 1)

  function seal(): void {
    clearTimeout(sealTimer)
    sealTimer = undefined
    for (let seq = Math.max(sealedTo + 1, oldestSeq()); seq <= written; seq++) {
      const place = (seq - 1) % capacity
      const entry = kept[place]
      if (entry) {
        sealed[place] = sealEntry(entry, seq, sealing)
        const box = sealedOf(entry, sealing)?.box
        if (box !== undefined) boxes.add({ seq, atMs: entry.wallMs, box })
      }
      // Frees the entry's input, which may be large.
      kept[place] = undefined
    }
    sealedTo = written
    boxes.removeBefore(oldestSeq())
  }

  return {
    get records() {
      seal()
      const split = written > capacity ? written % capacity : 0
      return [...sealed.slice(split), ...sealed.slice(0, split)]
    },
    write(entry) {
      if (closed) throw new ToolgateError('audit_closed', 'The audit is closed.')
      kept[written % capacity] = entry
      written++
      sealTimer ??= backgroundTimeout(seal, SEAL_MS)
    },
    query(query) {
      const checked = checkAuditQuery(query)
      seal()
      const found: AuditRecord[] = []
      for (let seq = written; seq >= oldestSeq() && found.length < checked.limit; seq--) {
        const record = sealed[(seq - 1) % capacity]
        if (record && matchesAuditQuery(record, checked)) found.push(record)
      }
      return found
    },
    async *exportRecords(query: AuditExportQuery = {}) {
      const checked = checkAuditQuery(query)
      seal()
      const newest = written
      for (let seq = oldestSeq(); seq <= newest; seq++) {
        const record = sealed[(seq - 1) % capacity]
        // The record may have been overwritten since the last one was read.
        if (record?.seq === seq && matchesAuditQuery(record, checked)) yield record
      }
    },
    countOutcomes(query) {
      const checked = checkCountQuery(query)
      const tally = createOutcomeTally(checked)
      seal()
      for (const record of sealed) {
        const outcome = outcomeOfRecord(record)
        if (outcome !== undefined && matchesAuditQuery(record, checked)) tally.add(Date.parse(record.ts), outcome)
      }
      return tally.counts(written)
    },
    inputBoxes(records) {
      seal()
      return records.map(({ seq }) => boxes.get(seq))
    },
    hashText: (text) => hashOfText(sealing.inputKey, text),
    flush: async () => {},
    close: async () => {
      closed = true
      seal()
    },
  }
}

/** The most characters of sealed inputs. Beyond it, the oldest are removed. */
const MAX_BOXES = 64 * 1024 * 1024

interface MemoryBox {
  readonly seq: number
  readonly atMs: number
  readonly box: string
}

/** Sealed inputs by the numbers of their records, oldest first. */
class KeptBoxes {
  readonly #kept = new Map<number, MemoryBox>()
  readonly #keepForMs: number
  #characters = 0

  constructor(keepForMs = Number.POSITIVE_INFINITY) {
    this.#keepForMs = keepForMs
  }

  add(one: MemoryBox): void {
    this.#kept.set(one.seq, one)
    this.#characters += one.box.length
  }

  get(seq: number): string | undefined {
    this.removeBefore(0)
    return this.#kept.get(seq)?.box
  }

  /** Removes boxes before a record number, expired boxes, and the oldest ones beyond the size limit. */
  removeBefore(first: number): void {
    const sinceMs = Date.now() - this.#keepForMs
    for (const { seq, atMs, box } of this.#kept.values()) {
      if (seq >= first && atMs >= sinceMs && this.#characters <= MAX_BOXES) return
      this.#kept.delete(seq)
      this.#characters -= box.length
    }
  }
}
