import {
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type AuditQuery, type AuditRecord, checkAuditQuery, matchesAuditQuery } from '@toolgate/core'
import { type AuditFile, openError } from './audit-file.ts'
import type { AuditFileOptions, FileAudit } from './audit-options.ts'
import { lockExclusively } from './exclusive-lock.ts'
import { linesBackwards } from './lines-backwards.ts'
import { openAudit } from './open-audit.ts'

export type { AuditFileOptions, FileAudit } from './audit-options.ts'

/**
 * Opens an audit in a file of JSON lines, each a record in RFC 8785 form. One process may write to it.
 *
 * What a crash left of a record at the end is put aside in `<path>.torn-<n>`.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be opened, is something else or has a writer
 */
export function openJsonlAudit(options: AuditFileOptions): FileAudit {
  const path = resolve(options.path)
  try {
    return openAudit(options.readOnly ? readerOf(path) : writerOf(path), options)
  } catch (error) {
    throw openError(path, error)
  }
}

function writerOf(path: string): AuditFile {
  mkdirSync(dirname(path), { recursive: true })
  const unlock = lockExclusively(path)
  let fd: number | undefined
  try {
    // Records tell who did what, so only the owner may read them.
    fd = openSync(path, 'a+', 0o600)
    return writerIn(fd, path, unlock)
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    unlock()
    throw error
  }
}

function writerIn(fd: number, path: string, unlock: () => void): AuditFile {
  let { seq, end } = findEnd(fd)
  putAside(fd, end, path)
  /** Set while the file may end with a part of a group. */
  let isTorn = false

  function cutBack(): void {
    if (fstatSync(fd).size > end) ftruncateSync(fd, end)
    isTorn = false
  }

  return {
    path,
    append(records) {
      if (isTorn) cutBack()
      let text = ''
      for (const [i, record] of records.entries()) {
        record.seq = seq + i + 1
        text += `${JSON.stringify(record)}\n`
      }
      const bytes = Buffer.from(text)
      try {
        isTorn = true
        // A full disk takes a part and says so only by the count.
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
        isTorn = false
      } catch (error) {
        cutBack()
        throw error
      }
      end += bytes.length
      seq += records.length
    },
    sync: () => fdatasyncAsync(fd),
    isPassing: () => false,
    query: (query) => queryLines(fd, end, query),
    close() {
      closeSync(fd)
      unlock()
    },
  }
}

function readerOf(path: string): AuditFile {
  const fd = openSync(path, 'r')
  return {
    path,
    append() {
      throw new Error('opened for reading only')
    },
    sync: async () => {},
    isPassing: () => false,
    query: (query) => queryLines(fd, fstatSync(fd).size, query),
    close: () => closeSync(fd),
  }
}

const fdatasyncAsync = promisify(fdatasync)

/** Gives the number of the last whole record and where it ends. */
function findEnd(fd: number): { seq: number; end: number } {
  const { size } = fstatSync(fd)
  if (size === 0) return { seq: 0, end: 0 }
  checkKind(fd)
  for (const line of linesBackwards(fd, size)) {
    const record = parseRecord(line.text)
    if (record) return { seq: record.seq, end: line.end }
  }
  return { seq: 0, end: 0 }
}

/** What a line can begin with: the fields are sorted, and `catalog_revision` is always there. */
const BEGINNINGS = ['{"agent":', '{"app":', '{"approval_id":', '{"catalog_revision":']

/** Nothing is cut off somebody else's file. */
function checkKind(fd: number): void {
  const bytes = Buffer.alloc(32)
  const head = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)).toString('latin1')
  if (!BEGINNINGS.some((beginning) => head.startsWith(beginning) || beginning.startsWith(head)))
    throw new Error('it is not an audit file')
}

/** Keeps what follows the last whole record, for people to look at, and cuts it off. */
function putAside(fd: number, end: number, path: string): void {
  const { size } = fstatSync(fd)
  if (size <= end) return
  const bytes = Buffer.alloc(size - end)
  readSync(fd, bytes, 0, bytes.length, end)
  let n = 1
  while (existsSync(`${path}.torn-${n}`)) n++
  writeFileSync(`${path}.torn-${n}`, bytes, { flag: 'wx', mode: 0o600, flush: true })
  ftruncateSync(fd, end)
}

function queryLines(fd: number, end: number, query: AuditQuery): readonly AuditRecord[] {
  const checked = checkAuditQuery(query)
  const needles = needlesOf(checked)
  const found: AuditRecord[] = []
  for (const { text } of linesBackwards(fd, end)) {
    if (found.length >= checked.limit) break
    if (!needles.every((needle) => text.includes(needle))) continue
    const record = parseRecord(text)
    if (record === undefined) continue
    if (checked.afterSeq !== undefined && record.seq <= checked.afterSeq) break
    if (matchesAuditQuery(record, checked)) found.push(record)
  }
  return found
}

/** Texts that a matching line must hold; most lines need no parsing. */
function needlesOf({ tool, user, event }: AuditQuery): readonly string[] {
  return Object.entries({ tool, user_id: user, event })
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => `"${field}":${JSON.stringify(value)}`)
}

function parseRecord(text: string): AuditRecord | undefined {
  try {
    const record = JSON.parse(text) as Partial<AuditRecord> | null
    return Number.isSafeInteger(record?.seq) ? (record as AuditRecord) : undefined
  } catch {
    return undefined
  }
}
