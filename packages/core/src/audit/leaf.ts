import { canonicalize, isObject, readOwnJson } from '@toolgate/values/json'
import { isHash } from './merkle.ts'

/**
 * The kind of a leaf in the log of several replicas. It states a chain's position when the replica joined, at a checkpoint,
 * when it left, or when it was found lost. `pruned`: records up to here may be removed. `signed`: a checkpoint was made.
 */
export const LEAF_TYPES = ['joined', 'live', 'left', 'lost', 'pruned', 'signed'] as const

export type Leaf =
  | {
      readonly type: Exclude<(typeof LEAF_TYPES)[number], 'signed'>
      readonly replica: string
      readonly incarnation: string
      /** The number of the newest record. */
      readonly seq: number
      readonly head: string
      /** The RFC 6962 root over the hashes of all records of the chain, 16 per entry. */
      readonly root: string
      /** RFC 3339, UTC, milliseconds. */
      readonly ts: string
    }
  | { readonly type: 'signed'; readonly by: string; readonly ts: string }

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

function isLeaf(value: unknown): value is Leaf {
  if (!isObject(value)) return false
  const { type, by, replica, incarnation, seq, head, root, ts } = value
  if (typeof ts !== 'string' || !LEAF_TYPES.some((one) => one === type)) return false
  if (type === 'signed') return typeof by === 'string'
  return (
    typeof replica === 'string' &&
    typeof incarnation === 'string' &&
    typeof seq === 'number' &&
    Number.isSafeInteger(seq) &&
    seq >= 0 &&
    isHash(head) &&
    isHash(root)
  )
}
