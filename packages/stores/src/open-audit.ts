import { type AuditEntry, type AuditRecord, hashOfText, SOLE_WRITER } from '@toolgate/core/audit'

import type { AuditFile } from './audit-file.ts'
import { type AuditFileOptions, type FileAudit, keepInputsMs, sealOptionsOf } from './audit-options.ts'
import { openCheckpoints } from './checkpoints.ts'
import { EntryQueue } from './entry-queue.ts'
import { abandonedEntry, createOpenCalls, findOpenCalls, ownEntry } from './own-records.ts'
import { BatchedAudit, ReadOnlyAudit, RequiredAudit } from './sink.ts'

/** Returns the audit that the options describe, on a file of any format. */
export function openAudit(file: AuditFile, options: AuditFileOptions): FileAudit {
  if (options.readOnly) return toFunctions(new ReadOnlyAudit(file), options)
  const { mode = 'batched', maxWaiting = 10_000, nowMs = Date.now } = options
  try {
    const checkpoints = openCheckpoints(file, options, nowMs)
    const queue = new EntryQueue(file, nowMs, sealOptionsOf(options))
    checkpoints.compareWith(recover(file, queue, { nowMs, signedSeq: checkpoints.evidence().checkpoints?.signedSeq }))
    file.opened()
    const parts = {
      file,
      queue,
      openCalls: createOpenCalls<AuditEntry>(),
      checkpoints,
      nowMs,
      maxWaiting,
      retainMs: options.retainMs,
      keepInputsMs: keepInputsMs(options),
      onFault: options.onFault ?? (() => {}),
    }
    return toFunctions(mode === 'required' ? new RequiredAudit(parts) : new BatchedAudit(parts), options)
  } catch (error) {
    file.close()
    throw error
  }
}

/** Returns an audit whose functions work without the object, so that a host may spread it and add its own `write`. */
function toFunctions(audit: FileAudit, { inputKey }: AuditFileOptions): FileAudit {
  return {
    inputBoxes: (records) => audit.inputBoxes(records),
    hashText: inputKey && ((text) => hashOfText(inputKey, text)),
    write: audit.write.bind(audit),
    flush: () => audit.flush(),
    close: () => audit.close(),
    query: (query) => audit.query(query),
    exportRecords: (query, onUnreadable) => audit.exportRecords(query, onUnreadable),
    countOutcomes: (query) => audit.countOutcomes(query),
    evidence: () => audit.evidence(),
    prune: () => audit.prune(),
    rotate: () => audit.rotate(),
    get problem() {
      return audit.problem
    },
    get droppedCount() {
      return audit.droppedCount
    },
  }
}

/**
 * Ends the calls that a dead process left open, if no other process writes, and records the opening. Returns the last
 * signed record that the audit names.
 */
function recover(
  file: AuditFile,
  queue: EntryQueue,
  { nowMs, signedSeq }: { nowMs: () => number; signedSeq: number | undefined },
): number {
  let claimed: number | undefined
  function* watched(records: Iterable<AuditRecord>): Generator<AuditRecord> {
    for (const record of records) {
      claimed ??= record.signed_seq
      yield record
    }
  }
  const open = file.isSole ? findOpenCalls(watched(file.backwards())) : []
  for (const call of open) queue.addOwn(abandonedEntry(call, nowMs()))
  const reason = file.isSole ? { reason: SOLE_WRITER } : {}
  queue.addOwn(ownEntry('audit_opened', nowMs(), { ...reason, signed_seq: signedSeq }))
  try {
    queue.store()
  } catch {
    // These entries wait like those of calls, until the disk accepts them.
  }
  return claimed ?? 0
}
