import { existsSync } from 'node:fs'
import { type AuditRecord, SOLE_WRITER } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/core/internal'
import type { AuditFile } from './audit-file.ts'
import { type AuditFileOptions, type FileAudit, sealOptionsOf } from './audit-options.ts'
import { createBatchedAudit } from './batched-audit.ts'
import { openCheckpointFile } from './checkpoint-file.ts'
import { createCheckpointing, NO_CHECKPOINTS } from './checkpointing.ts'
import { abandonedEntry, createOpenCalls, findOpenCalls, ownEntry } from './own-records.ts'
import type { EvidenceProblem } from './evidence.ts'
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
    const signing = openSigning(file, options, nowMs)
    const waiting = createWaiting(file, nowMs, sealOptionsOf(options))
    signing.compareWith(recover(file, waiting, { nowMs, signedSeq: signing.evidence().checkpoints?.signedSeq }))
    file.opened()
    const { checkpointing, evidence } = signing
    const parts = { file, waiting, open: createOpenCalls(), nowMs, maxWaiting, checkpointing, evidence }
    return mode === 'required' ? createRequiredAudit(parts) : createBatchedAudit(parts)
  } catch (error) {
    file.close()
    throw error
  }
}

/**
 * Ends what a process that died left open, if nobody else is at it, and records the opening. Returns the record up to which,
 * as the audit says, checkpoints were made.
 */
function recover(
  file: AuditFile,
  waiting: Waiting,
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
  for (const call of open) waiting.addOwn(abandonedEntry(call, nowMs()))
  const reason = file.isSole ? { reason: SOLE_WRITER } : {}
  waiting.addOwn(ownEntry('audit_opened', nowMs(), { ...reason, signed_seq: signedSeq }))
  try {
    waiting.store()
  } catch {
    // They wait, as those of calls do, for a disk that takes them.
  }
  return claimed ?? 0
}

/** The checkpoints of an audit that is open, and what is known of them. */
interface Signing extends Pick<SinkParts, 'checkpointing' | 'evidence'> {
  /** Compares the checkpoints that are there with the record up to which the audit says that there are some. */
  compareWith(claimedSeq: number): void
}

const NO_SIGNING: Signing = {
  checkpointing: () => NO_CHECKPOINTS,
  evidence: () => ({ problems: [] }),
  compareWith: () => {},
}

function openSigning(
  file: AuditFile,
  { checkpoints = {}, onFault = () => {} }: AuditFileOptions,
  nowMs: () => number,
): Signing {
  if (checkpoints === false) return NO_SIGNING
  const { everyRecords = EVERY_RECORDS, everyMs = EVERY_MS } = checkpoints
  const place = openCheckpointFile({ ...checkpoints, auditPath: file.path, nowMs })
  const { path } = place
  let running = NO_CHECKPOINTS
  let lostSeq = 0

  function missing(): EvidenceProblem | undefined {
    if (!existsSync(path))
      return { code: 'checkpoints_missing', message: `The checkpoints ${path} were removed while the audit was open.` }
    if (lostSeq === 0) return undefined
    const message = `The audit says that checkpoints signed up to record ${lostSeq}, and ${path} did not have them when it was opened. Put them back, or find out who removed them.`
    return { code: 'checkpoints_missing', message }
  }

  function failing(): EvidenceProblem | undefined {
    if (running.failure === undefined) return undefined
    return { code: 'checkpoints_failing', message: `No checkpoint can be made: ${messageOf(running.failure)}.` }
  }

  return {
    checkpointing(sync) {
      running = createCheckpointing(file, place, { everyRecords, everyMs, sync, onFault })
      return running
    },
    evidence() {
      const last = place.last()
      return {
        checkpoints: { path, signedSeq: last?.seq ?? 0, ...(last === undefined ? {} : { signedAt: last.ts }) },
        problems: [missing(), failing()].filter((problem) => problem !== undefined),
      }
    },
    compareWith(claimedSeq) {
      if (claimedSeq <= (place.last()?.seq ?? 0)) return
      lostSeq = claimedSeq
      onFault(new Error(missing()?.message))
    },
  }
}
