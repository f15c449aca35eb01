import { parseStateText, type StateEntry } from '@toolgate/core/stores'
import { bytesIn, type Row, textIn } from './rows.ts'

/** Greater than every byte of UTF-8. */
const AFTER_ALL = Buffer.from([0xff])

/** Returns a range of keys: the first key with a prefix, and a key after all keys with this prefix. */
export function keysWith(prefix: string): readonly [Buffer, Buffer] {
  const from = Buffer.from(prefix)
  return [from, Buffer.concat([from, AFTER_ALL])]
}

export function toEntry(row: Row): StateEntry {
  return { key: Buffer.from(bytesIn(row, 'key')).toString(), value: parseStateText(textIn(row, 'value')) }
}

/** Runs work that may fail without harm. */
export async function tried(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch {
    // Other users of the database report its fault.
  }
}
