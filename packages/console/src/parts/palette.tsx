import {
  type KeyboardEvent,
  type ReactElement,
  useDeferredValue,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react'
import { linkTo, type Page } from '../address.ts'
import { useCallers } from '../callers.ts'
import { count } from '../format.ts'
import { useApi } from '../hooks.ts'
import { type Entry, type EntryKind, findEntries, toEntries, toSearch } from '../palette.ts'
import { useWaiting } from '../pending.ts'
import { useTools } from '../tools.ts'
import type { CallersBody, HaltsBody } from '../wire.ts'
import { Exact } from './exact.tsx'

const SHOWN = 12
const MAX_TEXT = 256
const NO_CALLERS: Pick<CallersBody, 'callers'> = { callers: [] }
const WORDS: Readonly<Record<EntryKind, string>> = {
  page: 'Page',
  approval: 'Waiting',
  halt: 'Halt',
  caller: 'Caller',
  tool: 'Tool',
  calls: 'Calls',
}

interface PaletteProps {
  /** The pages that this person may open, with their titles. */
  readonly pages: readonly { readonly page: Page; readonly text: string }[]
  readonly close: () => void
}

/** Finds pages, tools, callers, requests and halts by name and opens them, or searches the calls. */
export function Palette({ pages, close }: PaletteProps): ReactElement {
  const id = useId()
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const { entries, more } = useFound(pages, query)
  const active = Math.min(at, entries.length - 1)
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: 'nearest' })
  }, [active])

  function go(entry: Entry | undefined): void {
    if (!entry) return
    close()
    location.hash = entry.href
    const { focus } = entry
    if (focus !== undefined) requestAnimationFrame(() => document.getElementById(focus)?.focus())
  }
  function onKey(event: KeyboardEvent): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 && event.key !== 'Enter') return
    event.preventDefault()
    if (step === 0) go(entries[active])
    else if (entries.length > 0) setAt((active + step + entries.length) % entries.length)
  }
  return (
    <div className="stack palette">
      <input
        type="text"
        role="combobox"
        autoFocus
        aria-label="Go to"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={entries.length > 0 ? `${id}-${active}` : undefined}
        aria-autocomplete="list"
        placeholder="A page, tool, caller, request, halt or call"
        autoComplete="off"
        spellCheck={false}
        maxLength={300}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value)
          setAt(0)
        }}
        onKeyDown={onKey}
      />
      <ul ref={list} id={`${id}-list`} role="listbox" aria-label="Found">
        {entries.map((entry, i) => (
          // Options are reached with the arrow keys of the field above.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={`${entry.kind} ${i}`}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            onClick={() => go(entry)}
            onPointerMove={() => setAt(i)}
          >
            <Place entry={entry} />
          </li>
        ))}
      </ul>
      <p className="dim" role="status">
        {entries.every(({ kind }) => kind === 'calls')
          ? 'Nothing has this name.'
          : more > 0
            ? count(more, 'more match')
            : ''}
      </p>
    </div>
  )
}

function Place({ entry: { kind, text, detail = '' } }: { entry: Entry }): ReactElement {
  return (
    <>
      <span className="kind">{WORDS[kind]}</span>
      <span>
        <Exact text={text} className="strong" />
        {detail !== '' && (
          <span className="dim">
            {' '}
            <Exact text={detail} />
          </span>
        )}
      </span>
    </>
  )
}

/** Fetches the searchable items while the palette is open. */
function useFound(pages: PaletteProps['pages'], query: string) {
  const [first] = useCallers({ limit: 1 }).data?.callers ?? []
  const asked = useDeferredValue(query.trim().slice(0, MAX_TEXT))
  const { callers } = useCallers({ text: asked, limit: SHOWN }).data ?? NO_CALLERS
  const tools = useTools({ as: first?.user ?? '', enabled: first !== undefined })
  const { approvals = [] } = useWaiting().data ?? {}
  const { halts = [] } = useApi<HaltsBody>({ key: ['halts'], path: '/api/halts' }).data ?? {}
  const rows = tools.data?.tools
  const entries = useMemo(
    () =>
      toEntries({
        pages: pages.map(({ page, text }) => ({ text, href: linkTo(page) })),
        tools: rows ?? [],
        callers,
        approvals,
        halts,
        here: location.hash,
      }),
    [pages, rows, callers, approvals, halts],
  )
  return useMemo(() => {
    const found = findEntries(entries, query, SHOWN)
    const search = toSearch(query)
    return search ? { ...found, entries: [...found.entries, search] } : found
  }, [entries, query])
}
