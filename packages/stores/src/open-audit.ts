import type { AuditFile } from './audit-file.ts'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { createBatchedAudit } from './batched-audit.ts'
import { createReadOnlyAudit } from './read-only-audit.ts'
import { createRequiredAudit } from './required-audit.ts'

/** Gives the audit that the options ask for, on a file of any format. */
export function openAudit(
  file: AuditFile,
  { mode = 'batched', readOnly = false, maxWaiting = 10_000 }: AuditFileOptions,
): FileAudit {
  if (readOnly) return createReadOnlyAudit(file)
  return mode === 'required' ? createRequiredAudit(file, maxWaiting) : createBatchedAudit(file, maxWaiting)
}
