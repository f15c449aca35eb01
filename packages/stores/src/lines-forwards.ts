import { isUtf8 } from 'node:buffer'
import { readSync } from 'node:fs'

const CHUNK_BYTES = 1024 * 1024
const LINE_FEED = 0x0a

/**
 * Gives the complete lines of a file before `end`, the first one first, in groups, without their line breaks. What
 * follows the last line break is left out; whether there is something is what the generator returns.
 */
export function* linesForwards(fd: number, end: number): Generator<readonly string[], boolean> {
  let rest: Buffer = Buffer.alloc(0)
  for (let at = 0; at < end;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at))
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
  // What is not UTF-8 stays different from any text that is: U+FFFD would hide that a byte was changed.
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1').split('\n')
}
