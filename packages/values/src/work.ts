/**
 * The remaining budget of one call, in steps of a few nanoseconds each.
 *
 * Schemas, patterns and inputs come from others and must not block the process. Steps are counted because time depends on
 * the machine.
 */
export interface Work {
  left: number
}

/** Thrown when the budget of a call is used up. */
export class WorkSpentError extends Error {
  override readonly name = 'WorkSpentError'

  constructor() {
    super('it takes too many steps')
  }
}

/** Takes steps from the budget. @throws {WorkSpentError} when it is used up */
export function spend(work: Work, steps: number): void {
  work.left -= steps
  if (work.left < 0) throw new WorkSpentError()
}
