import type { AuditFile } from './audit-file.ts'
import type { Checkpointing } from './checkpointing.ts'
import type { AuditEvidence } from './evidence.ts'
import { abandonedEntry, type OpenCalls, ownEntry } from './own-records.ts'
import type { Waiting } from './waiting.ts'

/** What both kinds of sink stand on. */
export interface SinkParts {
  readonly file: AuditFile
  readonly waiting: Waiting
  readonly open: OpenCalls
  readonly nowMs: () => number
  readonly maxWaiting: number
  /** Makes checkpoints, with a sync that is the sink's. */
  readonly checkpointing: (sync: () => Promise<void>) => Checkpointing
  readonly evidence: () => AuditEvidence
}

/** Gives the records with which an audit ends: calls that nobody will end any more, and that it was closed. */
export function addLast({ waiting, open, nowMs, evidence }: SinkParts): void {
  for (const call of open.list()) waiting.addOwn(abandonedEntry(call, nowMs()))
  waiting.addOwn(ownEntry('audit_closed', nowMs(), { signed_seq: evidence().checkpoints?.signedSeq }))
}
