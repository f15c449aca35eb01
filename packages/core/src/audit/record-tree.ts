import { createMerkleTree } from './merkle.ts'

/**
 * How many records make one leaf of a checkpoint's tree. A leaf is the hashes of its records one after the other: a tree with
 * a leaf for each would cost as much as the chain, and what a proof shows of the others is their hashes either way.
 */
const RECORDS_A_LEAF = 16

/** The Merkle tree of a checkpoint (RFC 6962), over the hashes of its records. */
export interface RecordTree {
  /** How many records it has. */
  readonly size: number
  /** Adds the next record's hash, 64 hex digits. */
  add(hash: string): void
  /** Gives the root of what was added, 64 hex digits. */
  root(): string
}

export function createRecordTree(): RecordTree {
  const tree = createMerkleTree()
  let leaf = ''
  let size = 0
  return {
    get size() {
      return size
    },
    add(hash) {
      leaf += hash
      if (++size % RECORDS_A_LEAF !== 0) return
      tree.add(leaf)
      leaf = ''
    },
    root: () => tree.root(leaf === '' ? undefined : leaf),
  }
}

/** Gives the leaves over hashes: all are full but the last. */
export function toLeaves(hashes: readonly string[]): readonly string[] {
  return Array.from({ length: countLeaves(hashes.length) }, (_, i) =>
    hashes.slice(i * RECORDS_A_LEAF, (i + 1) * RECORDS_A_LEAF).join(''),
  )
}

/** Gives how many leaves so many records have. */
export function countLeaves(records: number): number {
  return Math.ceil(records / RECORDS_A_LEAF)
}

/** Gives the leaf that a record is in, and where in it its hash begins, in hex digits. */
export function placeOf(index: number): { readonly leaf: number; readonly at: number } {
  return { leaf: Math.floor(index / RECORDS_A_LEAF), at: (index % RECORDS_A_LEAF) * 64 }
}
