import { ToolgateError } from '@toolgate/core'
import type {
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExportQuery,
  AuditQuery,
  AuditRecord,
} from '@toolgate/core/audit'
import { messageOf } from '@toolgate/core/internal'
import type { CheckpointFile } from './checkpoint-file.ts'

/** What a file format does; the queue does the rest. */
export interface AuditFile {
  readonly path: string
  /** Whether nobody else had it open to write when it was opened. */
  readonly isSole: boolean
  /** Numbers and chains the entries and stores all of them, or throws and stores none. */
  append(entries: readonly AuditEntry[]): void
  /** Makes everything appended survive the end of the machine. */
  sync(): Promise<void>
  /** Signs what was appended since the last checkpoint, once `sync` has made it durable: a checkpoint is never ahead. */
  checkpoint(file: CheckpointFile, sync: () => Promise<void>): Promise<void>
  /** Whether what `append` threw passes within moments, as another process's lock does. */
  isPassing(error: unknown): boolean
  query(query: AuditQuery): readonly AuditRecord[]
  exportRecords(query: AuditExportQuery): AsyncGenerator<AuditRecord>
  /** Lets other work go on between parts of the file. */
  countOutcomes(query: AuditCountQuery): Promise<AuditCounts>
  /** All records, the newest first. */
  backwards(): Iterable<AuditRecord>
  /** Lets others know that this process has looked after what was left open before. */
  opened(): void
  close(): void
}

export function closedError(file: AuditFile): ToolgateError {
  return new ToolgateError('audit_closed', 'The audit is closed.', { detail: file.path })
}

export function unavailableError(file: AuditFile, cause: unknown): ToolgateError {
  return new ToolgateError('audit_unavailable', 'The audit cannot be written.', {
    detail: `${file.path}: ${messageOf(cause)}`,
    cause,
  })
}

export function openError(path: string, cause: unknown): ToolgateError {
  return new ToolgateError('audit_unavailable', `The audit ${path} cannot be opened: ${messageOf(cause)}.`, { cause })
}
