import {
  createMerkleTree,
  EMPTY_ROOT,
  fromHex,
  hashLeaf,
  hashNode,
  isHash,
  merkleRoot,
  toHex,
  type TreeState,
} from './merkle.ts'

/** The roots that prove something about a tree, 64 hex digits each: of RFC 6962 §2.1.1 or §2.1.2, in its order. */
export type MerklePath = readonly string[]

/** The leaves from one index up to, but not including, another one. */
export interface TreePart {
  readonly from: number
  readonly to: number
}

/**
 * Returns the parts of a tree whose roots are the proof that a leaf is in it (RFC 6962 §2.1.1).
 *
 * @throws {RangeError} for a leaf that is not in it
 */
export function inclusionParts(size: number, index: number): readonly TreePart[] {
  if (!isIndex(index) || !isIndex(size) || index >= size)
    throw new RangeError(`there is no leaf ${index} in a tree of ${size}`)
  return siblings(size, index + 1, ({ from, to }) => to - from === 1).parts
}

/**
 * Returns the parts of a tree whose roots are the proof that its first leaves are those of an earlier tree (RFC 6962 §2.1.2).
 *
 * @throws {RangeError} for a size that no earlier tree can have
 */
export function consistencyParts(size: number, oldSize: number): readonly TreePart[] {
  if (!isIndex(oldSize) || !isIndex(size) || oldSize > size)
    throw new RangeError(`a tree of ${size} leaves was never one of ${oldSize}`)
  if (oldSize === 0) return []
  const { parts, last } = siblings(size, oldSize, ({ to }) => to === oldSize)
  // The verifier knows the root of the whole earlier tree.
  return last.from === 0 ? parts : [last, ...parts]
}

/** Returns the parts beside the way from the root to the leaf before `end`, the lowest first, and the part at which the way ends. */
function siblings(
  size: number,
  end: number,
  isLast: (part: TreePart) => boolean,
): { readonly parts: readonly TreePart[]; readonly last: TreePart } {
  const parts: TreePart[] = []
  let last: TreePart = { from: 0, to: size }
  while (!isLast(last)) {
    const split = last.from + largestPowerBelow(last.to - last.from)
    const [left, right] = [
      { from: last.from, to: split },
      { from: split, to: last.to },
    ]
    parts.unshift(end <= split ? right : left)
    last = end <= split ? left : right
  }
  return { parts, last }
}

/** Computes the roots of parts of a tree in one pass over its leaves, in memory that grows with the logarithm of their number. */
export interface PartRoots {
  /** Adds the next leaf of the tree, its bytes as hex digits. */
  add(entryHex: string): void
  roots(): MerklePath
}

/**
 * Returns the roots of parts whose leaves are added from the first one, or from those that follow an earlier tree.
 *
 * @throws {RangeError} for a part that begins within a full subtree of the earlier tree: its leaves are needed
 */
export function createPartRoots(parts: readonly TreePart[], from: TreeState = { size: 0, frontier: [] }): PartRoots {
  const grown = parts.map((part) => ({ ...part, tree: createMerkleTree(within(from, part)) }))
  const inOrder = grown.toSorted((a, b) => a.from - b.from)
  let at = from.size
  let next = 0
  return {
    add(entryHex) {
      while ((inOrder[next]?.to ?? Infinity) <= at) next++
      const part = inOrder[next]
      if (part !== undefined && part.from <= at) part.tree.add(entryHex)
      at++
    },
    roots: () => grown.map(({ tree }) => tree.root()),
  }
}

/** Returns the state of the earlier tree within a part. */
function within({ size, frontier }: TreeState, part: TreePart): TreeState {
  const end = Math.min(part.to, size)
  const kept: string[] = []
  let at = part.from
  let first = 0
  for (const root of frontier) {
    const width = largestPowerBelow(size - first + 1)
    if (first === at && first + width <= end) {
      kept.push(root)
      at = first + width
    }
    first += width
  }
  if (at < end) throw new RangeError(`the leaves ${part.from} to ${end - 1} are needed, and are not there`)
  return { size: at - part.from, frontier: kept }
}

/** Returns the proof that the entry at `index` is in the tree. @throws {RangeError} for an index that is not in it */
export function inclusionPath(entries: readonly string[], index: number): MerklePath {
  return rootsOf(entries, inclusionParts(entries.length, index))
}

function rootsOf(entries: readonly string[], parts: readonly TreePart[]): MerklePath {
  return parts.map(({ from, to }) => merkleRoot(entries.slice(from, to)))
}

interface Inclusion {
  readonly entry: string
  readonly index: number
  readonly size: number
  readonly path: MerklePath
  readonly root: string
}

/** Returns whether a proof is valid (RFC 9162 §2.1.3.2, the step-by-step form of RFC 6962's proof). */
export function verifyInclusion({ entry, index, size, path, root }: Inclusion): boolean {
  if (!isIndex(index) || !isIndex(size) || index >= size) return false
  if (![root, ...path].every(isHash)) return false
  const way = createWay(index, size - 1)
  let node = hashLeaf(entry)
  for (const step of path) {
    if (way.isAtRoot) return false
    const sibling = fromHex(step)
    node = way.rise() === 'right' ? hashNode(sibling, node) : hashNode(node, sibling)
  }
  return way.isAtRoot && toHex(node) === root
}

interface Consistency {
  readonly oldSize: number
  readonly oldRoot: string
  readonly size: number
  readonly root: string
  readonly path: MerklePath
}

/** Returns whether a proof is valid (RFC 9162 §2.1.4.2). Every tree extends the empty tree, which needs no proof. */
export function verifyConsistency({ oldSize, oldRoot, size, root, path }: Consistency): boolean {
  if (!isIndex(oldSize) || !isIndex(size) || oldSize > size || ![oldRoot, root, ...path].every(isHash)) return false
  if (oldSize === size) return path.length === 0 && oldRoot === root
  if (oldSize === 0) return path.length === 0 && oldRoot === EMPTY_ROOT
  const way = createWay(oldSize - 1, size - 1)
  way.skipRights()
  const steps = path.map(fromHex)
  const first = way.isAtLeft ? fromHex(oldRoot) : steps.shift()
  if (first === undefined) return false
  let [older, newer] = [first, first]
  for (const sibling of steps) {
    if (way.isAtRoot) return false
    if (way.rise() === 'right') {
      older = hashNode(sibling, older)
      newer = hashNode(sibling, newer)
    } else {
      newer = hashNode(newer, sibling)
    }
  }
  return way.isAtRoot && toHex(older) === oldRoot && toHex(newer) === root
}

/** The way from a leaf to the root of a tree whose last leaf is `last`. */
function createWay(leaf: number, last: number) {
  const node = { at: leaf, last }
  const up = (): void => {
    node.at = Math.floor(node.at / 2)
    node.last = Math.floor(node.last / 2)
  }
  return {
    get isAtRoot() {
      return node.last === 0
    },
    /** Whether it is at the left edge of the tree. */
    get isAtLeft() {
      return node.at === 0
    },
    skipRights(): void {
      while (node.at % 2 === 1) up()
    },
    /** Goes up to where a sibling is joined. Returns the side on which it was. */
    rise(): 'left' | 'right' {
      const isRight = node.at % 2 === 1 || node.at === node.last
      // A last node without a sibling is also that of the level above.
      if (isRight) while (node.at % 2 === 0 && node.at !== 0) up()
      up()
      return isRight ? 'right' : 'left'
    },
  }
}

function isIndex(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** Returns the largest power of two below a count, which is at least 2. */
function largestPowerBelow(count: number): number {
  let power = 1
  while (power * 2 < count) power *= 2
  return power
}
