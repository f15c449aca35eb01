import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '@toolgate/values'
import { AUDIT } from './audit-rows.ts'
import { checkKind } from './jsonl/log-files.ts'
import { checkSchema } from './schema.ts'
import { STATE } from './state/database.ts'

/**
 * Returns why a file cannot be used as an audit or a state, with the text of a gateway at its start, or `undefined` if
 * it can be used or does not exist. Changes nothing.
 * @example
 * findFileProblem('/srv/audit.db', 'audit', 'jsonl')  // 'it is not an audit file'
 */
export function findFileProblem(path: string, kind: 'audit' | 'state', store: 'sqlite' | 'jsonl'): string | undefined {
  if (!existsSync(path)) return undefined
  try {
    if (store === 'jsonl') checkLines(path)
    else checkRows(path, kind)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function checkLines(path: string): void {
  const fd = openSync(path, 'r')
  try {
    if (readSync(fd, Buffer.alloc(1), 0, 1, 0) > 0) checkKind(fd)
  } finally {
    closeSync(fd)
  }
}

function checkRows(path: string, kind: 'audit' | 'state'): void {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    checkSchema(db, kind === 'audit' ? AUDIT : STATE, { mayBeNew: true })
  } finally {
    db.close()
  }
}
