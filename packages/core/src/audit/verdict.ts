/** The kinds of findings, and the status that each gives an audit. */
export const AUDIT_FINDINGS = {
  edited: 'tampered',
  inserted: 'tampered',
  reordered: 'tampered',
  broken: 'tampered',
  stripped: 'tampered',
  rewritten: 'tampered',
  forked: 'tampered',
  forged: 'tampered',
  unreadable: 'tampered',
  missing: 'gap',
  truncated: 'gap',
  unsigned: 'unsigned',
  torn: 'torn',
} as const satisfies Record<string, Exclude<AuditVerdictStatus, 'ok'>>

type AuditFindingKind = keyof typeof AUDIT_FINDINGS

/**
 * `tampered`: records were changed. `gap`: records are missing. `unsigned`: checkpoints are missing. `torn`: the last line
 * is half a record.
 */
export type AuditVerdictStatus = 'ok' | 'tampered' | 'gap' | 'unsigned' | 'torn'

export interface AuditFinding {
  readonly kind: AuditFindingKind
  /** The replica, and its start, that wrote the record. Absent without replicas. */
  readonly replica?: string
  readonly incarnation?: string
  /** The record, or the first of several. */
  readonly seq?: number
  /** The line in the audit (in a database: the row), counted from 1. */
  readonly line?: number
  /** The number of the checkpoint, counted from 1. */
  readonly checkpoint?: number
  /** The finding as a sentence. */
  readonly text: string
}

/** The result of checking sealed inputs. */
export interface InputsVerdict {
  /** Inputs that are equal to the recorded ones. */
  readonly present: number
  /** Inputs that retention removed, according to a record. */
  readonly gone: number
  /** Inputs that are missing without such a record. */
  readonly missing: number
  readonly altered: number
}

export interface AuditVerdict {
  /** The worst status of all findings. */
  readonly status: AuditVerdictStatus
  readonly records: number
  /** 0 if there is no record. */
  readonly firstSeq: number
  readonly lastSeq: number
  /** The hash of the last record of the chain. */
  readonly head: string
  /** Records before this number were written by a version without a chain. They cannot be verified. */
  readonly unchainedBefore: number | undefined
  /** Present only if retention removed records at the beginning, according to a signed checkpoint. */
  readonly pruned?: {
    /** The last removed record. The audit begins after it. */
    readonly seq: number
    /** The checkpoint that signed the last removed record: its number, counted from 1, and its time. */
    readonly checkpoint: number
    readonly ts: string
  }
  /** Absent if the audit has no sealed inputs. */
  readonly inputs?: InputsVerdict
  readonly checkpoints: {
    readonly count: number
    /** The last record that a checkpoint has signed; 0 for none. */
    readonly lastSeq: number
    readonly lastTs: string | undefined
  }
  /** In the order of the audit, at most `maxFindings`. */
  readonly findings: readonly AuditFinding[]
  /** The number of all findings. */
  readonly findingCount: number
}

const STRICTNESS: readonly AuditVerdictStatus[] = ['ok', 'torn', 'unsigned', 'gap', 'tampered']

/** Returns the worse of two statuses. */
export function worse(a: AuditVerdictStatus, b: AuditVerdictStatus): AuditVerdictStatus {
  return STRICTNESS.indexOf(a) >= STRICTNESS.indexOf(b) ? a : b
}

/** Collects findings. */
interface Findings {
  readonly report: (finding: AuditFinding) => void
  /** The worst status of all findings. */
  readonly status: AuditVerdictStatus
  readonly findings: readonly AuditFinding[]
  /** The number of all findings. */
  readonly findingCount: number
}

/** Returns a collection that keeps at most `maxFindings`, and counts all. */
export function createFindings(maxFindings = 100): Findings {
  const findings: AuditFinding[] = []
  let findingCount = 0
  let status: AuditVerdictStatus = 'ok'
  return {
    findings,
    get status() {
      return status
    },
    get findingCount() {
      return findingCount
    },
    report(finding) {
      findingCount++
      status = worse(status, AUDIT_FINDINGS[finding.kind])
      if (findings.length < maxFindings) findings.push(finding)
    },
  }
}
