import { Fragment, type ReactElement, useMemo } from 'react'
import { toSegments, type JsonPart, toJsonParts } from '../exact-text.ts'
import { count, toSentence } from '../format.ts'
import type { DiffLine, SkippedLines } from '../line-diff.ts'

/** Shows untrusted text so that no character is invisible or affects the text around it. */
export function Exact({ text, className }: { text: string; className?: string | undefined }): ReactElement {
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

interface PhraseProps {
  readonly before?: string
  readonly text: string | undefined
  readonly after?: string
  /** The class name of the text. */
  readonly className?: string
}

/** Shows untrusted text within our own words. It is empty without a text. */
export function Phrase({ before = '', text = '', after = '', className }: PhraseProps): ReactElement | null {
  if (text === '') return null
  return (
    <span>
      {before}
      <Exact text={text} className={className} />
      {after}
    </span>
  )
}

/** Shows a reason on its own line. It is empty without a reason. */
export function Because({ reason = '' }: { reason: string | undefined }): ReactElement | null {
  return reason === '' ? null : (
    <span className="sub">
      <Exact text={toSentence(reason)} />
    </span>
  )
}

interface IdsProps {
  readonly ids: readonly string[]
  readonly linkOf?: (id: string) => string
}

/** Shows ids in one line, as links if they have a target. */
export function Ids({ ids, linkOf }: IdsProps): ReactElement {
  return (
    <>
      {ids.map((id, i) => (
        <Fragment key={id}>
          {i > 0 && ', '}
          {linkOf ? (
            <a href={linkOf(id)}>
              <Exact text={id} className="id" />
            </a>
          ) : (
            <Exact text={id} className="id" />
          )}
        </Fragment>
      ))}
    </>
  )
}

/**
 * Shows a value as JSON, which can be scrolled by keyboard.
 *
 * Strings of several lines are in their own blocks, with a mark at each line break. So a line cannot imitate a part of
 * the value, and a wrapped line does not look like two lines. A text with its replacement is shown as a difference.
 */
export function JsonBlock({ value, label }: { value: unknown; label: string }): ReactElement {
  const parts = useMemo(() => toJsonParts(value), [value])
  return (
    <pre className="json" tabIndex={0} role="group" aria-label={label} dir="ltr">
      {parts.map((part, i) =>
        part.kind === 'text' ? (
          <Exact key={i} text={afterBlock(part.text, parts[i - 1])} />
        ) : (
          <span key={i} className={part.kind === 'diff' ? 'lines diff' : 'lines'}>
            {part.lines.map((line, at) => (
              <Line key={at} line={typeof line === 'string' ? { kind: 'same', text: line } : line} />
            ))}
          </span>
        ),
      )}
    </pre>
  )
}

/** Shows the difference of two texts, with the number of skipped equal lines. */
export function DiffBlock({
  lines,
  label,
}: {
  lines: readonly (DiffLine | SkippedLines)[]
  label: string
}): ReactElement {
  return (
    <pre className="json" tabIndex={0} role="group" aria-label={label} dir="ltr">
      <span className="lines diff">
        {lines.map((line, at) =>
          line.kind === 'skipped' ? (
            <span key={at} className="skipped-lines">
              {count(line.count, 'equal line')}
            </span>
          ) : (
            <Line key={at} line={line} />
          ),
        )}
      </span>
    </pre>
  )
}

const SPOKEN = { same: '', removed: 'removed: ', added: 'added: ' } as const

function Line({ line: { kind, text } }: { line: DiffLine }): ReactElement {
  return (
    <span className={`line-of-text ${kind}`}>
      {kind !== 'same' && <span className="unseen">{SPOKEN[kind]}</span>}
      {text.split('\t').map((piece, i) => (
        <Fragment key={i}>
          {i > 0 && <span className="tab-mark">{'\t'}</span>}
          <Exact text={piece} />
        </Fragment>
      ))}
    </span>
  )
}

/**
 * Returns the notation after a block of lines. The block already ends its line, so a comma would stand alone on the
 * next one.
 */
function afterBlock(text: string, before: JsonPart | undefined): string {
  return before === undefined || before.kind === 'text' ? text : text.replace(/^,?\n/, '')
}
