import type { AuditFileOptions, FileAudit } from '../audit-options.ts'
import { openJsonlAudit } from '../jsonl.ts'
import { openSqliteAudit } from '../sqlite.ts'

export const FORMATS = ['sqlite', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export function openAny(format: Format, options: AuditFileOptions): FileAudit {
  return format === 'sqlite' ? openSqliteAudit(options) : openJsonlAudit(options)
}
