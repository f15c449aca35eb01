import { type KeyboardEvent, type ReactElement, useId, useRef, useState } from 'react'
import { completeFilter, type FilterGrammar, formatFilter, parseFilter, withoutTyped } from '../filter-text.ts'
import { choose, useChoices } from '../hooks.ts'
import { Field, Problem } from './form.tsx'
import { Suggestions } from './suggestions.tsx'

interface FilterBoxProps {
  readonly grammar: FilterGrammar
  readonly example: string
  /** Returns values of a key that were seen in the list, for the suggestions. */
  readonly seen: (key: string) => Iterable<string>
  /** Whether words filter the list while they are typed. */
  readonly isEager?: boolean
}

/** What was typed. It counts until the address changes from elsewhere. */
interface TypedFilter {
  readonly text: string
  /** The text of the address when it was typed. */
  readonly base: string
}

const MAX_TEXT = 2000

/**
 * One field for all filters of a list: `user:ann outcome:failed "any text"`. The choices are in the address, each by its
 * own name. It suggests keys and values (ARIA combobox): arrow keys choose one, Enter takes it or applies the filter.
 */
export function FilterBox({ grammar, example, seen, isEager = false }: FilterBoxProps): ReactElement {
  const listId = useId()
  const of = useChoices()
  const applied = formatFilter(of, grammar)
  const [draft, setDraft] = useState<TypedFilter>()
  const [problems, setProblems] = useState<readonly string[]>([])
  const [caret, setCaret] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(-1)
  const input = useRef<HTMLInputElement>(null)
  const text = draft?.base === applied ? draft.text : applied
  const { start, end, completions } = isOpen ? completeFilter(text, caret, grammar, seen) : NOTHING
  const active = Math.min(at, completions.length - 1)

  /** Applies a text to the address, and shows another one in the field. Returns whether it was without a problem. */
  function apply(to: string, shown = to): boolean {
    const parsed = parseFilter(to, grammar)
    setProblems(parsed.problems)
    if (parsed.problems.length > 0) return false
    const names = [...grammar.keys.map(({ name }) => name), ...(grammar.text === undefined ? [] : [grammar.text])]
    choose(Object.fromEntries(names.map((name) => [name, parsed.values.get(name) ?? ''])))
    setDraft({ text: shown, base: formatFilter((name) => parsed.values.get(name) ?? '', grammar) })
    return true
  }
  function type(to: string, place: number): void {
    setDraft({ text: to, base: applied })
    setCaret(place)
    setOpen(true)
    setAt(-1)
    setProblems([])
    const whole = withoutTyped(to, place)
    if (isEager && parseFilter(whole, grammar).problems.length === 0) apply(whole, to)
  }
  function take(index: number): void {
    const completion = completions[index]
    if (!completion) return
    const before = `${text.slice(0, start)}${completion.text}${completion.isWhole ? ' ' : ''}`
    const to = before + text.slice(end).replace(completion.isWhole ? /^\s+/ : '', '')
    setDraft({ text: to, base: applied })
    setCaret(before.length)
    setAt(-1)
    setOpen(!completion.isWhole)
    if (completion.isWhole) apply(to)
    // The caret is set once the new text is there.
    requestAnimationFrame(() => input.current?.setSelectionRange(before.length, before.length))
  }
  function onKey(event: KeyboardEvent<HTMLInputElement>): void {
    const { key } = event
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      event.preventDefault()
      setCaret(event.currentTarget.selectionStart ?? text.length)
      if (!isOpen) setOpen(true)
      else if (completions.length > 0)
        setAt(key === 'ArrowDown' ? (active + 1) % completions.length : (active <= 0 ? completions.length : active) - 1)
    } else if (key === 'Enter') {
      event.preventDefault()
      if (active >= 0) take(active)
      else if (apply(text)) setOpen(false)
    } else if (key === 'Escape' && (isOpen || text !== applied)) {
      event.preventDefault()
      if (isOpen) setOpen(false)
      else setDraft(undefined)
      setProblems([])
    }
  }
  const isShown = isOpen && completions.length > 0
  return (
    <div className="filter-box">
      <Field label="Filter" isGrowing>
        {(id) => (
          <input
            ref={input}
            id={id}
            type="text"
            role="combobox"
            aria-expanded={isShown}
            aria-controls={listId}
            aria-autocomplete="list"
            aria-activedescendant={isShown && active >= 0 ? `${listId}-${active}` : undefined}
            aria-invalid={problems.length > 0}
            maxLength={MAX_TEXT}
            spellCheck={false}
            autoComplete="off"
            value={text}
            placeholder={example}
            onChange={({ target }) => type(target.value, target.selectionStart ?? target.value.length)}
            onKeyDown={onKey}
            onClick={({ currentTarget }) => {
              setCaret(currentTarget.selectionStart ?? text.length)
              setOpen(true)
            }}
            onBlur={() => {
              setOpen(false)
              if (draft !== undefined && text !== applied) apply(text)
            }}
          />
        )}
      </Field>
      <Suggestions
        id={listId}
        label="Suggestions"
        options={completions}
        active={active}
        isShown={isShown}
        point={setAt}
        take={take}
      />
      <Problem text={problems.join(' ')} />
    </div>
  )
}

const MAX_SEEN = 200

/** Returns the different texts of a field in the loaded rows. */
export function seenIn(rows: readonly object[], field: string): ReadonlySet<string> {
  const seen = new Set<string>()
  for (const row of rows) {
    const value: unknown = new Map(Object.entries(row)).get(field)
    if (typeof value === 'string') seen.add(value)
    if (seen.size >= MAX_SEEN) break
  }
  return seen
}

const NOTHING = { start: 0, end: 0, completions: [] } as const
