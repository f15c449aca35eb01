import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useEffect, useRef } from 'react'
import { useTop } from '../hooks.ts'
import { findLine, type PolicyLine } from '../policy.ts'
import { Exact } from './exact.tsx'
import { ClauseNote } from './policy-clause.tsx'

const LINE_PX = 22
const NOTE_PX = 28
/** The maximum number of notes of a line, because a list in one line may have any number of clauses. */
const MAX_NOTES = 50

interface PolicyTextProps {
  readonly lines: readonly PolicyLine[]
  /** The path of the clause that the page shows, or empty. */
  readonly at: string
}

/** Shows the policy's text with the matches of each clause. It renders only the lines near the screen. */
export function PolicyText({ lines, at }: PolicyTextProps): ReactElement {
  const list = useRef<HTMLOListElement>(null)
  const top = useTop(list)
  const rows = useWindowVirtualizer({
    count: lines.length,
    estimateSize: (i) => LINE_PX + NOTE_PX * Math.min(lines[i]?.clauses.length ?? 0, MAX_NOTES),
    getItemKey: (i) => lines[i]?.number ?? i,
    overscan: 20,
    scrollMargin: top,
    scrollPaddingStart: 100,
  })
  const target = findLine(lines, at)
  const number = lines[target]?.number
  useEffect(() => {
    if (number === undefined) return undefined
    // This runs after the page has scrolled to its top, as each new page does.
    const frame = requestAnimationFrame(() => {
      rows.scrollToIndex(target, { align: 'center' })
      requestAnimationFrame(() => document.getElementById(`line-${number}`)?.focus({ preventScroll: true }))
    })
    return () => cancelAnimationFrame(frame)
    // This runs once for each clause, not each time counts are fetched.
  }, [number, at])
  const items = rows.getVirtualItems()
  return (
    <ol
      ref={list}
      className="card policy-lines"
      aria-label="The policy as it is written"
      style={{ height: rows.getTotalSize() }}
    >
      {items.map(({ index, start }) => {
        const line = lines[index]
        return (
          line && (
            <li
              key={line.number}
              id={`line-${line.number}`}
              ref={rows.measureElement}
              data-index={index}
              tabIndex={-1}
              aria-setsize={lines.length}
              aria-posinset={index + 1}
              className={index === target ? 'policy-line target' : 'policy-line'}
              style={{ transform: `translateY(${start - top}px)` }}
            >
              <Line line={line} />
            </li>
          )
        )
      })}
    </ol>
  )
}

function Line({ line: { number, text, clauses } }: { line: PolicyLine }): ReactElement {
  return (
    <>
      <span className="line-number">
        <span className="unseen">Line </span>
        {number}
      </span>
      <code>
        <Exact text={text} />
      </code>
      {clauses.length > 0 && (
        <ul className="clause-notes">
          {clauses.slice(0, MAX_NOTES).map((clause) => (
            <ClauseNote key={clause.path} clause={clause} />
          ))}
          {clauses.length > MAX_NOTES && (
            <li className="clause-note dim">and {clauses.length - MAX_NOTES} more in this line</li>
          )}
        </ul>
      )}
    </>
  )
}
