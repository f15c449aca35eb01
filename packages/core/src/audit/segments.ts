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
  /** Retention may have removed records up to this number, which earlier checkpoints signed. Absent if it may have removed none. */
  readonly prunedSeq?: number
  /** The time of the checkpoint: RFC 3339, UTC, milliseconds. */
  readonly ts: string
}

/** A checkpoint that vouches for removed records. */
interface Voucher {
  readonly checkpoint: number
  readonly ts: string
}

/** Compares the records between checkpoints with the checkpoints. */
export class Segments {
  /** The number of checkpoints so far. */
  count = 0
  /** The last record that retention may have removed, according to the checkpoints so far; 0 for none. */
  prunedSeq = 0
  /** The checkpoint that signed the last removed record. */
  voucher: Voucher | undefined
  readonly #trail: ReturnType<typeof trailOf>
  readonly #report: (finding: AuditFinding) => void
  #tree: RecordTree = createRecordTree()
  #treeFrom = 0
  #hasEdited = false
  #last: SignedPoint | undefined
  #isRewritten = false

  constructor(points: readonly SignedPoint[], report: (finding: AuditFinding) => void) {
    this.#trail = trailOf(points)
    this.#report = report
  }

  get lastSeq(): number {
    return this.#last?.seq ?? 0
  }

  get lastTs(): string | undefined {
    return this.#last?.ts
  }

  /** Skips the checkpoints of removed records. The first kept record continues from `prev`. */
  startAfter(seq: number, prev: string): void {
    const trail = this.#trail
    for (let { next } = trail; next !== undefined && next.seq <= seq; { next } = trail) {
      if (next.seq === seq) {
        this.voucher ??= { checkpoint: trail.line, ts: next.ts }
        this.#compare(next, prev)
      }
      this.#pass(next)
    }
    if (trail.next !== undefined && trail.next.seq - trail.next.count < seq)
      this.voucher ??= { checkpoint: trail.line, ts: trail.next.ts }
    this.#beginAt(seq)
  }

  /** Compares the records so far with the checkpoints that end here. */
  before(lastSeq: number, head: string): void {
    const trail = this.#trail
    for (let { next } = trail; next !== undefined && next.seq <= lastSeq; { next } = trail) {
      if (next.seq === lastSeq) this.#compare(next, head)
      this.#pass(next)
    }
    this.#beginAt(lastSeq)
  }

  add({ hash }: ChainLink, isEdited: boolean): void {
    this.#tree.add(hash)
    this.#hasEdited ||= isEdited
  }

  finish(lastSeq: number, head: string): void {
    this.before(lastSeq, head)
    const trail = this.#trail
    if (trail.next === undefined) return
    const { line } = trail
    let newest = trail.next
    for (let { next } = trail; next !== undefined; { next } = trail) {
      this.#pass(next)
      newest = next
    }
    const { seq, ts } = newest
    this.#report({
      kind: 'truncated',
      seq: lastSeq + 1,
      checkpoint: line,
      text: `${areMissing(lastSeq + 1, seq)} at the end: a checkpoint of ${ts} has signed them.`,
    })
  }

  #compare(checkpoint: SignedPoint, head: string): void {
    const { seq, headHash, merkleRoot } = checkpoint
    const { line } = this.#trail
    const from = seq - checkpoint.count
    // Missing and edited records have their own findings, so comparing the root adds nothing.
    const isComplete = !this.#hasEdited && this.#treeFrom === from && this.#tree.size === checkpoint.count
    if (headHash === head && (!isComplete || this.#tree.root() === merkleRoot)) return
    if (this.#isRewritten) return
    this.#isRewritten = true
    const text = `Records ${from + 1} to ${seq} are not those that checkpoint ${line} signed at ${checkpoint.ts}: they, or records before them, were rewritten.`
    this.#report({ kind: 'rewritten', seq: from + 1, checkpoint: line, text })
  }

  #pass(checkpoint: SignedPoint): void {
    const { line } = this.#trail
    const { seq } = checkpoint
    if (seq < this.lastSeq)
      this.#report({
        kind: 'truncated',
        seq,
        checkpoint: line,
        text: `The audit was cut back from record ${this.lastSeq} to ${seq - checkpoint.count} before checkpoint ${line}.`,
      })
    this.count++
    this.#last = checkpoint
    this.prunedSeq = Math.max(this.prunedSeq, checkpoint.prunedSeq ?? 0)
    this.#trail.advance()
  }

  /** Begins a new segment if a checkpoint's records begin here. */
  #beginAt(seq: number): void {
    const { next } = this.#trail
    if (next === undefined || next.seq - next.count !== seq || this.#treeFrom === seq) return
    this.#tree = createRecordTree()
    this.#treeFrom = seq
    this.#hasEdited = false
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
