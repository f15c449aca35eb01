import type { AuditRecord } from '../ports/ports.ts'
import { checkShape, shapeOf } from '@toolgate/values'
import { GENESIS, hashRecord, type ChainLink, readLink } from './chain.ts'
import { areMissing, Segments, type SignedPoint } from './segments.ts'
import { isHash } from './merkle.ts'
import { isCanonicalRecord, parseRecord } from './record.ts'
import { createInputsCheck } from './verify-inputs.ts'
import { type AuditFinding, type AuditVerdict, createFindings } from './verdict.ts'

export interface VerifyOptions {
  /** The signed ends of the chain, oldest first. Their signatures were checked. */
  readonly signed?: readonly SignedPoint[] | undefined
  /**
   * The text of the finding `unsigned`, for records without a checkpoint. Default: no such finding, unless the records say
   * that checkpoints exist.
   */
  readonly missing?: string | undefined
  /** How many findings are kept; all are counted. Default 100. */
  readonly maxFindings?: number | undefined
}

const OPTIONS = shapeOf<VerifyOptions>({
  signed: true,
  missing: true,
  maxFindings: true,
})
interface VerifyEnd {
  /** The last line is incomplete. */
  readonly torn?: boolean
  /** Wall-clock milliseconds: records of other chains say that sealed inputs before this time were removed. */
  readonly inputsRemovedBefore?: number | undefined
}

const END = shapeOf<VerifyEnd>({ torn: true, inputsRemovedBefore: true })

/** Receives the records of an audit in the order in which they are stored. */
export interface AuditVerifier {
  /**
   * Verifies the next record, given as the stored text, and its sealed input: `null` if it is missing, absent if it was not
   * looked up.
   */
  add(text: string, box?: string | null): void
  /** Reports a problem that the store itself found in the last record. */
  report(text: string): void
  /** Returns the verdict. */
  finish(end?: VerifyEnd): AuditVerdict
}

/**
 * Creates a verifier that checks a chain of an audit and its checkpoints. It takes one pass, and no memory for records.
 *
 * It finds and locates edits, insertions, deletions, reorderings, a cut-off end, a complete rewriting, and lost
 * checkpoints. It works on the stored texts, and parses only records with a problem.
 */
export function createVerifier(options: VerifyOptions = {}): AuditVerifier {
  checkShape('createVerifier', options, OPTIONS)
  const { signed = [], missing, maxFindings = 100 } = options
  const found = createFindings(maxFindings)
  const { report } = found
  const sequence = new RecordSequence(report)
  const segments = new Segments(signed, report)
  const claims = createClaims(report)
  const inputs = createInputsCheck(report)
  let line = 0

  return {
    add(text, box) {
      line++
      inputs.add(text, box)
      const link = readLink(text)
      if (line === 1 && link !== undefined && link.seq > 1) segments.startAfter(link.seq - 1, link.prev)
      else segments.before(sequence.lastSeq, sequence.head)
      claims.add(text, segments.lastSeq)
      if (link === undefined) {
        sequence.addUnchained(text, line)
        return
      }
      const problem = problemOf(text, link)
      if (problem !== undefined || !Number.isSafeInteger(link.seq))
        report({ kind: 'edited', ...seqOf(link), line, text: problem ?? `Line ${line} has no number.` })
      if (!Number.isSafeInteger(link.seq)) return
      if (sequence.addChained(link, line, problem !== undefined)) segments.add(link, problem !== undefined)
    },
    report(text) {
      report({ kind: 'edited', seq: sequence.lastSeq, line, text })
    },
    finish(end = {}) {
      checkShape('finish', end, END)
      const { torn = false, inputsRemovedBefore } = end
      segments.finish(sequence.lastSeq, sequence.head)
      const prunedTo = Math.min(segments.prunedSeq, sequence.firstSeq - 1)
      sequence.finish(prunedTo)
      claims.finish({ hasCheckpoints: segments.count > 0, missing: line > 0 ? missing : undefined })
      if (torn) report({ kind: 'torn', line: line + 1, text: 'The last line has no end: a crash left half a record.' })
      const foundInputs = inputs.finish(inputsRemovedBefore)
      const { firstSeq, lastSeq, head, unchainedBefore } = sequence
      const { count, lastSeq: checkedSeq, lastTs } = segments
      return {
        status: found.status,
        records: line,
        firstSeq,
        lastSeq,
        head,
        unchainedBefore,
        ...(prunedTo > 0 && segments.voucher !== undefined ? { pruned: { seq: prunedTo, ...segments.voucher } } : {}),
        ...(foundInputs && { inputs: foundInputs }),
        checkpoints: { count, lastSeq: checkedSeq, lastTs },
        findings: found.findings,
        findingCount: found.findingCount,
      }
    },
  }
}

type Report = (finding: AuditFinding) => void

function seqOf({ seq }: ChainLink): { seq?: number } {
  return Number.isSafeInteger(seq) ? { seq } : {}
}

function problemOf(text: string, link: ChainLink): string | undefined {
  const { seq, hash, prev, hashed } = link
  if (hashRecord(prev, hashed) !== hash) return `Record ${seq} was edited: its content does not have its hash.`
  // Checked last: a record with the right hash was written by Toolgate, or by someone who can compute the hash.
  return isHash(prev) && isCanonicalRecord(text)
    ? undefined
    : `Record ${seq} was edited: it is not in canonical form (RFC 8785).`
}

/** Checks numbers and hashes from record to record. */
class RecordSequence {
  firstSeq = 0
  lastSeq = 0
  head = GENESIS
  readonly #report: Report
  #unchained = 0
  #chained = 0
  /** Whether the expected `prev` of the next record is unknown. */
  #isHeadUnknown = false
  /** Numbers that were skipped. A record that comes later was moved, not deleted. */
  #missing: { from: number; to: number; readonly line: number }[] = []

  constructor(report: Report) {
    this.#report = report
  }

  get unchainedBefore(): number | undefined {
    return this.#unchained > 0 ? this.#unchained + 1 : undefined
  }

  addUnchained(text: string, line: number): void {
    const seq = parseRecord(text)?.seq
    if (seq === undefined) {
      this.#report({ kind: 'unreadable', line, text: `Line ${line} is not a record.` })
      return
    }
    if (this.#chained > 0)
      this.#report({ kind: 'stripped', seq, line, text: `Record ${seq} has no hash, and is among such that do.` })
    if (seq <= this.lastSeq) return this.#reportBackwards(seq, line)
    this.#jumpTo(seq, line)
    if (this.#chained === 0) this.#unchained = seq
    else this.#isHeadUnknown = true
  }

  /** Adds a record. Returns whether it is in its place. */
  addChained({ seq, prev, hash }: ChainLink, line: number, isEdited: boolean): boolean {
    this.#chained++
    if (seq <= this.lastSeq) {
      this.#reportBackwards(seq, line)
      return false
    }
    if (this.#chained === 1 && (seq === 1 || this.#unchained > 0)) {
      if (prev !== GENESIS && !isEdited)
        this.#report({
          kind: 'stripped',
          seq,
          line,
          text: `Record ${seq} is not the first of its chain, but no other is before it.`,
        })
      this.#isHeadUnknown = true
    }
    const wasKnown = !this.#isHeadUnknown
    this.#isHeadUnknown = false
    this.#jumpTo(seq, line)
    if (wasKnown && !this.#isHeadUnknown && prev !== this.head)
      this.#report({
        kind: 'broken',
        seq,
        line,
        text: `Record ${seq} does not go on from record ${seq - 1}: one of them was replaced.`,
      })
    this.head = hash
    // An edited record may have had another hash.
    this.#isHeadUnknown = isEdited
    return true
  }

  /** `prunedTo`: records at the beginning, up to this one, were removed by retention. */
  finish(prunedTo: number): void {
    for (const { from: first, to, line } of this.#missing) {
      const from = Math.max(first, prunedTo + 1)
      if (from > to) continue
      this.#report({ kind: 'missing', seq: from, line, text: `${areMissing(from, to)} before line ${line}.` })
    }
  }

  #jumpTo(seq: number, line: number): void {
    if (seq > this.lastSeq + 1) {
      this.#missing.push({ from: this.lastSeq + 1, to: seq - 1, line })
      this.#isHeadUnknown = true
    }
    if (this.firstSeq === 0) this.firstSeq = seq
    this.lastSeq = seq
  }

  #reportBackwards(seq: number, line: number): void {
    const kind = this.#takeMissing(seq) ? 'reordered' : 'inserted'
    const text =
      kind === 'reordered' ? `comes after record ${this.lastSeq}` : `is there twice, or its number was given to another`
    this.#report({ kind, seq, line, text: `Record ${seq} ${text}.` })
  }

  /** Removes a number from the missing ones. Returns whether it was missing. */
  #takeMissing(seq: number): boolean {
    const gap = this.#missing.find(({ from, to }) => from <= seq && seq <= to)
    if (!gap) return false
    this.#missing = this.#missing.flatMap((one) =>
      one === gap
        ? [
            { ...one, to: seq - 1 },
            { ...one, from: seq + 1 },
          ].filter(({ from, to }) => from <= to)
        : [one],
    )
    return true
  }
}

/** Compares the checkpoints with the audit's own records about them, so that their loss shows without configuration. */
function createClaims(report: Report): {
  add(text: string, signedSeq: number): void
  finish(end: { readonly hasCheckpoints: boolean; readonly missing: string | undefined }): void
} {
  let hasClaim = false
  let lost: AuditRecord | undefined

  return {
    add(text, signedSeq) {
      // Field names with their quotes occur only as names, because quotes in texts are escaped.
      if (!text.includes(',"signed_seq":')) return
      const record = parseRecord(text)
      if (record?.signed_seq === undefined) return
      hasClaim = true
      if (record.signed_seq > signedSeq) lost ??= record
    },
    finish({ hasCheckpoints, missing }) {
      if (lost !== undefined)
        report({
          kind: 'unsigned',
          seq: lost.seq,
          text: `Record ${lost.seq} says that checkpoints signed up to record ${lost.signed_seq}. Those checkpoints are missing.`,
        })
      if (hasCheckpoints) return
      if (missing !== undefined) report({ kind: 'unsigned', text: missing })
      else if (hasClaim && lost === undefined)
        report({ kind: 'unsigned', text: 'The audit says that it has checkpoints, and none of them is there.' })
    },
  }
}
