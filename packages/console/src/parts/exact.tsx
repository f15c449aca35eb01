import type { ReactElement } from 'react'
import { toSegments } from '../exact-text.ts'

/** Text that somebody else chose, shown so that nothing in it hides or moves what is around it. */
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
