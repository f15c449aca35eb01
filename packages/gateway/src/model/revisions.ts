/** `GET /api/policy/revisions`: the policies that were in force, the latest first; at most 50. */
export interface PolicyRevisionsBody {
  readonly revisions: readonly PolicyRevisionRow[]
  /** Whether this person may go back to one. */
  readonly mayRestore: boolean
  /** Present while a restored policy applies in place of the policy of the file. */
  readonly restored?: RestoredPolicyRow
}

/** A policy that was in force. */
export interface PolicyRevisionRow {
  /** Counts the policies of this gateway, or of all its replicas, from 1. */
  readonly revision: number
  /** When it came in force, in wall-clock milliseconds. */
  readonly at: number
  /** The person who reloaded or restored it, if one did. */
  readonly by?: string
  /** How it came in force. */
  readonly through: PolicyRevisionCause
  /** The earlier revision whose text it has, if a person went back to one. */
  readonly restores?: number
  readonly isInForce: boolean
}

export type PolicyRevisionCause = 'start' | 'signal' | 'api' | 'host' | 'publication' | 'watch' | 'restore'

/** Who restored which revision. The restored policy applies until the policy of the file changes. */
export interface RestoredPolicyRow {
  readonly revision: number
  readonly at: number
  readonly by?: string
}

/** `GET /api/policy/revisions/<revision>`: the row, and the text of the section `policy`, with secrets masked. */
export interface PolicyRevisionBody extends PolicyRevisionRow {
  readonly text: string
}

/** `POST /api/policy/revisions/<revision>`: goes back to it. The answer is that of `POST /api/reload`. */
export interface RestoreRequestBody {
  /** Only reports what would change, and who would gain and lose which tools. */
  readonly dryRun?: boolean
  /** The id of a dry run: exactly its changes are applied, or none. */
  readonly preview?: string
}
