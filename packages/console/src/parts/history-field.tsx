import type { ReactElement } from 'react'
import { Exact } from './exact.tsx'
import { Field } from './form.tsx'

interface HistoryFieldProps {
  readonly text: string
  readonly change: (text: string) => void
  /** The problems, one per line. */
  readonly problem: string | undefined
}

const EXAMPLE = 'labels: [untrusted]\ncalls:\n  - { tool: web:fetch, ago: 5m }'

/** A field for the history of a dry run: labels and earlier calls, in the format of test files. */
export function HistoryField({ text, change, problem }: HistoryFieldProps): ReactElement {
  return (
    <details className="stated-history">
      <summary>What happened before (optional)</summary>
      <Field label="History of the run, as YAML">
        {(id) => (
          <>
            <textarea
              id={id}
              className="code"
              rows={4}
              spellCheck={false}
              value={text}
              placeholder={EXAMPLE}
              aria-invalid={problem !== undefined}
              aria-describedby={`${id}-help ${id}-problem`}
              onChange={(event) => change(event.target.value)}
            />
            <p id={`${id}-help`} className="dim">
              Labels, earlier calls (tool, input, output) and messages of the user, in place of the real history. Leave
              it empty to use the real one.
            </p>
            <div id={`${id}-problem`} className="problem" role="alert">
              {problem?.split('\n').map((line) => (
                <p key={line}>
                  <Exact text={line} />
                </p>
              ))}
            </div>
          </>
        )}
      </Field>
    </details>
  )
}
