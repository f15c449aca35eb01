import { type KeyboardEvent, type ReactElement, useDeferredValue, useId, useMemo, useRef, useState } from 'react'
import { useCallers } from '../callers.ts'
import { formatAgo } from '../format.ts'
import { choose, useApi } from '../hooks.ts'
import { whoKey } from '../people.ts'
import type { CallersBody, PeopleBody, PersonRow } from '../wire.ts'
import { Field } from './form.tsx'
import { Suggestions } from './suggestions.tsx'

type CallerRow = CallersBody['callers'][number]

interface CallerChoiceProps {
  /** The chosen caller, if it is configured. */
  readonly current: CallerRow | undefined
  readonly as: string
  /** A caller as JSON; empty for a configured caller. */
  readonly custom: string
}

/** A caller or person that can be chosen. */
interface CallerChoiceOption {
  readonly text: string
  readonly about: string
  /** The choices in the address. Absent: a caller is written as JSON. */
  readonly to?: Readonly<Record<string, string>>
}

const SHOWN = 20
const MAX_TEXT = 256

/**
 * Chooses the caller whose view is shown: a configured caller, a person who was seen, or any caller as JSON. The gateway
 * searches, as there may be thousands.
 */
export function CallerChoice({ current, as, custom }: CallerChoiceProps): ReactElement {
  const [isWriting, setWriting] = useState(false)
  const isOther = isWriting || custom !== ''
  return (
    <>
      <Choice
        text={isOther ? (nameOf(custom) ?? 'another caller') : current ? textOf(current) : as}
        apply={({ to }) => {
          setWriting(to === undefined)
          if (to) choose(to)
        }}
      />
      {isOther && <OtherCaller key={custom} value={custom} apply={(caller) => choose({ caller, as: '' })} />}
    </>
  )
}

/** Returns the name of a caller that is written as JSON. */
function nameOf(custom: string): string | undefined {
  if (custom === '' || problemOf(custom) !== '') return undefined
  const { user, tenant } = JSON.parse(custom) as { user?: unknown; tenant?: unknown }
  if (typeof user !== 'string') return undefined
  return typeof tenant === 'string' ? `${user} of ${tenant}` : user
}

interface ChoiceProps {
  /** The chosen caller. */
  readonly text: string
  readonly apply: (option: CallerChoiceOption) => void
}

function Choice({ text, apply }: ChoiceProps): ReactElement {
  const listId = useId()
  const [typed, setTyped] = useState<string>()
  const [at, setAt] = useState(0)
  const input = useRef<HTMLInputElement>(null)
  const isOpen = typed !== undefined
  const found = useOptions(useDeferredValue(typed ?? '').trim(), isOpen)
  // Until the answer to the latest letters is there, Enter must not take what matched the earlier ones.
  const options = found.filter(
    (one) => one === OTHER || one.text.toLowerCase().includes((typed ?? '').trim().toLowerCase()),
  )
  const active = Math.min(at, options.length - 1)
  const close = (): void => {
    setTyped(undefined)
    setAt(0)
  }
  function take(index: number): void {
    const option = options[index]
    if (!option) return
    apply(option)
    close()
  }
  function onKey(event: KeyboardEvent): void {
    const { key } = event
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      event.preventDefault()
      if (!isOpen) setTyped('')
      else setAt((active + (key === 'ArrowDown' ? 1 : -1) + options.length) % options.length)
    } else if (isOpen && key === 'Enter') {
      event.preventDefault()
      take(active)
    } else if (isOpen && key === 'Escape') {
      event.preventDefault()
      close()
      requestAnimationFrame(() => input.current?.select())
    }
  }
  return (
    <div className="filter-box caller">
      <Field label="See as">
        {(id) => (
          <input
            ref={input}
            id={id}
            type="text"
            role="combobox"
            aria-expanded={isOpen}
            aria-controls={listId}
            aria-autocomplete="list"
            aria-activedescendant={isOpen && active >= 0 ? `${listId}-${active}` : undefined}
            maxLength={MAX_TEXT}
            spellCheck={false}
            autoComplete="off"
            title={text}
            value={typed ?? text}
            placeholder="user, tenant or role"
            onFocus={({ target }) => target.select()}
            onClick={() => setTyped((before) => before ?? '')}
            onChange={({ target }) => {
              setTyped(target.value)
              setAt(0)
            }}
            onKeyDown={onKey}
            onBlur={close}
          />
        )}
      </Field>
      <Suggestions
        id={listId}
        label="Callers and people"
        options={options}
        active={active}
        isShown={isOpen}
        point={setAt}
        take={take}
      />
    </div>
  )
}

const OTHER: CallerChoiceOption = { text: 'another caller…', about: 'written as JSON' }

/** Returns the callers and people that match, and the entry for any other caller. */
function useOptions(text: string, enabled: boolean): readonly CallerChoiceOption[] {
  const callers = useCallers({ text, limit: SHOWN }, enabled).data?.callers
  const filter = { text, limit: `${SHOWN}` }
  const people = useApi<PeopleBody>({ key: ['people', filter], path: '/api/people', parameters: filter, enabled }).data
  return useMemo(() => {
    const nowMs = Date.now()
    const known = new Set((callers ?? []).map(whoKey))
    const seen = (people?.people ?? []).filter((row) => row.callers.length === 0 && !known.has(whoKey(row)))
    return [
      ...(callers ?? []).map((row) => ({ text: textOf(row), about: kindOf(row), to: { as: row.user, caller: '' } })),
      ...seen.flatMap((row) => toPerson(row, nowMs)),
      OTHER,
    ]
  }, [callers, people])
}

/** Returns a person who is not configured, with the roles that they were seen with. */
function toPerson(row: PersonRow, nowMs: number): readonly CallerChoiceOption[] {
  const { as, user, tenant, label, seenRoles = [], rolesFrom, lastCallAt } = row
  if (user === undefined) return []
  const roles = seenRoles.length > 0 ? ` (${seenRoles.join(', ')})` : ''
  const at = rolesFrom?.at ?? lastCallAt
  const when = at === undefined ? '' : `, roles of ${formatAgo(at, nowMs)}`
  return [
    {
      // Two people of one name have different values of `as`.
      text: `${as === undefined || as === user ? `${user}${tenant === undefined ? '' : ` of ${tenant}`}` : as}${roles}`,
      about: `${label === undefined ? '' : `${label}, `}signed in${when}`,
      to:
        as === undefined ? { as: '', caller: JSON.stringify({ user, tenant, roles: seenRoles }) } : { as, caller: '' },
    },
  ]
}

function kindOf({ for: use }: CallerRow): string {
  return { mcp: 'agent', console: 'person', host: 'program' }[use]
}

function textOf({ user, tenant, roles, visible }: CallerRow): string {
  const of = tenant === undefined ? '' : ` of ${tenant}`
  const having = roles.length > 0 && roles.join() !== user ? ` (${roles.join(', ')})` : ''
  return `${user}${of}${having} – sees ${visible}`
}

function OtherCaller({ value, apply }: { value: string; apply: (caller: string) => void }): ReactElement {
  const id = useId()
  const [problem, setProblem] = useState('')
  return (
    <form
      className="field grow caller"
      onSubmit={(event) => {
        event.preventDefault()
        const typed = new FormData(event.currentTarget).get('caller')
        const text = typeof typed === 'string' ? typed.trim() : ''
        const found = problemOf(text)
        setProblem(found)
        if (found === '') apply(text)
      }}
    >
      <label htmlFor={id}>Caller, as JSON</label>
      <div className="with-button">
        <input
          id={id}
          name="caller"
          defaultValue={value}
          placeholder='{"user":"vera","roles":["viewer"]}'
          spellCheck={false}
          autoComplete="off"
          aria-invalid={problem !== ''}
          aria-describedby={`${id}-problem`}
        />
        <button type="submit">Show</button>
      </div>
      <p id={`${id}-problem`} className="problem">
        {problem}
      </p>
    </form>
  )
}

function problemOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? ''
      : 'The caller must be a JSON object.'
  } catch (error) {
    return `Invalid JSON: ${error instanceof Error ? error.message : String(error)}`
  }
}
