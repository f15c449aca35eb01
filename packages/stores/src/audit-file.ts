import { type AuditEntry, type AuditQuery, type AuditRecord, sealEntry, ToolgateError } from '@toolgate/core'

/** A record that gets its number when it is stored. */
export type UnnumberedRecord = Omit<AuditRecord, 'seq'> & { seq: number }

/** What a file format does; the queue does the rest. */
export interface AuditFile {
  readonly path: string
  /** Numbers the records and stores all of them, or throws and stores none. */
  append(records: readonly UnnumberedRecord[]): void
  /** Makes everything appended survive the end of the machine. */
  sync(): Promise<void>
  /** Tells whether what `append` threw passes within moments, as another process's lock does. */
  isPassing(error: unknown): boolean
  query(query: AuditQuery): readonly AuditRecord[]
  close(): void
}

/** Entries that wait for the file, in the order they came. */
export interface Waiting {
  readonly count: number
  add(entry: AuditEntry): void
  /** Stores all of them, or throws and keeps all of them. */
  store(): void
  /** Gives up on all of them. Gives their number. */
  drop(): number
}

export function createWaiting(file: AuditFile): Waiting {
  let entries: AuditEntry[] = []
  /** Those that a failing disk made wait hold no inputs. */
  let sealed: UnnumberedRecord[] = []

  return {
    get count() {
      return entries.length + sealed.length
    },
    add(entry) {
      entries.push(entry)
    },
    store() {
      for (const entry of entries) sealed.push(sealEntry(entry, 0))
      entries = []
      if (sealed.length === 0) return
      file.append(sealed)
      sealed = []
    },
    drop() {
      const count = entries.length + sealed.length
      entries = []
      sealed = []
      return count
    },
  }
}

export function closedError(file: AuditFile): ToolgateError {
  return new ToolgateError('audit_closed', 'The audit is closed.', { detail: file.path })
}

export function unavailableError(file: AuditFile, cause: unknown): ToolgateError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new ToolgateError('audit_unavailable', 'The audit cannot be written.', {
    detail: `${file.path}: ${why}`,
    cause,
  })
}

export function openError(path: string, cause: unknown): ToolgateError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new ToolgateError('audit_unavailable', `The audit ${path} cannot be opened: ${why}.`, { cause })
}
