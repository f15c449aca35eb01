import { readSync } from 'node:fs'
import { readSeq } from '@toolgate/core/audit'

/** The distance in bytes below which the file is read through. */
const NEAR = 128 * 1024
/** The bytes of one read. The search ends at a longer line. */
const PART = 64 * 1024
const LINE_FEED = 0x0a

/**
 * Returns a position in a file of records, at or shortly after the first record from `seq` on. Records are in order, so
 * a few reads find the position; reading back from the file's end would read all newer records.
 */
export function endBefore(fd: number, end: number, seq: number): number {
  let [low, high] = [0, end]
  const part = Buffer.allocUnsafe(PART)
  while (high - low > NEAR) {
    const middle = low + Math.floor((high - low) / 2)
    const bytes = part.subarray(0, readSync(fd, part, 0, PART, middle))
    const from = bytes.indexOf(LINE_FEED) + 1
    const to = bytes.indexOf(LINE_FEED, from)
    const found = from === 0 || to < 0 ? Number.NaN : readSeq(bytes.toString('latin1', from, to))
    const start = middle + from
    if (Number.isNaN(found) || start >= high) return high
    if (found >= seq) high = start
    else low = start
  }
  return high
}
