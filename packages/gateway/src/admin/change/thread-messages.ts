import type { AuditRecord } from '@toolgate/core/audit'
import type { SnapshotItem } from '@toolgate/change'
import type { Answer, Question, RecordsQuery, Situation } from './questions.ts'

/** The data that the thread reads of the gateway while it answers: in pages, so that none of them holds up calls. */
export interface Reads {
  /** The items of the catalog from an index on. An empty page is the end. */
  readonly items: { readonly given: number; readonly found: readonly SnapshotItem[] }
  /** The next records; with a query, its first. An empty page is the end. */
  readonly records: { readonly given: RecordsQuery | undefined; readonly found: RecordsPage }
  /** The keyed hash of a text. */
  readonly hash: { readonly given: string; readonly found: string }
}

export interface RecordsPage {
  readonly records: readonly AuditRecord[]
  /** How many the audit lacks before each of them, and after the last. */
  readonly missing: readonly number[]
}

export type ReadWhat = keyof Reads

/** To the thread: a question, or what it has read. */
export type ToThread =
  | { readonly question: Question; readonly situation: Situation; readonly hasHashes: boolean }
  | { readonly id: number; readonly found: Reads[ReadWhat]['found'] }

/** From the thread: what it reads next, or the end of a question. */
export type FromThread =
  | {
      readonly [What in ReadWhat]: { readonly id: number; readonly what: What; readonly given: Reads[What]['given'] }
    }[ReadWhat]
  | { readonly answer: Answer }
  /** The text cannot be used: why, for the person who asks. */
  | { readonly refused: string }
  /** An error of the gateway's own, for its log. */
  | { readonly failed: string }
