import { closeSync, openSync, readSync } from 'node:fs'
import type { AuditExporter, AuditReader } from '@toolgate/core/audit'
import { CliError } from '../exit.ts'

/** An audit that is read from its file, beside the gateway that may be writing it. */
export type OpenAudit = AuditReader & AuditExporter & { close(): Promise<void> }

const SQLITE_MAGIC = 'SQLite format 3\0'

/** Opens an audit file, SQLite or JSON lines as its first bytes say. @throws {CliError} `usage` */
export async function openAuditFile(path: string): Promise<OpenAudit> {
  if (firstBytes(path, SQLITE_MAGIC.length) === SQLITE_MAGIC) {
    const { openSqliteAudit } = await import('@toolgate/stores/sqlite')
    return openSqliteAudit({ path, readOnly: true })
  }
  const { openJsonlAudit } = await import('@toolgate/stores/jsonl')
  return openJsonlAudit({ path, readOnly: true })
}

function firstBytes(path: string, length: number): string {
  try {
    const file = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(length)
      return buffer.toString('latin1', 0, readSync(file, buffer, 0, length, 0))
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    throw new CliError('usage', `The audit file cannot be read: ${(cause as Error).message}.`, { cause })
  }
}
