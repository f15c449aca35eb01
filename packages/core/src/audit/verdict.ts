/** What can be found wrong with an audit, and what it means for the whole. */
export const AUDIT_FINDINGS = {
  edited: 'tampered',
  inserted: 'tampered',
  reordered: 'tampered',
  broken: 'tampered',
  stripped: 'tampered',
  rewritten: 'tampered',
  forged: 'tampered',
  unreadable: 'tampered',
  missing: 'gap',
  truncated: 'gap',
  unsigned: 'unsigned',
  torn: 'torn',
} as const satisfies Record<string, Exclude<AuditVerdictStatus, 'ok'>>

export type AuditFindingKind = keyof typeof AUDIT_FINDINGS

/**
 * `tampered`: what is there is not what was written. `gap`: records are not there.
 * `unsigned`: its checkpoints are not there. `torn`: the last line is half a record.
 */
export type AuditVerdictStatus = 'ok' | 'tampered' | 'gap' | 'unsigned' | 'torn'

export interface AuditFinding {
  readonly kind: AuditFindingKind
  /** The record it is about, or the first of those. */
  readonly seq?: number
  /** Its line in the audit (of a database: its row), counted from 1. */
  readonly line?: number
  /** The line among the checkpoints, counted from 1. */
  readonly checkpoint?: number
  /** What is wrong, as a sentence. */
  readonly text: string
}

export interface AuditVerdict {
  /** The worst of what was found. */
  readonly status: AuditVerdictStatus
  readonly records: number
  /** 0 where there is no record. */
  readonly firstSeq: number
  readonly lastSeq: number
  /** The hash of the last record of the chain. */
  readonly head: string
  /** Records before this number were written by a version that did not chain them; nothing vouches for them. */
  readonly unchainedBefore: number | undefined
  readonly checkpoints: {
    readonly count: number
    /** Up to this record, checkpoints vouch; 0 for none. */
    readonly lastSeq: number
    readonly lastTs: string | undefined
  }
  /** In the order of the audit, at most as many as were asked for. */
  readonly findings: readonly AuditFinding[]
  /** How many there are in all. */
  readonly findingCount: number
}

const STRICTNESS: readonly AuditVerdictStatus[] = ['ok', 'torn', 'unsigned', 'gap', 'tampered']

/** Gives the worst of two. */
export function worse(a: AuditVerdictStatus, b: AuditVerdictStatus): AuditVerdictStatus {
  return STRICTNESS.indexOf(a) >= STRICTNESS.indexOf(b) ? a : b
}
