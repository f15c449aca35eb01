import { ToolgateError } from '@toolgate/core'

/**
 * The reasons why calls are refused. `silent`: the database does not answer. `unshipped`: records on this disk do not
 * reach it in time. `disk`: this disk refuses records. `forked`: another process has written to the chain; this is
 * permanent.
 */
export const AUDIT_PROBLEMS = ['silent', 'unshipped', 'disk', 'forked'] as const

export interface AuditProblem {
  readonly code: (typeof AUDIT_PROBLEMS)[number]
  /** A message for people, as a clause rather than a sentence. */
  readonly message: string
}

/** Returns the error of a refused write. */
export function unavailable(detail: string): ToolgateError {
  return new ToolgateError('audit_unavailable', 'The audit cannot be written.', { detail })
}

/** Reports once when calls begin to be refused, and once when they are accepted again. */
export class ProblemReport {
  readonly #report: (problem: AuditProblem | undefined) => void
  #reported = false

  constructor(report: (problem: AuditProblem | undefined) => void) {
    this.#report = report
  }

  update(problem: AuditProblem | undefined): void {
    if ((problem !== undefined) === this.#reported) return
    this.#reported = problem !== undefined
    this.#report(problem)
  }
}
