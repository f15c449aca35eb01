import type { ReactElement } from 'react'
import { toSegments, type JsonPart, toJsonParts } from '../exact-text.ts'

/** Untrusted text, shown so that nothing in it is invisible or affects the text around it. */
export function Exact({ text, className }: { text: string; className?: string }): ReactElement {
  return (
    <bdi className={className}>
      {toSegments(text).map((segment, i) =>
        segment.kind === 'text' ? (
          segment.text
        ) : (
          <span key={i} className="mark" title={segment.name}>
            {segment.code}
          </span>
        ),
      )}
    </bdi>
  )
}

/**
 * A value as JSON, which the keyboard can scroll too.
 *
 * Strings of several lines are in their own blocks, with a mark at each line break. So a line cannot look like a part of
 * the value, and a wrapped line does not look like two.
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

/** A block of lines already ends its line. */
function afterBlock(text: string, before: JsonPart | undefined): string {
  return before?.kind === 'lines' && text.startsWith('\n') ? text.slice(1) : text
}
