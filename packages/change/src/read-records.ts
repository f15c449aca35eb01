import type { AuditExporter, AuditExportQuery, AuditRecord } from '@toolgate/core/audit'

/** Returns how many records are missing right before a record; without an argument, after the last one. */
export type MissingBefore = (record?: AuditRecord) => number

/** Records of an audit, and where some of them are missing. */
export interface ReadRecords {
  readonly records: AsyncIterable<AuditRecord>
  readonly missing: MissingBefore
}

/** An audit to read. `isPart`: returns whether only some records are visible, so that skipped numbers are normal. */
export type RecordSource = AuditExporter & { isPart?(): boolean }

/**
 * Reads records for {@link whatIf} and {@link suggestPolicy}, and counts missing and unreadable ones: skipped numbers, and
 * lines that are not records. Records before the first are not counted, because retention removes them.
 *
 * `isSeen` selects the records to return. A gap before other records counts before the next returned one.
 *
 * It verifies nothing: edited records count as they are, and a cut-off end is not noticed.
 *
 * @example
 * await whatIf({ before, after, ...readRecords(audit, { since }) })
 */
export function readRecords(
  audit: RecordSource,
  query: Pick<AuditExportQuery, 'since' | 'until' | 'afterSeq' | 'beforeSeq'> = {},
  isSeen: (record: AuditRecord) => boolean = () => true,
): ReadRecords {
  const before = new WeakMap<AuditRecord, number>()
  const lastOf = new Map<string, number>()
  /** Missing since the last returned record. */
  let pending = 0

  /** Returns how many numbers were skipped before a record, in its own chain. */
  function skippedBefore({ seq, replica, incarnation, chain_seq: chainSeq }: AuditRecord): number {
    const chain = chainSeq === undefined ? '' : JSON.stringify([replica, incarnation])
    const number = chainSeq ?? seq
    const last = lastOf.get(chain) ?? number
    lastOf.set(chain, Math.max(last, number))
    return number - last - 1
  }

  async function* read() {
    let unreadable = 0
    const noteUnreadable = (count: number) => {
      unreadable = count
    }
    for await (const record of audit.exportRecords(query, noteUnreadable)) {
      pending += audit.isPart?.() ? 0 : Math.max(skippedBefore(record), unreadable)
      unreadable = 0
      if (!isSeen(record)) continue
      if (pending > 0) before.set(record, pending)
      pending = 0
      yield record
    }
    pending += unreadable
  }

  return { records: read(), missing: (record) => (record ? (before.get(record) ?? 0) : pending) }
}
