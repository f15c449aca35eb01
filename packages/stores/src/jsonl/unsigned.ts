import { setImmediate as endOfTurn } from 'node:timers/promises'
import { type ChainEnd, createRecordTree, readLink, type RecordTree, type SignedPoint } from '@toolgate/core/audit'
import type { CheckpointFile, Segment } from '../checkpoint-file.ts'
import type { LogView } from './log-files.ts'

/** The records that are not signed yet. */
export interface Unsigned {
  add(hashes: readonly string[]): void
  /**
   * Ends a group of records here. A group is signed as a whole. Returns `false` before the first checkpoint, when no
   * group can end.
   */
  cut(end: ChainEnd): boolean
  /** Signs the records so far. The next checkpoint signs records that arrive meanwhile. */
  sign(file: CheckpointFile, sync: () => Promise<void>, end: SignedEnd): Promise<void>
}

interface SignedEnd extends ChainEnd {
  readonly pruned: SignedPoint | undefined
}

/** Returns the tracker of unsigned records. `records` are the records in the file at the opening. */
export function createUnsigned(records: LogView): Unsigned {
  let tree: RecordTree | undefined
  /** Groups of hashes that wait for the first checkpoint, which determines where the tree starts. */
  let added: (readonly string[])[] = []
  /** Segments whose checkpoint failed. The next try signs them first. */
  let waiting: Segment[] = []

  /** Returns a tree of the unsigned records so far. Calls may run while the file is read. */
  async function firstTree(file: CheckpointFile): Promise<RecordTree> {
    const last = file.last()
    const before = added
    added = []
    try {
      const grown = createRecordTree()
      const hashes = last === undefined ? hashesIn(records) : hashesAfter(records, last.seq)
      for await (const group of hashes) {
        for (const hash of group) grown.add(hash)
        await endOfTurn()
      }
      for (const group of before) for (const hash of group) grown.add(hash)
      return grown
    } catch (error) {
      added = [...before, ...added]
      throw error
    }
  }

  function close(grown: RecordTree, { seq, head }: ChainEnd): void {
    waiting.push({ count: grown.size, headHash: head, merkleRoot: grown.root(), seq })
    tree = createRecordTree()
  }

  return {
    add(hashes) {
      if (tree === undefined) added.push(hashes)
      else for (const hash of hashes) tree.add(hash)
    },
    cut(end) {
      if (tree === undefined) return false
      if (tree.size > 0) close(tree, end)
      return true
    },
    async sign(file, sync, { pruned, ...end }) {
      close(tree ?? (await firstTree(file)), end)
      for (const group of added) for (const hash of group) tree?.add(hash)
      added = []
      const signing = waiting
      waiting = []
      try {
        await sync()
        for (let [segment] = signing; segment !== undefined; [segment] = signing) {
          file.append(segment, pruned)
          signing.shift()
        }
      } finally {
        waiting = [...signing, ...waiting]
      }
    },
  }
}

/** The maximum number of hashes of a long backlog that one turn adds: about two milliseconds. */
const PART_HASHES = 1000
const PART_CHARACTERS = 500_000

/** Returns the hashes of all records of the chain, in the parts in which the file is read. */
function* hashesIn(records: LogView): Generator<readonly string[]> {
  for (const lines of records.forwards()) yield lines.flatMap((line) => readLink(line)?.hash ?? [])
}

/** Returns the hashes of the records after a number, in order. */
async function* hashesAfter(records: LogView, seq: number): AsyncGenerator<readonly string[]> {
  const hashes: string[] = []
  let characters = 0
  for (const { text } of records.backwards()) {
    const link = readLink(text)
    if (link === undefined || link.seq <= seq) break
    hashes.push(link.hash)
    characters += text.length
    if (characters > PART_CHARACTERS) {
      characters = 0
      await endOfTurn()
    }
  }
  hashes.reverse()
  for (let at = 0; at < hashes.length; at += PART_HASHES) yield hashes.slice(at, at + PART_HASHES)
}
