import { isUtf8 } from 'node:buffer'
import { readSync } from 'node:fs'

export interface Line {
  /** Without its line break. */
  readonly text: string
  /** The position of its first byte. */
  readonly start: number
  /** The position of the next line. */
  readonly end: number
}

const BACKWARDS_BYTES = 64 * 1024
const FORWARDS_BYTES = 1024 * 1024
const LINE_FEED = 0x0a

/** Returns the complete lines of a file before `end`, last one first. Bytes after the last line break are left out. */
export function* linesBackwards(fd: number, end: number): Generator<Line> {
  let chunkStart = end
  /** The bytes from `chunkStart` to the end of the current line. */
  let bytes: Buffer = Buffer.alloc(0)
  let isComplete = false
  while (chunkStart > 0) {
    const size = Math.min(BACKWARDS_BYTES, chunkStart)
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

/**
 * Yields the complete lines of a file before `end` in groups, first one first, without line breaks. Returns whether bytes
 * follow the last line break.
 */
export function* linesForwards(fd: number, end: number): Generator<readonly string[], boolean> {
  let rest: Buffer = Buffer.alloc(0)
  for (let at = 0; at < end;) {
    const chunk = Buffer.allocUnsafe(Math.min(FORWARDS_BYTES, end - at))
    const read = readSync(fd, chunk, 0, chunk.length, at)
    if (read === 0) break
    at += read
    const bytes = Buffer.concat([rest, chunk.subarray(0, read)])
    const last = bytes.lastIndexOf(LINE_FEED)
    rest = bytes.subarray(last + 1)
    if (last >= 0) yield toLines(bytes.subarray(0, last))
  }
  return rest.length > 0
}

function toLines(bytes: Buffer): readonly string[] {
  // Invalid UTF-8 must stay different from any valid text: U+FFFD would hide that a byte was changed.
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1').split('\n')
}
