import { readSync } from 'node:fs'
import { readSeq } from '@toolgate/core/audit'

/** Less is read through. */
const NEAR = 128 * 1024
/** Where a line is longer, the search ends. */
const PART = 64 * 1024
const LINE_FEED = 0x0a

/**
 * Returns a place in a file of records, near the first record from a number on and not before it. Records are in order, so a few reads
 * find it, where reading the file from its end would read all that is newer.
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
