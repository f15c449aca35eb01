import type { AuditRecord } from '../ports.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { GENESIS, hashRecord, type Link, readLink } from './chain.ts'
import { readTrail } from './checkpoint-trail.ts'
import type { Checkpoint, VerifyingKey } from './checkpoint.ts'
import { createRecordTree, isHash, type RecordTree } from './merkle.ts'
import { isCanonicalRecord } from './record.ts'
import { AUDIT_FINDINGS, type AuditFinding, type AuditVerdict, type AuditVerdictStatus, worse } from './verdict.ts'

export interface VerifyOptions {
  /** Lines of checkpoints, oldest first. */
  readonly checkpoints?: Iterable<string> | undefined
  /** Whose signatures are trusted. */
  readonly keys?: readonly VerifyingKey[] | undefined
  /**
   * What to say when there are records and no checkpoint: the audit is `unsigned`. Default: nothing, unless its records say
   * that it has checkpoints.
   */
  readonly missing?: string | undefined
  /** How many findings are kept; all are counted. Default 100. */
  readonly maxFindings?: number | undefined
}

const OPTIONS = shapeOf<VerifyOptions>({ checkpoints: true, keys: true, missing: true, maxFindings: true })
const END = shapeOf<{ readonly torn?: boolean }>({ torn: true })

/** Takes the records of an audit, in the order in which they are stored. */
export interface AuditVerifier {
  /** Takes the next one as the text that is stored. */
  add(text: string): void
  /** Tells of one that the store itself finds wrong, beside what `add` finds. */
  report(text: string): void
  /** Gives the verdict. `torn`: the last line has no end. */
  finish(end?: { readonly torn?: boolean }): AuditVerdict
}

/**
 * Verifies an audit against its chain and its checkpoints, in one pass and in memory that does not grow with it.
 *
 * Finds an edit, an insertion, a deletion, a reordering, a tail that was cut off, a rewriting of everything, and the loss of
 * checkpoints, and says where.
 * Works on the stored texts and parses none that is as it should be.
 */
export function createVerifier(options: VerifyOptions = {}): AuditVerifier {
  checkShape('createVerifier', options, OPTIONS)
  const { checkpoints = [], keys = [], missing, maxFindings = 100 } = options
  const findings: AuditFinding[] = []
  let findingCount = 0
  let status: AuditVerdictStatus = 'ok'
  const tell = (finding: AuditFinding): void => {
    findingCount++
    status = worse(status, AUDIT_FINDINGS[finding.kind])
    if (findings.length < maxFindings) findings.push(finding)
  }
  const trail = readTrail(checkpoints, new Map(keys.map((key) => [key.keyId, key])), tell)
  const sequence = createSequence(tell)
  const segments = createSegments(trail, tell)
  const claims = createClaims(tell)
  let line = 0

  return {
    add(text) {
      line++
      segments.before(sequence.lastSeq, sequence.head)
      claims.add(text, segments.lastSeq)
      const link = readLink(text)
      if (link === undefined) {
        sequence.addUnchained(text, line)
        return
      }
      const problem = problemOf(text, link)
      if (problem !== undefined || !Number.isSafeInteger(link.seq))
        tell({ kind: 'edited', ...seqOf(link), line, text: problem ?? `Line ${line} has no number.` })
      if (!Number.isSafeInteger(link.seq)) return
      if (sequence.addChained(link, line, problem !== undefined)) segments.add(link, problem !== undefined)
    },
    report(text) {
      tell({ kind: 'edited', seq: sequence.lastSeq, line, text })
    },
    finish(end = {}) {
      checkShape('finish', end, END)
      const { torn = false } = end
      segments.finish(sequence.lastSeq, sequence.head)
      sequence.finish()
      claims.finish({ hasCheckpoints: segments.count > 0, missing: line > 0 ? missing : undefined })
      if (torn) tell({ kind: 'torn', line: line + 1, text: 'The last line has no end: a crash left half a record.' })
      const { firstSeq, lastSeq, head, unchainedBefore } = sequence
      const { count, lastSeq: checkedSeq, lastTs } = segments
      return {
        status,
        records: line,
        firstSeq,
        lastSeq,
        head,
        unchainedBefore,
        checkpoints: { count, lastSeq: checkedSeq, lastTs },
        findings,
        findingCount,
      }
    },
  }
}

type Tell = (finding: AuditFinding) => void

function seqOf({ seq }: Link): { seq?: number } {
  return Number.isSafeInteger(seq) ? { seq } : {}
}

function problemOf(text: string, link: Link): string | undefined {
  const { seq, hash, prev, hashed } = link
  if (hashRecord(prev, hashed) !== hash) return `Record ${seq} was edited: its content does not have its hash.`
  // Checked last, as what has its hash was written by us, or by somebody who can hash.
  return isHash(prev) && isCanonicalRecord(text)
    ? undefined
    : `Record ${seq} was edited: it is not in canonical form (RFC 8785).`
}

/** Follows numbers and hashes from record to record. */
function createSequence(tell: Tell): {
  readonly firstSeq: number
  readonly lastSeq: number
  readonly head: string
  readonly unchainedBefore: number | undefined
  addUnchained(text: string, line: number): void
  /** Gives whether the record is in its place. */
  addChained(link: Link, line: number, isEdited: boolean): boolean
  finish(): void
} {
  let firstSeq = 0
  let lastSeq = 0
  let head = GENESIS
  let unchained = 0
  let chained = 0
  /** The last record does not say what the next one's `prev` must be. */
  let isHeadUnknown = false
  /** Numbers that were jumped over; one that comes later was moved, not deleted. */
  let missing: { from: number; to: number; readonly line: number }[] = []

  function jumpTo(seq: number, line: number): void {
    if (seq > lastSeq + 1) {
      missing.push({ from: lastSeq + 1, to: seq - 1, line })
      isHeadUnknown = true
    }
    if (firstSeq === 0) firstSeq = seq
    lastSeq = seq
  }

  /** Gives whether the number was missing, which it is no more. */
  function found(seq: number): boolean {
    const gap = missing.find(({ from, to }) => from <= seq && seq <= to)
    if (!gap) return false
    missing = missing.flatMap((one) =>
      one === gap
        ? [
            { ...one, to: seq - 1 },
            { ...one, from: seq + 1 },
          ].filter(({ from, to }) => from <= to)
        : [one],
    )
    return true
  }

  function tellBackwards(seq: number, line: number): void {
    const kind = found(seq) ? 'reordered' : 'inserted'
    const text =
      kind === 'reordered' ? `comes after record ${lastSeq}` : `is there twice, or its number was given to another`
    tell({ kind, seq, line, text: `Record ${seq} ${text}.` })
  }

  return {
    get firstSeq() {
      return firstSeq
    },
    get lastSeq() {
      return lastSeq
    },
    get head() {
      return head
    },
    get unchainedBefore() {
      return unchained > 0 ? unchained + 1 : undefined
    },
    addUnchained(text, line) {
      const seq = parseSeq(text)
      if (seq === undefined) {
        tell({ kind: 'unreadable', line, text: `Line ${line} is not a record.` })
        return
      }
      if (chained > 0)
        tell({ kind: 'stripped', seq, line, text: `Record ${seq} has no hash, and is among such that do.` })
      if (seq <= lastSeq) return tellBackwards(seq, line)
      jumpTo(seq, line)
      if (chained === 0) unchained = seq
      else isHeadUnknown = true
    },
    addChained({ seq, prev, hash }, line, isEdited) {
      chained++
      if (seq <= lastSeq) {
        tellBackwards(seq, line)
        return false
      }
      if (chained === 1 && (seq === 1 || unchained > 0)) {
        if (prev !== GENESIS && !isEdited)
          tell({
            kind: 'stripped',
            seq,
            line,
            text: `Record ${seq} is not the first of its chain, but no other is before it.`,
          })
        isHeadUnknown = true
      }
      const wasKnown = !isHeadUnknown
      isHeadUnknown = false
      jumpTo(seq, line)
      if (wasKnown && !isHeadUnknown && prev !== head)
        tell({
          kind: 'broken',
          seq,
          line,
          text: `Record ${seq} does not go on from record ${seq - 1}: one of them was replaced.`,
        })
      head = hash
      // An edited one may have had another hash.
      isHeadUnknown = isEdited
      return true
    },
    finish() {
      for (const { from, to, line } of missing) {
        tell({ kind: 'missing', seq: from, line, text: `${areMissing(from, to)} before line ${line}.` })
      }
    },
  }
}

/** Compares what lies between checkpoints with what they say of it. */
function createSegments(
  trail: ReturnType<typeof readTrail>,
  tell: Tell,
): {
  readonly count: number
  readonly lastSeq: number
  readonly lastTs: string | undefined
  /** Compares with the checkpoints at the end of what has come so far. */
  before(lastSeq: number, head: string): void
  add(link: Link, isEdited: boolean): void
  finish(lastSeq: number, head: string): void
} {
  let tree: RecordTree = createRecordTree()
  let treeFrom = 0
  let hasEdited = false
  let count = 0
  let last: Checkpoint | undefined
  let rewrittenFrom: number | undefined

  function compare(checkpoint: Checkpoint, head: string): void {
    const { seq, headHash, merkleRoot } = checkpoint
    const from = seq - checkpoint.count
    // Of records that are missing or edited it is told that they are; a root over the others says no more.
    const isComplete = !hasEdited && treeFrom === from && tree.size === checkpoint.count
    if (headHash === head && (!isComplete || tree.root() === merkleRoot)) return
    if (rewrittenFrom !== undefined) return
    rewrittenFrom = from + 1
    const text = `Records ${from + 1} to ${seq} are not those that checkpoint ${trail.line} signed at ${checkpoint.ts}: they, or records before them, were rewritten.`
    tell({ kind: 'rewritten', seq: from + 1, checkpoint: trail.line, text })
  }

  function pass(checkpoint: Checkpoint): void {
    if (last !== undefined && checkpoint.seq < last.seq)
      tell({
        kind: 'truncated',
        seq: checkpoint.seq,
        checkpoint: trail.line,
        text: `The audit was cut back from record ${last.seq} to ${checkpoint.seq - checkpoint.count} before checkpoint ${trail.line}.`,
      })
    count++
    last = checkpoint
    trail.advance()
  }

  /** What is added next belongs to a new segment, if one begins here. */
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
      while (trail.next !== undefined) pass(trail.next)
      const { seq, ts } = last as Checkpoint
      tell({
        kind: 'truncated',
        seq: lastSeq + 1,
        checkpoint: line,
        text: `${areMissing(lastSeq + 1, seq)} at the end: a checkpoint of ${ts} has signed them.`,
      })
    },
  }
}

/** Compares the checkpoints with what the audit's own records say of them: their loss shows without a configuration. */
function createClaims(tell: Tell): {
  add(text: string, signedSeq: number): void
  finish(end: { readonly hasCheckpoints: boolean; readonly missing: string | undefined }): void
} {
  let hasClaim = false
  let lost: AuditRecord | undefined

  return {
    add(text, signedSeq) {
      // In JSON, the quotes of a field's name occur nowhere else.
      if (!text.includes(',"signed_seq":')) return
      const record = parseRecord(text)
      if (record?.signed_seq === undefined) return
      hasClaim = true
      if (record.signed_seq > signedSeq) lost ??= record
    },
    finish({ hasCheckpoints, missing }) {
      if (lost !== undefined)
        tell({
          kind: 'unsigned',
          seq: lost.seq,
          text: `Record ${lost.seq} says that checkpoints signed up to record ${lost.signed_seq}. Those checkpoints are missing.`,
        })
      if (hasCheckpoints) return
      if (missing !== undefined) tell({ kind: 'unsigned', text: missing })
      else if (hasClaim && lost === undefined)
        tell({ kind: 'unsigned', text: 'The audit says that it has checkpoints, and none of them is there.' })
    },
  }
}

function areMissing(from: number, to: number): string {
  return from === to ? `Record ${from} is missing` : `Records ${from} to ${to} are missing`
}

function parseSeq(text: string): number | undefined {
  const seq = parseRecord(text)?.seq
  return Number.isSafeInteger(seq) ? seq : undefined
}

function parseRecord(text: string): AuditRecord | undefined {
  try {
    return (JSON.parse(text) as AuditRecord | null) ?? undefined
  } catch {
    return undefined
  }
}
