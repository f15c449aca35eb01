import { SOLE_WRITER } from '@toolgate/core/audit'
import type { AuditFile } from './audit-file.ts'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { createBatchedAudit } from './batched-audit.ts'
import { openCheckpointFile } from './checkpoint-file.ts'
import { createCheckpointing, NO_CHECKPOINTS } from './checkpointing.ts'
import { abandonedEntry, createOpenCalls, findOpenCalls, ownEntry } from './own-records.ts'
import { createReadOnlyAudit } from './read-only-audit.ts'
import { createRequiredAudit } from './required-audit.ts'
import type { SinkParts } from './sink-parts.ts'
import { createWaiting, type Waiting } from './waiting.ts'

const EVERY_RECORDS = 1000
const EVERY_MS = 60_000

/** Gives the audit that the options ask for, on a file of any format. */
export function openAudit(file: AuditFile, options: AuditFileOptions): FileAudit {
  if (options.readOnly) return createReadOnlyAudit(file)
  const { mode = 'batched', maxWaiting = 10_000, nowMs = Date.now } = options
  try {
    const checkpointing = openCheckpointing(file, options, nowMs)
    const waiting = createWaiting(file, nowMs, options)
    recover(file, waiting, nowMs)
    file.opened()
    const parts = { file, waiting, open: createOpenCalls(), nowMs, maxWaiting, checkpointing }
    return mode === 'required' ? createRequiredAudit(parts) : createBatchedAudit(parts)
  } catch (error) {
    file.close()
    throw error
  }
}

/** Ends what a process that died left open, if nobody else is at it, and records the opening. */
function recover(file: AuditFile, waiting: Waiting, nowMs: () => number): void {
  const open = file.isSole ? findOpenCalls(file.backwards()) : []
  for (const call of open) waiting.addOwn(abandonedEntry(call, nowMs()))
  waiting.addOwn(ownEntry('audit_opened', nowMs(), file.isSole ? { reason: SOLE_WRITER } : {}))
  try {
    waiting.store()
  } catch {
    // They wait, as those of calls do, for a disk that takes them.
  }
}

function openCheckpointing(
  file: AuditFile,
  { checkpoints = {}, onFault = () => {} }: AuditFileOptions,
  nowMs: () => number,
): SinkParts['checkpointing'] {
  if (checkpoints === false) return () => NO_CHECKPOINTS
  const { everyRecords = EVERY_RECORDS, everyMs = EVERY_MS } = checkpoints
  const place = openCheckpointFile({ ...checkpoints, auditPath: file.path, nowMs })
  return (sync) => createCheckpointing(file, place, { everyRecords, everyMs, sync, onFault })
}
