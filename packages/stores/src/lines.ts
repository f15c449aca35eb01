import { isUtf8 } from 'node:buffer'
import { readSync } from 'node:fs'

export interface Line {
  /** The line without its line break. */
  readonly text: string
  /** The position of the line's first byte. */
  readonly start: number
  /** The position of the next line. */
  readonly end: number
}

const BACKWARDS_BYTES = 64 * 1024
const FORWARDS_BYTES = 1024 * 1024
const LINE_FEED = 0x0a

/** Yields the complete lines of a file before `end`, last one first. Bytes after the last line break are ignored. */
export function* linesBackwards(fd: number, end: number): Generator<Line> {
  /** The bytes from `chunkStart` to the end of the current line, last part first: a line may be long. */
  let parts: Buffer[] = []
  let isComplete = false
  for (let chunkStart = end; chunkStart > 0;) {
    const size = Math.min(BACKWARDS_BYTES, chunkStart)
    chunkStart -= size
    let bytes = readAt(fd, chunkStart, size)
    for (let at = bytes.lastIndexOf(LINE_FEED); at >= 0; at = bytes.lastIndexOf(LINE_FEED)) {
      if (isComplete) yield toLine([bytes.subarray(at + 1), ...parts.toReversed()], chunkStart + at + 1)
      isComplete = true
      parts = []
      bytes = bytes.subarray(0, at)
    }
    if (isComplete) parts.push(bytes)
  }
  if (isComplete) yield toLine(parts.toReversed(), 0)
}

function toLine(parts: readonly Buffer[], start: number): Line {
  const bytes = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
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
 * Yields the complete lines of a file before `end` in groups, first one first, without line breaks. Returns whether
 * bytes follow the last line break.
 */
export function* linesForwards(fd: number, end: number): Generator<readonly string[], boolean> {
  /** The parts of the current, incomplete line, which may be long. */
  let rest: Buffer[] = []
  for (let at = 0; at < end;) {
    const chunk = Buffer.allocUnsafe(Math.min(FORWARDS_BYTES, end - at))
    const read = readSync(fd, chunk, 0, chunk.length, at)
    if (read === 0) break
    at += read
    const bytes = chunk.subarray(0, read)
    const last = bytes.lastIndexOf(LINE_FEED)
    if (last >= 0) {
      yield toLines(Buffer.concat([...rest, bytes.subarray(0, last)]))
      rest = []
    }
    rest.push(bytes.subarray(last + 1))
  }
  return rest.some(({ length }) => length > 0)
}

function toLines(bytes: Buffer): readonly string[] {
  if (isUtf8(bytes)) return bytes.toString('utf8').split('\n')
  const lines: string[] = []
  for (let from = 0, to = 0; to < bytes.length; from = to + 1) {
    const at = bytes.indexOf(LINE_FEED, from)
    to = at < 0 ? bytes.length : at
    const line = bytes.subarray(from, to)
    // Invalid UTF-8 must stay different from any valid text: U+FFFD would hide that a byte was changed.
    lines.push(line.toString(isUtf8(line) ? 'utf8' : 'latin1'))
  }
  return lines
}
