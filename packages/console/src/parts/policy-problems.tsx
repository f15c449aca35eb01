import type { ReactElement } from 'react'
import type { PolicyProblem } from '../policy.ts'
import { Exact } from './exact.tsx'

interface PolicyProblemsProps {
  readonly problems: readonly PolicyProblem[]
  readonly id?: string
  /** Moves to the position of a problem. Absent if the text is not on the page. */
  readonly goTo?: ((problem: PolicyProblem) => void) | undefined
}

/** Shows the problems of a text. Each position is a link. */
export function PolicyProblems({ id, problems, goTo }: PolicyProblemsProps): ReactElement {
  return (
    <div id={id} role="alert">
      {problems.length > 0 && (
        <ul className="stack tight policy-problems">
          {problems.map((problem, i) => (
            <li key={i} className="problem">
              <Place problem={problem} goTo={goTo} /> <Exact text={problem.text} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function Place({
  problem,
  goTo,
}: Pick<PolicyProblemsProps, 'goTo'> & { problem: PolicyProblem }): ReactElement | string | null {
  const { line, column } = problem
  if (line === undefined) return null
  const words = `Line ${line}, column ${column}`
  if (!goTo) return `${words}:`
  return (
    <button type="button" onClick={() => goTo(problem)}>
      {words}
    </button>
  )
}
