/**
 * How much may still be done for one call, in steps of a few nanoseconds each.
 *
 * Schemas, patterns and inputs are somebody else's: none of them may keep the process from its other callers, and time
 * depends on the machine, so steps are counted.
 */
export interface Work {
  left: number
}

/** There was more to do than one call is worth. */
export class WorkSpentError extends Error {
  override readonly name = 'WorkSpentError'

  constructor() {
    super('it takes too many steps')
  }
}

/** @throws {WorkSpentError} once nothing is left */
export function spend(work: Work, steps: number): void {
  work.left -= steps
  if (work.left < 0) throw new WorkSpentError()
}
