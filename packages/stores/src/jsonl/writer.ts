import {
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { type AuditEntry, createSealer, type Sealer } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import type { AuditFile } from '../audit-file.ts'
import {
  type AuditFileOptions,
  type RotationOptions,
  rotationOf,
  sealOptionsOf,
  sealsInputs,
} from '../audit-options.ts'
import { type StoredInputBoxes, openBoxes } from '../input-boxes.ts'
import { lockExclusively } from '../locks.ts'
import { createPrivately } from '../sqlite-file.ts'
import { endOfClosed, findEnd, firstOf, putAside } from './ends.ts'
import { closedFiles, closedName, isSameFile, type LogFile, type LogView, viewOf } from './log-files.ts'
import { countLines, exportLines, queryLines, recordsBackwards } from './read.ts'
import { createUnsigned, type Unsigned } from './unsigned.ts'

const fdatasyncAsync = promisify(fdatasync)
/** The number of records that a removal reads at once. */
const TEXTS = 500

/** Callbacks about a writer's work. */
interface WriterHooks {
  /** Called before records are written. An exception refuses them. */
  readonly onAppend: () => void
  /** Called when the records up to a number are on the disk. */
  readonly onSynced: (seq: number) => void
}

/** @throws {Error} for a file that cannot be opened, is not an audit, or has a writer */
export function openWriter(path: string, options: AuditFileOptions, hooks?: WriterHooks): AuditFile {
  mkdirSync(dirname(path), { recursive: true })
  const unlock = lockExclusively(path)
  let fd: number | undefined
  let boxes: StoredInputBoxes | undefined
  try {
    fd = openActive(path)
    boxes = openBoxes(path, { mayWrite: true, make: sealsInputs(options) })
    return new JsonlWriter({ fd, path, options, unlock, hooks, boxes })
  } catch (error) {
    boxes?.close()
    if (fd !== undefined) closeSync(fd)
    unlock()
    throw error
  }
}

/** Opens the current file. Only the owner may read it, because records contain who did what. */
function openActive(path: string): number {
  createPrivately(path)
  return openSync(path, 'a+', 0o600)
}

interface WriterParts {
  readonly fd: number
  readonly path: string
  readonly options: AuditFileOptions
  readonly unlock: () => void
  readonly hooks: WriterHooks | undefined
  readonly boxes: StoredInputBoxes | undefined
}

/** Writes the records of one chain into a sequence of files. */
class JsonlWriter implements AuditFile {
  readonly path: string
  readonly isSole = true
  readonly boxes: StoredInputBoxes | undefined
  readonly isPassing = (): boolean => false
  readonly #options: AuditFileOptions
  readonly #unlock: () => void
  readonly #hooks: WriterHooks | undefined
  readonly #sealer: Sealer
  readonly #unsigned: Unsigned | undefined
  readonly #rotation: RotationOptions
  #closed: readonly LogFile[]
  #fd: number
  /** The end of the last complete record. */
  #end: number
  /** The first record of the file, with its time. */
  #first: { readonly seq: number; readonly atMs: number } | undefined
  /** Descriptors of closed files that are not synced yet. */
  #unsynced: number[] = []
  /** Whether the file may end with an incomplete group. */
  #isTorn = false
  /** Whether a rotation failed. The next checkpoint tries again. */
  #hasFailedToRotate = false
  #latestFault = ''

  constructor({ fd, path, options, unlock, hooks, boxes }: WriterParts) {
    this.path = path
    this.boxes = boxes
    this.#hooks = hooks
    this.#fd = fd
    this.#options = options
    this.#unlock = unlock
    this.#rotation = rotationOf(options)
    this.#closed = closedFiles(path)
    const found = findEnd(fd)
    putAside(fd, found.end, path)
    this.#end = found.end
    this.#first = firstOf(fd, found.end)
    const start = found.seq > 0 ? found : endOfClosed(this.#closed)
    const newest = this.#closed.at(-1)
    if (newest !== undefined && newest.lastSeq > start.seq)
      throw new Error(`${newest.path} has later records than ${path}: one of them is not in its place`)
    this.#sealer = createSealer(sealOptionsOf(options), start)
    if (options.checkpoints !== false) this.#unsigned = createUnsigned(viewOf(this.#closed, { fd, end: this.#end }))
  }

  append(entries: readonly AuditEntry[]): void {
    this.#hooks?.onAppend()
    if (this.#isTorn) this.#cutBack()
    const glue = this.#resync()
    const sealer = this.#sealer
    const before = { seq: sealer.seq, head: sealer.head }
    const hashes: string[] = []
    try {
      let text = glue
      for (const entry of entries) {
        text += sealer.seal(entry)
        text += '\n'
        hashes.push(sealer.head)
      }
      this.#keepInputs(entries, before.seq)
      const bytes = Buffer.from(text)
      this.#isTorn = true
      // A full disk may write only a part, which only the returned count shows.
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at)
      this.#isTorn = false
      this.#end += bytes.length
      this.#first ??= { seq: before.seq + 1, atMs: this.#nowMs() }
      this.#unsigned?.add(hashes)
    } catch (error) {
      sealer.goOnFrom(before)
      this.#cutBack()
      throw error
    }
    this.#rotateIfDue()
  }

  /** Stores inputs before their records. The next record's box replaces a box without a record. */
  #keepInputs(entries: readonly AuditEntry[], after: number): void {
    const { boxes } = this
    if (boxes === undefined || !sealsInputs(this.#options)) return
    boxes.inTransaction(() => {
      for (const [i, entry] of entries.entries()) boxes.put(after + i + 1, entry, this.#options)
    })
  }

  async sync(): Promise<void> {
    this.boxes?.sync()
    this.#trying('go on in a new file', () => this.#findAgain())
    const { seq } = this.#sealer
    const closed = this.#unsynced
    this.#unsynced = []
    for (const fd of closed) {
      await fdatasyncAsync(fd)
      closeSync(fd)
    }
    if (closed.length > 0) syncFolder(dirname(this.path))
    await fdatasyncAsync(this.#fd)
    this.#hooks?.onSynced(seq)
  }

  async checkpoint(...[file, sync, pruned]: Parameters<AuditFile['checkpoint']>): Promise<void> {
    this.#hasFailedToRotate = false
    this.#rotateIfDue()
    const { seq, head } = this.#sealer
    await this.#unsigned?.sign(file, sync, { seq, head, pruned })
    // A process must create its first checkpoint before it can rotate.
    this.#rotateIfDue()
  }

  rotate(): string | undefined {
    const { seq } = this.#sealer
    if (this.#first === undefined || !isSameFile(this.#fd, this.path)) return undefined
    if (this.#unsigned?.cut(this.#sealer) === false) return undefined
    const closed = { path: closedName(this.path, this.#first.seq, seq), firstSeq: this.#first.seq, lastSeq: seq }
    if (existsSync(closed.path)) throw new Error(`${closed.path} is there already`)
    renameSync(this.path, closed.path)
    try {
      this.#goOnInNewFile()
    } catch (error) {
      renameSync(closed.path, this.path)
      throw error
    }
    this.#closed = [...this.#closed, closed]
    return closed.path
  }

  async query(...[query]: Parameters<AuditFile['query']>): ReturnType<AuditFile['query']> {
    return queryLines(this.#view(), query)
  }

  exportRecords(...query: Parameters<AuditFile['exportRecords']>): ReturnType<AuditFile['exportRecords']> {
    return exportLines(this.path, ...query)
  }

  countOutcomes(...[query]: Parameters<AuditFile['countOutcomes']>): ReturnType<AuditFile['countOutcomes']> {
    return countLines(this.path, query)
  }

  backwards(): ReturnType<AuditFile['backwards']> {
    return recordsBackwards(this.#view())
  }

  firstSeq(): number {
    return this.#closed[0]?.firstSeq ?? this.#first?.seq ?? Number.POSITIVE_INFINITY
  }

  lastCut(seqs: readonly number[]): number {
    const ends = new Set(this.#closed.map(({ lastSeq }) => lastSeq))
    return seqs.findLast((seq) => ends.has(seq)) ?? 0
  }

  *textsIn(after: number, upTo: number): Generator<readonly string[]> {
    const files = this.#closed.filter(({ firstSeq, lastSeq }) => lastSeq > after && firstSeq <= upTo)
    for (const lines of viewOf(files, undefined).forwards())
      for (let at = 0; at < lines.length; at += TEXTS) yield lines.slice(at, at + TEXTS)
  }

  removeUpTo(seq: number): boolean {
    const [oldest, ...others] = this.#closed
    if (oldest === undefined || oldest.lastSeq > seq) return false
    if (this.boxes?.removeUpTo(oldest.lastSeq) === true) return true
    rmSync(oldest.path, { force: true })
    this.#closed = others
    return true
  }

  reclaim(): boolean {
    return false
  }

  opened(): void {}

  close(): void {
    for (const fd of [...this.#unsynced, this.#fd]) closeSync(fd)
    this.boxes?.close()
    this.#unlock()
  }

  #view(): LogView {
    return viewOf(this.#closed, { fd: this.#fd, end: this.#end })
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)()
  }

  /** Rotates when it is time. Never throws, because the records are stored in either file. */
  #rotateIfDue(): void {
    if (this.#first === undefined || this.#hasFailedToRotate) return
    const { bytes = Number.POSITIVE_INFINITY, everyMs = Number.POSITIVE_INFINITY } = this.#rotation
    if (this.#end < bytes && this.#nowMs() - this.#first.atMs < everyMs) return
    this.#hasFailedToRotate = !this.#trying('be rotated', () => this.rotate())
  }

  /** Runs an action and returns whether it succeeds. On failure the audit continues with its open file. */
  #trying(what: string, action: () => unknown): boolean {
    try {
      action()
      return true
    } catch (error) {
      this.#fault(`the audit ${this.path} cannot ${what}: ${messageOf(error)}`)
      return false
    }
  }

  #goOnInNewFile(): void {
    const fd = openActive(this.path)
    this.#unsynced.push(this.#fd)
    this.#fd = fd
    this.#end = fstatSync(fd).size
    this.#first = undefined
  }

  #cutBack(): void {
    if (fstatSync(this.#fd).size > this.#end) ftruncateSync(this.#fd, this.#end)
    this.#isTorn = false
  }

  /**
   * Detects that another program has cut or extended the file, such as logrotate with `copytruncate`. Returns the text
   * that must come before the next record, so that the record begins a line.
   */
  #resync(): string {
    const { size } = fstatSync(this.#fd)
    if (size === this.#end) return ''
    this.#fault(
      size < this.#end
        ? `another program cut ${this.path} while the audit was open, such as logrotate with copytruncate: records may be lost. Use audit.rotate, or logrotate without copytruncate`
        : `another program wrote to ${this.path} while the audit was open`,
    )
    this.#end = size
    this.#unsigned?.cut(this.#sealer)
    if (size === 0) this.#first = undefined
    this.#closed = closedFiles(this.path)
    const last = Buffer.alloc(1)
    return size > 0 && readSync(this.#fd, last, 0, 1, size - 1) === 1 && last.toString() !== '\n' ? '\n' : ''
  }

  /** Continues in a new file if another program has moved the file, as logrotate does. */
  #findAgain(): void {
    if (isSameFile(this.#fd, this.path) || this.#unsigned?.cut(this.#sealer) === false) return
    const there = statSync(this.path, { throwIfNoEntry: false })
    if (there !== undefined && there.size > 0)
      return this.#fault(
        `another program put a file in the place of ${this.path}: records go to the file that was there`,
      )
    const isGone = fstatSync(this.#fd).nlink === 0
    const lastSeq = this.#sealer.seq
    this.#goOnInNewFile()
    this.#closed = closedFiles(this.path)
    if (isGone) this.#fault(`another program removed ${this.path} while the audit was open: its records are lost`)
    else if (this.#closed.at(-1)?.lastSeq !== lastSeq)
      this.#fault(
        `another program renamed ${this.path}, to a name under which it is not found: rename it to ${this.path}.1 or another number`,
      )
  }

  #fault(message: string): void {
    if (message !== this.#latestFault) this.#options.onFault?.(new Error(message))
    this.#latestFault = message
  }
}

function syncFolder(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
