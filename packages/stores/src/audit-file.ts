import { ToolgateError } from '@toolgate/core'
import type {
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExportQuery,
  AuditQuery,
  AuditRecord,
  SignedPoint,
} from '@toolgate/core/audit'
import type { MaybePromise } from '@toolgate/core/internal'
import { messageOf } from '@toolgate/values'
import type { CheckpointFile } from './checkpoint-file.ts'
import type { StoredInputBoxes } from './input-boxes.ts'

/** An audit file of one format. */
export interface AuditFile {
  readonly path: string
  /** Whether no other process had the file open for writing when it was opened. */
  readonly isSole: boolean
  /** Numbers and chains the entries and stores all of them, or throws and stores none. */
  append(entries: readonly AuditEntry[]): void
  /** Syncs all appended entries, so that they survive a power cut. */
  sync(): Promise<void>
  /**
   * Signs the records since the last checkpoint, after `sync` has made them durable. With `pruned` it also signs
   * that records up to this point may be removed.
   */
  checkpoint(file: CheckpointFile, sync: () => Promise<void>, pruned?: SignedPoint): Promise<void>
  /** Whether an error of `append` is temporary, such as another process's lock. */
  isPassing(error: unknown): boolean
  query(query: AuditQuery): MaybePromise<readonly AuditRecord[]>
  exportRecords(query: AuditExportQuery, onUnreadable?: (lines: number) => void): AsyncGenerator<AuditRecord>
  /** Counts outcomes. Other work of the event loop runs between parts of the file. */
  countOutcomes(query: AuditCountQuery): Promise<AuditCounts>
  /** Returns all records, newest first. */
  backwards(): Iterable<AuditRecord>
  /**
   * Closes the file and begins a new one. Returns the path of the closed file, or `undefined` if nothing could be
   * closed.
   */
  rotate(): string | undefined
  /** Returns the number of the first record, or Infinity if there is none. */
  firstSeq(): number
  /** Returns the last of these numbers at which the file can be cut, or 0 for none. */
  lastCut(seqs: readonly number[]): number
  /** Yields the texts of the records after `after`, up to `upTo`. Each group takes a few milliseconds. */
  textsIn(after: number, upTo: number): Generator<readonly string[]>
  /** Removes some of the records up to a number. Returns whether there may be more. */
  removeUpTo(seq: number): boolean
  /** Returns part of the space of removed records to the disk. Returns whether there is more. */
  reclaim(): boolean
  /** The sealed inputs. Absent if there are none. */
  readonly boxes?: StoredInputBoxes | undefined
  /** Signals other processes that this one has ended the calls that were left open. */
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
