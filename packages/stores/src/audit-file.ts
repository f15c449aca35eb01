import { ToolgateError } from '@toolgate/core'
import type {
  AuditCountQuery,
  AuditCounts,
  AuditEntry,
  AuditExportQuery,
  AuditQuery,
  AuditRecord,
} from '@toolgate/core/audit'
import type { MaybePromise } from '@toolgate/core/internal'
import { messageOf } from '@toolgate/values'
import type { CheckpointFile } from './checkpoint-file.ts'
import type { InputBoxes } from './input-boxes.ts'

/** An audit file of one format. */
export interface AuditFile {
  readonly path: string
  /** Whether no other process had it open for writing when it was opened. */
  readonly isSole: boolean
  /** Numbers and chains the entries and stores all of them, or throws and stores none. */
  append(entries: readonly AuditEntry[]): void
  /** Makes everything appended survive a power cut. */
  sync(): Promise<void>
  /**
   * Signs the records since the last checkpoint, after `sync` has made them durable. `prunedSeq`: and that records up to this
   * one may be removed.
   */
  checkpoint(file: CheckpointFile, sync: () => Promise<void>, prunedSeq?: number): Promise<void>
  /** Whether an error of `append` will pass within moments, such as another process's lock. */
  isPassing(error: unknown): boolean
  query(query: AuditQuery): MaybePromise<readonly AuditRecord[]>
  exportRecords(query: AuditExportQuery, onUnreadable?: (lines: number) => void): AsyncGenerator<AuditRecord>
  /** Lets other work go on between parts of the file. */
  countOutcomes(query: AuditCountQuery): Promise<AuditCounts>
  /** Returns all records, newest first. */
  backwards(): Iterable<AuditRecord>
  /** Closes the file and begins another. Returns the path of the closed one; `undefined` if there is nothing to close. */
  rotate(): string | undefined
  /** Returns the number of the first record; Infinity if there is none. */
  firstSeq(): number
  /** Returns the last of these numbers after which the file can be cut; 0 for none. */
  lastCut(seqs: readonly number[]): number
  /** Yields the texts of the records after one number, up to another, in groups that take a few milliseconds. */
  textsIn(after: number, upTo: number): Generator<readonly string[]>
  /** Removes some of the records up to a number. Returns whether there may be more. */
  removeUpTo(seq: number): boolean
  /** Gives some of the space of removed records back to the disk. Returns whether there is more. */
  reclaim(): boolean
  /** The sealed inputs. Absent if there are none. */
  readonly boxes?: InputBoxes | undefined
  /** Lets other processes know that this one has ended the calls that were left open. */
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
