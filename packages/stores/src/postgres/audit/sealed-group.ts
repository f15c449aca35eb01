import { type ChainEnd, readLink, type RecordTree } from '@toolgate/core/audit'
import { hashRecord } from '@toolgate/core/internal'
import { readTime } from '../../jsonl/read.ts'
import type { KeptBox, SealedGroup } from './chain-store.ts'

/**
 * Returns sealed records as a group that continues a chain, and adds them to the chain's tree.
 * @throws if they do not continue it
 */
export function toGroup(texts: readonly string[], after: ChainEnd, tree: RecordTree): SealedGroup {
  let { seq, head } = after
  const records = texts.map((text) => {
    const link = readLink(text)
    if (link?.seq !== seq + 1 || link.prev !== head || hashRecord(link.prev, link.hashed) !== link.hash)
      throw new Error(`record ${seq + 1} does not continue the chain, or was changed`)
    tree.add(link.hash)
    ;({ seq, hash: head } = link)
    return { atMs: readTime(text), event: eventOf(text), text }
  })
  return { after, end: { seq, head }, root: tree.root(), records }
}

/** Returns a group with its sealed inputs on the disk, by record number. */
export function withBoxes(group: SealedGroup, boxAt: (seq: number) => string | undefined): SealedGroup {
  const boxes = group.records.flatMap(({ atMs, text }, i): KeptBox[] => {
    const seq = group.after.seq + i + 1
    // A quoted field name occurs nowhere else in JSON.
    const box = text.includes(',"input_box":"') ? boxAt(seq) : undefined
    return box === undefined ? [] : [{ seq, atMs, box }]
  })
  return { ...group, boxes }
}

const EVENT_FIELD = ',"event":"'

/**
 * Returns the event of a record from its text. A quoted field name occurs nowhere else in JSON, and event names need no
 * escapes.
 */
function eventOf(text: string): string {
  const start = text.indexOf(EVENT_FIELD) + EVENT_FIELD.length
  return text.slice(start, text.indexOf('"', start))
}
