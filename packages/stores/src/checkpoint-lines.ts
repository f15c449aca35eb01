import { fstatSync } from 'node:fs'
import {
  createMerkleTree,
  type MerkleTree,
  type NoteVerifier,
  openNote,
  parseLeaf,
  parseTreeHead,
  type SignedPoint,
  type TreeHead,
  type TreeState,
} from '@toolgate/core/audit'
import { pointOf } from '@toolgate/core/internal'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { linesBackwards } from './lines.ts'
import { extendLog } from './shared-audit/source.ts'

/** A checkpoint in a file, where each is a line of JSON. */
export interface Checkpoint {
  /** The tree of the log before the checkpoint. No signature covers it, but only the right one leads to the root. */
  readonly before: TreeState
  readonly leaves: readonly string[]
  /** A signed `tlog-checkpoint`. */
  readonly note: string
}

/** Returns the line of a checkpoint. The size of the tree before it is not in it, because it follows from the note. */
export function formatCheckpoint({ before: { frontier }, leaves, note }: Checkpoint): string {
  return JSON.stringify({ before: frontier, leaves, note })
}

/** Parses the line of a checkpoint, unchecked. Any other line becomes a checkpoint that nobody has signed. */
export function parseCheckpoint(line: string): Checkpoint {
  try {
    const value: unknown = readOwnJson(line)
    const { before: frontier, leaves, note } = isObject(value) ? value : {}
    if (areTexts(frontier) && areTexts(leaves) && typeof note === 'string') {
      const size = (parseTreeHead(note)?.size ?? -1) - leaves.length
      const checkpoint = { before: { size, frontier }, leaves, note }
      if (formatCheckpoint(checkpoint) === line) return checkpoint
    }
  } catch {
    // It is not JSON.
  }
  return { before: { size: -1, frontier: [] }, leaves: [], note: '' }
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Yields the checkpoints of a file, unchecked, newest first. A last one that a crash left incomplete is skipped. */
function* checkpointsBackwards(fd: number): Generator<Checkpoint> {
  for (const { text } of linesBackwards(fd, fstatSync(fd).size)) yield parseCheckpoint(text)
}

/** Returns the log after a checkpoint, or `undefined` if its leaves are not the last ones of the log in its note. */
export function treeAfter({ before, leaves, note }: Checkpoint): MerkleTree | undefined {
  if (before.size < 0) return undefined
  const tree = extendLog(before, leaves)
  return tree.root() === parseTreeHead(note)?.root ? tree : undefined
}

/** Returns what a checkpoint says about the records. */
export function pointIn({ leaves }: Checkpoint): SignedPoint | undefined {
  let point: SignedPoint | undefined
  for (const text of leaves) {
    const leaf = parseLeaf(text)
    if (leaf === undefined || leaf.type === 'signed') continue
    if (leaf.type !== 'pruned') point = pointOf(leaf)
    else if (point !== undefined) point = { ...point, prunedSeq: leaf.seq }
  }
  return point
}

/** The newest checkpoint of a file that a known key has signed. */
export interface NewestCheckpoint {
  readonly origin: string
  readonly tree: MerkleTree
  readonly point: SignedPoint | undefined
}

/**
 * Returns the newest checkpoint that one of the keys has signed, among the last `tries`. Forged ones after it are
 * skipped.
 */
export function findNewest(
  fd: number,
  keys: readonly NoteVerifier[],
  tries: number = Infinity,
): NewestCheckpoint | undefined {
  for (const checkpoint of checkpointsBackwards(fd).take(tries)) {
    const head = openNote(checkpoint.note, keys)
    const tree = head && treeAfter(checkpoint)
    if (head !== undefined && tree !== undefined) return { origin: head.origin, tree, point: pointIn(checkpoint) }
  }
  return undefined
}

/**
 * Yields what the checkpoints of a file say about the records, newest first. One signature is enough: the note proves
 * the leaves and the tree before, and that tree is the one in the note before.
 *
 * @returns whether the log is whole up to its beginning
 */
export function* pointsBackwards(fd: number, keys: readonly NoteVerifier[]): Generator<SignedPoint, boolean> {
  let expected: Pick<TreeHead, 'size' | 'root'> | undefined
  for (const checkpoint of checkpointsBackwards(fd)) {
    const { note, before } = checkpoint
    const head = expected === undefined ? openNote(note, keys) : parseTreeHead(note)
    const isNext = head !== undefined && (expected === undefined || isSame(head, expected))
    if (!isNext || treeAfter(checkpoint) === undefined) return false
    expected = { size: before.size, root: createMerkleTree(before).root() }
    const point = pointIn(checkpoint)
    if (point !== undefined) yield point
  }
  return expected === undefined || expected.size === 0
}

function isSame(a: Pick<TreeHead, 'size' | 'root'>, b: Pick<TreeHead, 'size' | 'root'>): boolean {
  return a.size === b.size && a.root === b.root
}
