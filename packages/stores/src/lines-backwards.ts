import { readSync } from 'node:fs'

export interface Line {
  /** Without its line break. */
  readonly text: string
  /** Where it begins, in bytes. */
  readonly start: number
  /** Where the next line begins. */
  readonly end: number
}

const CHUNK_BYTES = 64 * 1024
const LINE_FEED = 0x0a

/** Gives the complete lines of a file before `end`, the last one first. What follows the last line break is left out. */
export function* linesBackwards(fd: number, end: number): Generator<Line> {
  let chunkStart = end
  /** Bytes from `chunkStart` on, up to the end of the line that is being put together. */
  let bytes: Buffer = Buffer.alloc(0)
  let isComplete = false
  while (chunkStart > 0) {
    const size = Math.min(CHUNK_BYTES, chunkStart)
    chunkStart -= size
    bytes = Buffer.concat([readAt(fd, chunkStart, size), bytes])
    for (let at = bytes.lastIndexOf(LINE_FEED); at >= 0; at = bytes.lastIndexOf(LINE_FEED)) {
      if (isComplete) yield toLine(bytes.subarray(at + 1), chunkStart + at + 1)
      isComplete = true
      bytes = bytes.subarray(0, at)
    }
  }
  if (isComplete) yield toLine(bytes, 0)
}

function toLine(bytes: Buffer, start: number): Line {
  return { text: bytes.toString('utf8'), start, end: start + bytes.length + 1 }
}

function readAt(fd: number, position: number, size: number): Buffer {
  const buffer = Buffer.allocUnsafe(size)
  let read = 0
  while (read < size) {
    const count = readSync(fd, buffer, read, size - read, position + read)
    if (count === 0) break
    read += count
  }
  return buffer.subarray(0, read)
}
