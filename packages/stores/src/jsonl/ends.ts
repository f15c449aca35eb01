import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, readSync, writeFileSync } from 'node:fs'
import { type ChainEnd, GENESIS } from '@toolgate/core/audit'
import { parseRecord } from '@toolgate/core/internal'
import { linesBackwards, linesForwards } from '../lines.ts'
import { checkKind, firstSeqIn, type LogFile } from './log-files.ts'
import { readTime } from './read.ts'

type End = ChainEnd & { readonly end: number }

/** Returns the number, the hash and the end of the last complete record. */
export function findEnd(fd: number): End {
  const { size } = fstatSync(fd)
  if (size === 0) return { seq: 0, head: GENESIS, end: 0 }
  checkKind(fd)
  for (const line of linesBackwards(fd, size)) {
    const record = parseRecord(line.text)
    if (record) return { seq: record.seq, head: record.hash ?? GENESIS, end: line.end }
  }
  return { seq: 0, head: GENESIS, end: 0 }
}

/** Returns the end of the newest closed file, without an incomplete record that a crash left. */
export function endOfClosed(closed: readonly LogFile[]): ChainEnd {
  const newest = closed.at(-1)
  if (newest === undefined) return { seq: 0, head: GENESIS }
  const fd = openSync(newest.path, 'r+')
  try {
    const found = findEnd(fd)
    putAside(fd, found.end, newest.path)
    return found
  } finally {
    closeSync(fd)
  }
}

/** Returns the first record of a file, and its time. */
export function firstOf(fd: number, end: number): { seq: number; atMs: number } | undefined {
  const seq = firstSeqIn(fd, end)
  if (seq === undefined) return undefined
  const [[line = ''] = []] = linesForwards(fd, end).take(1).toArray()
  return { seq, atMs: readTime(line) }
}

/** Moves the bytes after the last complete record to a separate file. */
export function putAside(fd: number, end: number, path: string): void {
  const { size } = fstatSync(fd)
  if (size <= end) return
  const bytes = Buffer.alloc(size - end)
  readSync(fd, bytes, 0, bytes.length, end)
  let n = 1
  while (existsSync(`${path}.torn-${n}`)) n++
  writeFileSync(`${path}.torn-${n}`, bytes, { flag: 'wx', mode: 0o600, flush: true })
  ftruncateSync(fd, end)
}
