import type { ReactElement } from 'react'
import { type JsonPart, toJsonParts } from '../exact-text.ts'
import { Exact } from './exact.tsx'

/**
 * A value as it is, which can be scrolled with the keyboard too.
 *
 * Strings of several lines stand in a block of their own, with a mark at each line break, so that none passes for a
 * part of the value and a long line is not taken for two.
 */
export function JsonBlock({ value, label }: { value: unknown; label: string }): ReactElement {
  const parts = toJsonParts(value)
  return (
    <pre className="json" tabIndex={0} role="region" aria-label={label} dir="ltr">
      {parts.map((part, i) =>
        part.kind === 'text' ? (
          <Exact key={i} text={afterBlock(part.text, parts[i - 1])} />
        ) : (
          <span key={i} className="lines">
            {part.lines.map((line, at) => (
              <span key={at} className="line-of-text">
                <Exact text={line} />
              </span>
            ))}
          </span>
        ),
      )}
    </pre>
  )
}

/** A block ends its line by itself. */
function afterBlock(text: string, before: JsonPart | undefined): string {
  return before?.kind === 'lines' && text.startsWith('\n') ? text.slice(1) : text
}
