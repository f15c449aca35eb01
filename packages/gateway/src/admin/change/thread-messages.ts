import type { AuditRecord } from '@toolgate/core/audit'
import type { SnapshotItem } from '@toolgate/change'
import type { QuestionAnswer, ThreadQuestion, RecordsQuery, Situation } from './questions.ts'

/**
 * The data that the thread requests from the gateway while it answers. It is read in pages, so that no page delays
 * calls.
 */
export interface Reads {
  /** The items of the catalog, from an index on. An empty page marks the end. */
  readonly items: { readonly given: number; readonly found: readonly SnapshotItem[] }
  /** The next records, or the first ones if there is a query. An empty page marks the end. */
  readonly records: { readonly given: RecordsQuery | undefined; readonly found: RecordsPage }
  /** The keyed hash of a text. */
  readonly hash: { readonly given: string; readonly found: string }
}

export interface RecordsPage {
  readonly records: readonly AuditRecord[]
  /** The number of records that the audit lacks before each record, and after the last one. */
  readonly missing: readonly number[]
}

export type ReadWhat = keyof Reads

/** A message to the thread: a question, or requested data. */
export type ToThread =
  | { readonly question: ThreadQuestion; readonly situation: Situation; readonly hasHashes: boolean }
  | { readonly id: number; readonly found: Reads[ReadWhat]['found'] }

/** A message from the thread: a request for data, or the end of a question. */
export type FromThread =
  | {
      readonly [What in ReadWhat]: { readonly id: number; readonly what: What; readonly given: Reads[What]['given'] }
    }[ReadWhat]
  | { readonly answer: QuestionAnswer }
  /** Why the text cannot be used, for the person who asks. */
  | { readonly refused: string }
  /** An error of the gateway's own, for its log. */
  | { readonly failed: string }
