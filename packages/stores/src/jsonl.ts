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
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  type AuditCountQuery,
  type AuditCounts,
  type AuditExportQuery,
  type AuditQuery,
  type AuditRecord,
  type ChainEnd,
  checkAuditQuery,
  checkCountQuery,
  createOutcomeTally,
  createRecordTree,
  createSealer,
  eventOfOutcome,
  GENESIS,
  matchesAuditQuery,
  outcomeOfRecord,
  readLink,
  readSeq,
  type RecordTree,
} from '@toolgate/core/audit'
import { parseRecord, RECORD_FIELDS } from '@toolgate/core/internal'
import { type AuditFile, openError } from './audit-file.ts'
import {
  type AuditFileOptions,
  checkAuditFileOptions,
  type FileAudit,
  sealOptionsOf,
  withInputKey,
} from './audit-options.ts'
import type { CheckpointFile, Segment } from './checkpoint-file.ts'
import { lockExclusively } from './locks.ts'
import { linesBackwards, linesForwards } from './lines.ts'
import { openAudit } from './open-audit.ts'

export type { AuditFileOptions, CheckpointOptions, FileAudit } from './audit-options.ts'

/**
 * Opens an audit in a file of JSON lines, each a record in RFC 8785 form. One process may write to it.
 *
 * An incomplete record at the end, left by a crash, is moved to `<path>.torn-<n>`.
 *
 * @throws {ConfigError} for an unknown option
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be opened, is something else or has a writer
 */
export function openJsonlAudit(given: AuditFileOptions): FileAudit {
  checkAuditFileOptions('openJsonlAudit', given)
  const path = resolve(given.path)
  try {
    const options = withInputKey(given)
    return openAudit(options.readOnly ? readerOf(path) : writerOf(path, options), options)
  } catch (error) {
    throw openError(path, error)
  }
}

function writerOf(path: string, options: AuditFileOptions): AuditFile {
  mkdirSync(dirname(path), { recursive: true })
  const unlock = lockExclusively(path)
  let fd: number | undefined
  try {
    // Only the owner may read the file: records hold who did what.
    fd = openSync(path, 'a+', 0o600)
    return writerIn(fd, path, options, unlock)
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    unlock()
    throw error
  }
}

function writerIn(fd: number, path: string, options: AuditFileOptions, unlock: () => void): AuditFile {
  const found = findEnd(fd)
  putAside(fd, found.end, path)
  let { end } = found
  const sealer = createSealer(sealOptionsOf(options), found)
  const segments = options.checkpoints === false ? undefined : createSegments(fd, found)
  /** Whether the file may end with an incomplete group. */
  let isTorn = false

  function cutBack(): void {
    if (fstatSync(fd).size > end) ftruncateSync(fd, end)
    isTorn = false
  }

  return {
    path,
    isSole: true,
    append(entries) {
      if (isTorn) cutBack()
      const before = { seq: sealer.seq, head: sealer.head }
      const hashes: string[] = []
      let epoch: number | undefined
      try {
        let text = ''
        for (const entry of entries) {
          text += sealer.seal(entry)
          text += '\n'
          hashes.push(sealer.head)
          if (entry.event === 'audit_opened') epoch = sealer.seq
        }
        const bytes = Buffer.from(text)
        isTorn = true
        // A full disk may write a part, which only the count shows.
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
        isTorn = false
        end += bytes.length
        segments?.add(hashes, epoch)
      } catch (error) {
        sealer.goOnFrom(before)
        cutBack()
        throw error
      }
    },
    sync: () => fdatasyncAsync(fd),
    checkpoint: async (file, sync, prunedSeq) =>
      segments?.sign(file, sync, { seq: sealer.seq, head: sealer.head, prunedSeq }),
    isPassing: () => false,
    ...NOTHING_TO_REMOVE,
    query: (query) => queryLines(fd, end, query),
    exportRecords: (query) => exportLines(path, end, query),
    countOutcomes: (query) => countLines(path, end, query),
    backwards: () => recordsBackwards(fd, end),
    opened: () => {},
    close() {
      closeSync(fd)
      unlock()
    },
  }
}

function readerOf(path: string): AuditFile {
  const fd = openSync(path, 'r')
  const refuse = (): never => {
    throw new Error('opened for reading only')
  }
  return {
    path,
    isSole: false,
    append: refuse,
    sync: async () => {},
    checkpoint: async () => refuse(),
    isPassing: () => false,
    ...NOTHING_TO_REMOVE,
    query: (query) => queryLines(fd, fstatSync(fd).size, query),
    exportRecords: (query) => exportLines(path, fstatSync(fd).size, query),
    countOutcomes: (query) => countLines(path, fstatSync(fd).size, query),
    backwards: () => recordsBackwards(fd, fstatSync(fd).size),
    opened: () => {},
    close: () => closeSync(fd),
  }
}

const NOTHING_TO_REMOVE = {
  firstSeq: () => Number.POSITIVE_INFINITY,
  lastCut: () => 0,
  *textsIn() {},
  removeUpTo: () => {},
  reclaim: () => false,
}

const fdatasyncAsync = promisify(fdatasync)

/** The records that are not signed yet. */
interface Segments {
  add(hashes: readonly string[], epoch: number | undefined): void
  /** Signs the records so far. Records that arrive meanwhile belong to the next checkpoint. */
  sign(file: CheckpointFile, sync: () => Promise<void>, end: SignedEnd): Promise<void>
}

interface SignedEnd extends ChainEnd {
  readonly prunedSeq: number | undefined
}

function createSegments(fd: number, start: ChainEnd & { readonly end: number }): Segments {
  let tree: RecordTree | undefined
  /** Groups of hashes before the first checkpoint, which determines where the tree begins. */
  let added: (readonly string[])[] = []
  let epoch = start.seq + 1
  /** Segments whose checkpoint could not be written. They are signed first at the next try. */
  let waiting: Segment[] = []

  /** Returns a tree of the records that were in the file at the opening and are not signed. */
  function firstTree(file: CheckpointFile): RecordTree {
    const last = file.last()
    const grown = createRecordTree()
    const hashes = last === undefined ? hashesFrom(fd, start.end) : hashesAfter(fd, start.end, last.seq)
    for (const hash of hashes) grown.add(hash)
    return grown
  }

  return {
    add(hashes, opened) {
      epoch = opened ?? epoch
      if (tree === undefined) added.push(hashes)
      else for (const hash of hashes) tree.add(hash)
    },
    async sign(file, sync, { seq, head, prunedSeq }) {
      tree ??= firstTree(file)
      for (const hashes of added) for (const hash of hashes) tree.add(hash)
      added = []
      waiting.push({ count: tree.size, epoch, headHash: head, merkleRoot: tree.root(), seq })
      tree = createRecordTree()
      const signing = waiting
      waiting = []
      try {
        await sync()
        for (let [segment] = signing; segment !== undefined; [segment] = signing) {
          file.append(segment, prunedSeq)
          signing.shift()
        }
      } finally {
        waiting = [...signing, ...waiting]
      }
    },
  }
}

/** Returns the hashes of all records of the chain. */
function* hashesFrom(fd: number, end: number): Generator<string> {
  for (const lines of linesForwards(fd, end)) {
    for (const line of lines) {
      const link = readLink(line)
      if (link !== undefined) yield link.hash
    }
  }
}

/** Returns the hashes of the records after a number, in their order. */
function hashesAfter(fd: number, end: number, seq: number): readonly string[] {
  const hashes: string[] = []
  for (const { text } of linesBackwards(fd, end)) {
    const link = readLink(text)
    if (link === undefined || link.seq <= seq) break
    hashes.push(link.hash)
  }
  return hashes.toReversed()
}

/** Returns the number and the hash of the last complete record, and where it ends. */
function findEnd(fd: number): ChainEnd & { readonly end: number } {
  const { size } = fstatSync(fd)
  if (size === 0) return { seq: 0, head: GENESIS, end: 0 }
  checkKind(fd)
  for (const line of linesBackwards(fd, size)) {
    const record = parseRecord(line.text)
    if (record) return { seq: record.seq, head: record.hash ?? GENESIS, end: line.end }
  }
  return { seq: 0, head: GENESIS, end: 0 }
}

/** The possible beginnings of a line: fields are sorted, and every record has a `catalog_revision`. */
const BEGINNINGS = RECORD_FIELDS.slice(0, RECORD_FIELDS.indexOf('catalog_revision') + 1).map((name) => `{"${name}":`)

/** @throws {Error} for a file that is not an audit, which must not be cut */
function checkKind(fd: number): void {
  const bytes = Buffer.alloc(32)
  const head = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)).toString('latin1')
  if (!BEGINNINGS.some((beginning) => head.startsWith(beginning) || beginning.startsWith(head)))
    throw new Error('it is not an audit file')
}

/** Moves the bytes after the last complete record to a file of their own. */
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
  const matches = createMatch(checked)
  const found: AuditRecord[] = []
  for (const { text } of linesBackwards(fd, end)) {
    if (found.length >= checked.limit) break
    const record = matches(text)
    if (record === undefined) continue
    if (checked.afterSeq !== undefined && record.seq <= checked.afterSeq) break
    if (matchesAuditQuery(record, checked)) found.push(record)
  }
  return found
}

/** Reads with a descriptor of its own, since the audit may be closed before the reader is done. */
async function* exportLines(path: string, end: number, query: AuditExportQuery): AsyncGenerator<AuditRecord> {
  const checked = checkAuditQuery(query)
  const matches = createMatch(checked)
  const fd = openSync(path, 'r')
  try {
    for (const lines of linesForwards(fd, end)) {
      for (const text of lines) {
        const record = matches(text)
        if (record === undefined) continue
        if (checked.beforeSeq !== undefined && record.seq >= checked.beforeSeq) return
        if (matchesAuditQuery(record, checked)) yield record
      }
      await endOfTurn()
    }
  } finally {
    closeSync(fd)
  }
}

async function countLines(path: string, end: number, query: AuditCountQuery): Promise<AuditCounts> {
  const checked = checkCountQuery(query)
  const tally = createOutcomeTally(checked)
  const matches = createMatch(checked)
  const fd = openSync(path, 'r')
  let newestSeq = 0
  try {
    for (const lines of linesForwards(fd, end)) {
      for (const text of lines) {
        const atMs = readTime(text)
        if (!(atMs >= checked.since && atMs < checked.until)) continue
        const record = matches(text)
        if (record === undefined || !matchesAuditQuery(record, checked)) continue
        const outcome = outcomeOfRecord(record)
        if (outcome !== undefined) tally.add(atMs, outcome)
      }
      newestSeq = readSeq(lines.at(-1) ?? '') || newestSeq
      await endOfTurn()
    }
  } finally {
    closeSync(fd)
  }
  return tally.counts(newestSeq)
}

const TIME_FIELD = ',"ts":"'

/** Reads the time of a record from its text, which is much faster than parsing it; NaN if it has none. */
function readTime(text: string): number {
  const start = text.indexOf(TIME_FIELD) + TIME_FIELD.length
  return start < TIME_FIELD.length ? Number.NaN : Date.parse(text.slice(start, text.indexOf('"', start)))
}

function* recordsBackwards(fd: number, end: number): Generator<AuditRecord> {
  for (const { text } of linesBackwards(fd, end)) {
    const record = parseRecord(text)
    if (record !== undefined) yield record
  }
}

/** Returns a function that parses a line which may match a query. Most lines are not parsed. */
function createMatch({ tool, user, session, tenant, call, event, outcome }: AuditExportQuery) {
  const fields = { tool, user_id: user, session_id: session, tenant, tool_call_id: call, event }
  const needles = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => `"${field}":${JSON.stringify(value)}`)
  if (outcome !== undefined) needles.push(`"event":"${eventOfOutcome(outcome)}"`)
  return (text: string): AuditRecord | undefined =>
    needles.every((needle) => text.includes(needle)) ? parseRecord(text) : undefined
}
