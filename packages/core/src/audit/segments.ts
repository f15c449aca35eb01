import type { ChainLink } from './chain.ts'
import { createRecordTree, type RecordTree } from './merkle.ts'
import type { AuditFinding } from './verdict.ts'

/** The statement of a checked checkpoint about a chain: the end of its records, and the tree over the last of them. */
export interface SignedPoint {
  /** The number of the last record. */
  readonly seq: number
  /** The number of records in the tree: those up to `seq`. */
  readonly count: number
  /** The `hash` of the last record. */
  readonly headHash: string
  readonly merkleRoot: string
  /** Retention may have removed records up to this number, which earlier checkpoints signed. Absent if there are none. */
  readonly prunedSeq?: number
  /** The time of the checkpoint: RFC 3339, UTC, milliseconds. */
  readonly ts: string
}

/** Compares the records between checkpoints with the checkpoints. */
interface Segments {
  readonly count: number
  readonly lastSeq: number
  readonly lastTs: string | undefined
  /** The last record that retention may have removed, according to the checkpoints so far; 0 for none. */
  readonly prunedSeq: number
  /** The checkpoint that signed the last removed record. */
  readonly voucher: Voucher | undefined
  /** Skips the checkpoints of removed records. The first kept record continues from `prev`. */
  startAfter(seq: number, prev: string): void
  /** Compares the records so far with the checkpoints that end here. */
  before(lastSeq: number, head: string): void
  add(link: ChainLink, isEdited: boolean): void
  finish(lastSeq: number, head: string): void
}

/** A checkpoint that vouches for removed records. */
interface Voucher {
  readonly checkpoint: number
  readonly ts: string
}

export function createSegments(points: readonly SignedPoint[], report: (finding: AuditFinding) => void): Segments {
  const trail = trailOf(points)
  let tree: RecordTree = createRecordTree()
  let treeFrom = 0
  let hasEdited = false
  let count = 0
  let last: SignedPoint | undefined
  let rewrittenFrom: number | undefined
  let prunedSeq = 0
  let voucher: Voucher | undefined

  function compare(checkpoint: SignedPoint, head: string): void {
    const { seq, headHash, merkleRoot } = checkpoint
    const from = seq - checkpoint.count
    // Missing and edited records have their own findings, so comparing the root adds nothing.
    const isComplete = !hasEdited && treeFrom === from && tree.size === checkpoint.count
    if (headHash === head && (!isComplete || tree.root() === merkleRoot)) return
    if (rewrittenFrom !== undefined) return
    rewrittenFrom = from + 1
    const text = `Records ${from + 1} to ${seq} are not those that checkpoint ${trail.line} signed at ${checkpoint.ts}: they, or records before them, were rewritten.`
    report({ kind: 'rewritten', seq: from + 1, checkpoint: trail.line, text })
  }

  function pass(checkpoint: SignedPoint): void {
    if (last !== undefined && checkpoint.seq < last.seq)
      report({
        kind: 'truncated',
        seq: checkpoint.seq,
        checkpoint: trail.line,
        text: `The audit was cut back from record ${last.seq} to ${checkpoint.seq - checkpoint.count} before checkpoint ${trail.line}.`,
      })
    count++
    last = checkpoint
    prunedSeq = Math.max(prunedSeq, checkpoint.prunedSeq ?? 0)
    trail.advance()
  }

  /** Begins a new segment if a checkpoint's records begin here. */
  function beginAt(seq: number): void {
    const { next } = trail
    if (next === undefined || next.seq - next.count !== seq || treeFrom === seq) return
    tree = createRecordTree()
    treeFrom = seq
    hasEdited = false
  }

  return {
    get count() {
      return count
    },
    get lastSeq() {
      return last?.seq ?? 0
    },
    get lastTs() {
      return last?.ts
    },
    get prunedSeq() {
      return prunedSeq
    },
    get voucher() {
      return voucher
    },
    startAfter(seq, prev) {
      for (let { next } = trail; next !== undefined && next.seq <= seq; { next } = trail) {
        if (next.seq === seq) {
          voucher ??= { checkpoint: trail.line, ts: next.ts }
          compare(next, prev)
        }
        pass(next)
      }
      if (trail.next !== undefined && trail.next.seq - trail.next.count < seq)
        voucher ??= { checkpoint: trail.line, ts: trail.next.ts }
      beginAt(seq)
    },
    before(lastSeq, head) {
      for (let { next } = trail; next !== undefined && next.seq <= lastSeq; { next } = trail) {
        if (next.seq === lastSeq) compare(next, head)
        pass(next)
      }
      beginAt(lastSeq)
    },
    add({ hash }, isEdited) {
      tree.add(hash)
      hasEdited ||= isEdited
    },
    finish(lastSeq, head) {
      this.before(lastSeq, head)
      if (trail.next === undefined) return
      const { line } = trail
      let newest = trail.next
      for (let { next } = trail; next !== undefined; { next } = trail) {
        pass(next)
        newest = next
      }
      const { seq, ts } = newest
      report({
        kind: 'truncated',
        seq: lastSeq + 1,
        checkpoint: line,
        text: `${areMissing(lastSeq + 1, seq)} at the end: a checkpoint of ${ts} has signed them.`,
      })
    },
  }
}

/** Returns `Records 3 to 5 are missing`. */
export function areMissing(from: number, to: number): string {
  return from === to ? `Record ${from} is missing` : `Records ${from} to ${to} are missing`
}

/** Iterates over the checkpoints. */
function trailOf(points: readonly SignedPoint[]) {
  let at = 0
  return {
    /** The next checkpoint; `undefined` after the last. */
    get next(): SignedPoint | undefined {
      return points[at]
    },
    /** Its number, counted from 1. */
    get line(): number {
      return at + 1
    },
    advance(): void {
      at++
    },
  }
}
