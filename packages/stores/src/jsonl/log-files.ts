import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readSeq } from '@toolgate/core/audit'
import { parseRecord, RECORD_FIELDS } from '@toolgate/core/internal'
import { type Line, linesBackwards, linesForwards } from '../lines.ts'
import { endBefore } from './find-seq.ts'

/** A file with records of an audit. */
export interface LogFile {
  readonly path: string
  readonly firstSeq: number
  readonly lastSeq: number
}

/**
 * The suffixes of closed files: our own, `.000000000001-000000005000`, which name the records, and logrotate's, `.1` or
 * `-20261123`. Files with other suffixes, such as `.bak`, may be copies.
 */
const CLOSED = /^(?:\.\d{12,16}-\d{12,16}|\.\d{1,6}|-\d{8,14})$/

/** Returns the name of a closed file. Sorted by name, closed files are in the order of their records. */
export function closedName(path: string, firstSeq: number, lastSeq: number): string {
  return `${path}.${pad(firstSeq)}-${pad(lastSeq)}`
}

function pad(seq: number): string {
  return String(seq).padStart(12, '0')
}

/** Returns the closed files of an audit, in the order of their records, whatever their names are. */
export function closedFiles(path: string): readonly LogFile[] {
  const [folder, name] = [dirname(path), basename(path)]
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((entry) => entry.startsWith(name) && CLOSED.test(entry.slice(name.length)))
    .flatMap((entry) => rangeOf(join(folder, entry)) ?? [])
    .toSorted((a, b) => a.firstSeq - b.firstSeq)
}

/** Returns the numbers of the first and the last record in a file, or `undefined` if it has none. */
function rangeOf(path: string): LogFile | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    const { size } = fstatSync(fd)
    const firstSeq = firstSeqIn(fd, size)
    for (const { text } of linesBackwards(fd, size)) {
      const lastSeq = parseRecord(text)?.seq
      if (lastSeq !== undefined) return { path, firstSeq: firstSeq ?? lastSeq, lastSeq }
    }
  } catch {
    // The path is a folder, or the file was removed meanwhile.
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
  return undefined
}

/** Returns the number of the first record in a file, or `undefined` if its first part has no record. */
export function firstSeqIn(fd: number, end: number): number | undefined {
  const [lines = []] = linesForwards(fd, Math.min(end, 1 << 20))
    .take(1)
    .toArray()
  return lines.map((text) => readSeq(text)).find((seq) => Number.isSafeInteger(seq))
}

/** All files of an audit at one moment, in the order of their records. */
export interface LogView {
  readonly parts: readonly LogPart[]
  forwards(): Generator<readonly string[], boolean>
  /** Returns the lines, last one first. With `before` it skips most lines from that record on. */
  backwards(before?: number): Generator<Line>
  close(): void
}

interface LogPart {
  /** The path. Empty for the current file. */
  readonly path: string
  /** The file descriptor. Absent until the file is read. */
  readonly fd?: number
  readonly end?: number
  readonly firstSeq: number
}

/** Returns a view of the closed files and the current one. The owner of the descriptor closes it. */
export function viewOf(
  closed: readonly LogFile[],
  active: { readonly fd: number; readonly end: number } | undefined,
): LogView {
  const last = active && { ...active, path: '', firstSeq: Number.POSITIVE_INFINITY }
  const parts: readonly LogPart[] = [...closed, ...(last ? [last] : [])]
  return {
    parts,
    *forwards() {
      let isTorn = false
      for (const part of parts) {
        const { fd, end, done } = opened(part)
        try {
          if (fd !== undefined) isTorn = (yield* linesForwards(fd, end)) || isTorn
        } finally {
          done()
        }
      }
      return isTorn
    },
    *backwards(before) {
      for (const part of parts.toReversed()) {
        const isNewer = part.path !== '' && before !== undefined && part.firstSeq >= before
        if (isNewer) continue
        const { fd, end, done } = opened(part)
        try {
          if (fd !== undefined) yield* linesBackwards(fd, before === undefined ? end : endBefore(fd, end, before))
        } finally {
          done()
        }
      }
    },
    close: () => {},
  }
}

/** Opens a part. A part that retention has removed is empty. */
function opened(part: LogPart): { fd: number | undefined; end: number; done: () => void } {
  if (part.fd !== undefined) return { fd: part.fd, end: part.end ?? 0, done: () => {} }
  if (!existsSync(part.path)) return { fd: undefined, end: 0, done: () => {} }
  const fd = openSync(part.path, 'r')
  return { fd, end: fstatSync(fd).size, done: () => closeSync(fd) }
}

/** Returns a view of an audit that another process may write and rotate. Close the view after use. */
export function viewAt(path: string): LogView {
  // The file is opened before the folder is read, because a rotation between the two would hide a file.
  const fd = existsSync(path) ? openSync(path, 'r') : undefined
  const closed = closedFiles(path).filter((file) => fd === undefined || !isSameFile(fd, file.path))
  if (fd === undefined && closed.length === 0) throw new Error(`${path} does not exist`)
  const view = viewOf(closed, fd === undefined ? undefined : { fd, end: fstatSync(fd).size })
  return {
    ...view,
    close: () => {
      if (fd !== undefined) closeSync(fd)
    },
  }
}

/** Whether a path still refers to the file of a descriptor. */
export function isSameFile(fd: number, path: string): boolean {
  const there = statSync(path, { throwIfNoEntry: false })
  const { dev, ino } = fstatSync(fd)
  return there?.dev === dev && there.ino === ino
}

/** The texts with which a line may begin: fields are sorted, and every record has a `catalog_revision`. */
const BEGINNINGS = RECORD_FIELDS.slice(0, RECORD_FIELDS.indexOf('catalog_revision') + 1).map((name) => `{"${name}":`)

/** @throws {Error} for a file that is not an audit, because it must not be cut */
export function checkKind(fd: number): void {
  const bytes = Buffer.alloc(32)
  const head = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)).toString('latin1')
  if (!BEGINNINGS.some((beginning) => head.startsWith(beginning) || beginning.startsWith(head)))
    throw new Error('it is not an audit file')
}
