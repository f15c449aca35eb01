import { type ReactElement, useEffect, useRef } from 'react'
import { Exact } from './exact.tsx'

interface SuggestionsProps {
  /** The id of the list. The options have its id and their index: `list-0`. */
  readonly id: string
  readonly label: string
  readonly options: readonly { readonly text: string; readonly about: string }[]
  /** The index of the option that Enter takes, or -1. */
  readonly active: number
  readonly isShown: boolean
  readonly point: (index: number) => void
  readonly take: (index: number) => void
}

/** The list below a combobox, whose field keeps the focus and the keys. */
export function Suggestions({ id, label, options, active, isShown, point, take }: SuggestionsProps): ReactElement {
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    if (isShown) list.current?.children[active]?.scrollIntoView({ block: 'nearest' })
  }, [active, isShown])
  return (
    <ul ref={list} id={id} role="listbox" aria-label={label} hidden={!isShown}>
      {(isShown ? options : []).map(({ text, about }, i) => (
        // Options are reached with the arrow keys of the field.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <li
          key={`${text} ${i}`}
          id={`${id}-${i}`}
          role="option"
          aria-selected={i === active}
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => take(i)}
          onPointerMove={() => point(i)}
        >
          <Exact text={text} className="id" /> <span className="dim">{about}</span>
        </li>
      ))}
    </ul>
  )
}
