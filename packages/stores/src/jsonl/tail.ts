import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { parseRecord } from '@toolgate/core/internal'
import { readSeq } from '@toolgate/core/audit'
import { closedFiles, viewAt } from './log-files.ts'

const PART_BYTES = 1 << 20
const LINE_FEED = 0x0a

/** Reads the records of an audit in JSON lines part by part, while this process writes and rotates it. */
export class LogTail {
  readonly #path: string
  /** The number of the last record that was returned. */
  #seq: number
  #fd: number | undefined
  /** The position of the next record. */
  #at = 0

  /** Creates a reader that begins after a record. */
  constructor(path: string, after: number) {
    this.#path = path
    this.#seq = after
  }

  /**
   * Returns the texts of some of the next records, up to a number that the audit has.
   * @throws if the audit has a gap
   */
  read(upTo: number): readonly string[] {
    while (this.#seq < upTo) {
      const opened = this.#fd === undefined
      this.#fd ??= this.#open(this.#seq + 1)
      const texts = this.#readPart(this.#fd, upTo)
      if (texts.length > 0) return texts
      this.close()
      if (opened) throw new Error(`record ${this.#seq + 1} is missing in ${this.#path}`)
    }
    return []
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
    this.#at = 0
  }

  #open(seq: number): number {
    const file = closedFiles(this.#path).find(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq)
    return openSync(file?.path ?? this.#path, 'r')
  }

  #readPart(fd: number, upTo: number): readonly string[] {
    const left = fstatSync(fd).size - this.#at
    for (let size = Math.min(PART_BYTES, left); size > 0; size = Math.min(size * 2, left)) {
      const bytes = Buffer.allocUnsafe(size)
      const part = bytes.subarray(0, readSync(fd, bytes, 0, size, this.#at))
      if (part.includes(LINE_FEED)) return this.#take(part, upTo) ?? this.#readPart(fd, upTo)
      if (size === left) return []
    }
    return []
  }

  /** Returns the wanted lines of a part, or `undefined` if all of them were read before. */
  #take(part: Buffer, upTo: number): readonly string[] | undefined {
    const texts: string[] = []
    let from = 0
    while (this.#seq < upTo) {
      const to = part.indexOf(LINE_FEED, from)
      if (to < 0) break
      const text = part.toString('utf8', from, to)
      from = to + 1
      const seq = readSeq(text)
      if (seq <= this.#seq) continue
      if (seq !== this.#seq + 1) throw new Error(`record ${this.#seq + 1} is missing in ${this.#path}`)
      this.#seq = seq
      texts.push(text)
    }
    this.#at += from
    return texts.length > 0 ? texts : undefined
  }
}

/** Returns the number of the last complete record of an audit without a writer, or 0 for none. */
export function lastSeqAt(path: string): number {
  if (!existsSync(path) && closedFiles(path).length === 0) return 0
  const view = viewAt(path)
  try {
    for (const { text } of view.backwards()) {
      const seq = parseRecord(text)?.seq
      if (seq !== undefined) return seq
    }
    return 0
  } finally {
    view.close()
  }
}
