import { hash } from 'node:crypto'

/** A Merkle tree that grows leaf by leaf. Its memory grows with the logarithm of the number of leaves. */
export interface MerkleTree {
  readonly size: number
  /** Adds an entry, its bytes as hex digits. */
  add(entryHex: string): void
  /** Returns the root as 64 hex digits; with `last`, as if this entry were added too. */
  root(last?: string): string
  /** The roots of its full subtrees, the largest first, 64 hex digits each. They are enough to continue the tree. */
  readonly frontier: readonly string[]
}

/** The state from which a tree continues. */
export type TreeState = Pick<MerkleTree, 'size' | 'frontier'>

/** The root of a tree without leaves: the hash of the empty text (RFC 6962 §2.1). */
export const EMPTY_ROOT: string = hash('sha256', '', 'hex')

/**
 * Returns a tree as in RFC 6962 §2.1, empty or continued from a state.
 *
 * It holds one root for each full subtree, like the binary digits of the size.
 */
export function createMerkleTree(from: TreeState = { size: 0, frontier: [] }): MerkleTree {
  /** Roots of full subtrees, the largest first, as latin1 texts. `heights` has their heights. */
  const roots = from.frontier.map(fromHex)
  const heights = from.size
    .toString(2)
    .split('')
    .flatMap((digit, i, digits) => (digit === '1' ? [digits.length - 1 - i] : []))
  let { size } = from

  return {
    get size() {
      return size
    },
    get frontier() {
      return roots.map(toHex)
    },
    add(entryHex) {
      let root = hashLeaf(entryHex)
      let height = 0
      while (heights.at(-1) === height) {
        root = hashNode(roots.pop() ?? '', root)
        heights.pop()
        height++
      }
      roots.push(root)
      heights.push(height)
      size++
    },
    root(last) {
      const all = last === undefined ? roots : [...roots, hashLeaf(last)]
      return all.length === 0 ? EMPTY_ROOT : toHex(all.reduceRight((right, left) => hashNode(left, right)))
    },
  }
}

/** Returns the root over entries, given as hex digits. */
export function merkleRoot(entries: Iterable<string>): string {
  const tree = createMerkleTree()
  for (const entry of entries) tree.add(entry)
  return tree.root()
}

const HASH = /^[\da-f]{64}$/

/** Returns whether a value is a SHA-256 hash: 64 lower-case hex digits. */
export function isHash(value: unknown): value is string {
  return typeof value === 'string' && HASH.test(value)
}

// Two buffers for all hashes: allocating one for each would cost as much as the hash.
const leafBytes = Buffer.alloc(33, 0)
const nodeBytes = Buffer.alloc(65, 1)

/** Returns SHA-256(0x00 ‖ entry) as a latin1 text. */
export function hashLeaf(entryHex: string): string {
  if (entryHex.length !== 64) return hash('sha256', Buffer.from(`00${entryHex}`, 'hex'), 'binary')
  leafBytes.write(entryHex, 1, 32, 'hex')
  return hash('sha256', leafBytes, 'binary')
}

/** Returns SHA-256(0x01 ‖ left ‖ right) of latin1 texts as such a text. */
export function hashNode(left: string, right: string): string {
  nodeBytes.write(left + right, 1, 64, 'latin1')
  return hash('sha256', nodeBytes, 'binary')
}

export function toHex(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('hex')
}

export function fromHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1')
}

/**
 * The number of records in one leaf of a checkpoint's tree. A leaf is the concatenated hashes of its records. One leaf for
 * each record would cost as much as the chain, and a proof shows hashes of other records either way.
 */
const RECORDS_A_LEAF = 16

/** The Merkle tree of a checkpoint (RFC 6962), over the hashes of its records. */
export interface RecordTree {
  /** How many records it has. */
  readonly size: number
  /** The state from which the tree continues. */
  readonly state: RecordTreeState
  /** Adds the next record's hash, 64 hex digits. */
  add(hash: string): void
  /** Returns the root, 64 hex digits. */
  root(): string
}

/** The state of a tree of records, as JSON. */
export interface RecordTreeState {
  /** How many records it has. */
  readonly size: number
  /** The roots of the full subtrees over its full leaves, the largest first. */
  readonly frontier: readonly string[]
  /** The hashes of the last leaf, if it is not full. */
  readonly leaf: string
}

/** Returns a tree, empty or one to go on with. */
export function createRecordTree(from: RecordTreeState = { size: 0, frontier: [], leaf: '' }): RecordTree {
  const tree = createMerkleTree({ size: Math.floor(from.size / RECORDS_A_LEAF), frontier: from.frontier })
  let { leaf, size } = from
  return {
    get size() {
      return size
    },
    get state() {
      return { size, frontier: tree.frontier, leaf }
    },
    add(recordHash) {
      leaf += recordHash
      if (++size % RECORDS_A_LEAF !== 0) return
      tree.add(leaf)
      leaf = ''
    },
    root: () => tree.root(leaf === '' ? undefined : leaf),
  }
}

/** Returns the leaves over hashes. All but the last are full. */
export function toLeaves(hashes: readonly string[]): readonly string[] {
  return Array.from({ length: countLeaves(hashes.length) }, (_, i) =>
    hashes.slice(i * RECORDS_A_LEAF, (i + 1) * RECORDS_A_LEAF).join(''),
  )
}

/** Returns the number of leaves for a number of records. */
export function countLeaves(records: number): number {
  return Math.ceil(records / RECORDS_A_LEAF)
}

/** Returns the leaf of a record, and the position of its hash in it, in hex digits. */
export function placeOf(index: number): { readonly leaf: number; readonly at: number } {
  return { leaf: Math.floor(index / RECORDS_A_LEAF), at: (index % RECORDS_A_LEAF) * 64 }
}
