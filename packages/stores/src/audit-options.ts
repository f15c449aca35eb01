import type { AuditReader, AuditSink } from '@toolgate/core'

export interface AuditFileOptions {
  readonly path: string
  /**
   * `batched`: a write returns at once, and the entry is in the file within 100 ms (it survives the end of
   * the process) and on the disk within a second more (it survives the end of the machine).
   * `required`: a write resolves when the entry is on the disk.
   * Default `batched`.
   */
  readonly mode?: 'batched' | 'required'
  /** Only reads, beside a process that writes. */
  readonly readOnly?: boolean
  /** How many entries wait in memory while the disk fails, before writes are refused. Default 10,000. */
  readonly maxWaiting?: number
}

/** An audit in a file. */
export interface FileAudit extends AuditSink, AuditReader {
  /** Entries whose write was refused, or which were lost when it was closed on a failing disk. */
  readonly droppedCount: number
}
