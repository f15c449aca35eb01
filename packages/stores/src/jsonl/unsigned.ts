import { type ChainEnd, createRecordTree, readLink, type RecordTree } from '@toolgate/core/audit'
import type { CheckpointFile, Segment } from '../checkpoint-file.ts'
import type { LogView } from './log-files.ts'

/** The records that are not signed yet. */
export interface Unsigned {
  add(hashes: readonly string[], epoch: number | undefined): void
  /** Ends a group of records here, which are signed together. Returns `false` before the first checkpoint: it cannot yet. */
  cut(end: ChainEnd): boolean
  /** Signs the records so far. Records that arrive meanwhile belong to the next checkpoint. */
  sign(file: CheckpointFile, sync: () => Promise<void>, end: SignedEnd): Promise<void>
}

interface SignedEnd extends ChainEnd {
  readonly prunedSeq: number | undefined
}

/** `start` is the end of the records in the file at the opening, and `records` are they. */
export function createUnsigned(start: ChainEnd, records: LogView): Unsigned {
  let tree: RecordTree | undefined
  /** Groups of hashes before the first checkpoint, which determines where the tree begins. */
  let added: (readonly string[])[] = []
  let epoch = start.seq + 1
  /** Segments whose checkpoint could not be written. They are signed first at the next try. */
  let waiting: Segment[] = []

  /** Returns a tree of the records that were in the file at the opening and are not signed. */
  function firstTree(file: CheckpointFile): RecordTree {
    const last = file.last()
    const grown = createRecordTree()
    const hashes = last === undefined ? hashesIn(records) : hashesAfter(records, last.seq)
    for (const hash of hashes) grown.add(hash)
    for (const group of added) for (const hash of group) grown.add(hash)
    added = []
    return grown
  }

  function close(grown: RecordTree, { seq, head }: ChainEnd): void {
    waiting.push({ count: grown.size, epoch, headHash: head, merkleRoot: grown.root(), seq })
    tree = createRecordTree()
  }

  return {
    add(hashes, opened) {
      epoch = opened ?? epoch
      if (tree === undefined) added.push(hashes)
      else for (const hash of hashes) tree.add(hash)
    },
    cut(end) {
      if (tree === undefined) return false
      if (tree.size > 0) close(tree, end)
      return true
    },
    async sign(file, sync, { prunedSeq, ...end }) {
      close((tree ??= firstTree(file)), end)
      const signing = waiting
      waiting = []
      try {
        await sync()
        for (let [segment] = signing; segment !== undefined; [segment] = signing) {
          file.append(segment, prunedSeq)
          signing.shift()
        }
      } finally {
        waiting = [...signing, ...waiting]
      }
    },
  }
}

/** Returns the hashes of all records of the chain. */
function* hashesIn(records: LogView): Generator<string> {
  for (const lines of records.forwards()) {
    for (const line of lines) {
      const link = readLink(line)
      if (link !== undefined) yield link.hash
    }
  }
}

/** Returns the hashes of the records after a number, in their order. */
function hashesAfter(records: LogView, seq: number): readonly string[] {
  const hashes: string[] = []
  for (const { text } of records.backwards()) {
    const link = readLink(text)
    if (link === undefined || link.seq <= seq) break
    hashes.push(link.hash)
  }
  return hashes.toReversed()
}
