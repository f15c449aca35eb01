import { ToolgateError } from '@toolgate/core'
import { type AuditFile, closedError } from './audit-file.ts'
import type { FileAudit } from './audit-options.ts'

/** Gives an audit that reads what another process writes. */
export function createReadOnlyAudit(file: AuditFile): FileAudit {
  let isClosed = false

  function checkOpen(): void {
    if (isClosed) throw closedError(file)
  }

  return {
    droppedCount: 0,
    evidence: () => ({ problems: [] }),
    write() {
      throw new ToolgateError('audit_unavailable', 'The audit was opened for reading only.', { detail: file.path })
    },
    query(query) {
      checkOpen()
      return file.query(query)
    },
    async *exportRecords(query = {}) {
      checkOpen()
      yield* file.exportRecords(query)
    },
    async countOutcomes(query) {
      checkOpen()
      return file.countOutcomes(query)
    },
    flush: async () => {},
    async close() {
      if (isClosed) return
      isClosed = true
      file.close()
    },
  }
}
