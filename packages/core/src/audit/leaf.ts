import { canonicalize, isObject, readOwnJson } from '@toolgate/values/json'
import { isHash } from './merkle.ts'
import type { SignedPoint } from './segments.ts'

/**
 * The kind of a leaf in the log of an audit. It states a chain's position when the replica joined, at a checkpoint, when
 * it left, or when it was found lost. `pruned`: records up to here may be removed. `signed`: a checkpoint was made.
 */
export const LEAF_TYPES = ['joined', 'live', 'left', 'lost', 'pruned', 'signed'] as const

/** A leaf about a chain. */
export interface ChainLeaf {
  readonly type: Exclude<(typeof LEAF_TYPES)[number], 'signed'>
  /** The replica, and its start, that writes the chain. Both are absent in an audit without replicas. */
  readonly replica?: string
  readonly incarnation?: string
  /** The number of the newest record. */
  readonly seq: number
  readonly head: string
  /** How many records `root` covers: the last ones up to `seq`. Absent if it covers all. */
  readonly count?: number
  /** The RFC 6962 root over the hashes of these records, 16 per entry. */
  readonly root: string
  /** RFC 3339, UTC, milliseconds. */
  readonly ts: string
}

export type Leaf = ChainLeaf | { readonly type: 'signed'; readonly by: string; readonly ts: string }

/** Returns the text of a leaf, which is its entry in the tree: RFC 8785 JSON. */
export function createLeaf(leaf: Leaf): string {
  return canonicalize(leaf)
}

/** Returns the leaf in a text; `undefined` for any other text. */
export function parseLeaf(text: string): Leaf | undefined {
  try {
    const value: unknown = readOwnJson(text)
    return isLeaf(value) && canonicalize(value) === text ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the statement of a leaf about the records of its chain. */
export function pointOf({ seq, count = seq, head: headHash, root: merkleRoot, ts }: ChainLeaf): SignedPoint {
  return { seq, count, headHash, merkleRoot, ts }
}

function isLeaf(value: unknown): value is Leaf {
  if (!isObject(value)) return false
  const { type, by, replica, incarnation, seq, count = seq, head, root, ts } = value
  if (typeof ts !== 'string' || !LEAF_TYPES.some((one) => one === type)) return false
  if (type === 'signed') return typeof by === 'string'
  const isNamed = typeof replica === 'string' && typeof incarnation === 'string'
  const hasNames = isNamed || (replica === undefined && incarnation === undefined)
  return hasNames && isCount(seq) && isCount(count) && count <= seq && isHash(head) && isHash(root)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
