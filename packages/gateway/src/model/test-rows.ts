/** The results of one file. */
export interface FileResults {
  readonly file: string
  readonly tests: readonly TestRow[]
}

/** The result of one test, with the places of the expectations that failed. */
interface TestRow {
  readonly shows: string
  readonly ok: boolean
  readonly missed: readonly MissedRow[]
}

export interface MissedRow {
  readonly line: number
  readonly column: number
  /** Such as `expect.call files:write_file`. */
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly because: readonly string[]
}

/** A clause of a configuration, and how many expected calls it held for. */
export interface TestedClauseRow {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly clause: string
  readonly match: string
  readonly hits: number
  /** The number of real calls that the clause matched, if the request asked for it. */
  readonly recorded?: number
}
