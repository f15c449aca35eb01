import { type ReactElement, useId, useMemo, useState } from 'react'
import { choose } from '../hooks.ts'
import type { CallersBody } from '../wire.ts'

type CallerRow = CallersBody['callers'][number]

interface CallerChoiceProps {
  readonly callers: readonly CallerRow[]
  readonly as: string
  /** A caller as JSON; empty for a configured caller. */
  readonly custom: string
}

/** A value that no user's name has, because names have no control characters. */
const OTHER = '\u0000other'

/**
 * Chooses the caller whose view is shown: a configured caller, or any caller as JSON.
 *
 * The options are rendered on focus, because a thousand of them take longer than the rest of a page.
 */
export function CallerChoice({ callers, as, custom }: CallerChoiceProps): ReactElement {
  const id = useId()
  const [isWriting, setWriting] = useState(false)
  const [isUsed, setUsed] = useState(false)
  const isOther = isWriting || custom !== ''
  const current = callers.find(({ user }) => user === as)
  const options = useMemo(() => isUsed && <Callers callers={callers} />, [callers, isUsed])
  return (
    <>
      <div className="field caller">
        <label htmlFor={id}>See as</label>
        <select
          id={id}
          value={isOther ? OTHER : as}
          onPointerDown={() => setUsed(true)}
          onFocus={() => setUsed(true)}
          onChange={({ target }) => {
            setWriting(target.value === OTHER)
            if (target.value !== OTHER) choose({ as: target.value, caller: '' })
          }}
        >
          {!isOther && !current && <option value={as}>{as} (not configured)</option>}
          {!isUsed && current && <CallerOption caller={current} />}
          {options}
          <option value={OTHER}>another caller…</option>
        </select>
      </div>
      {isOther && <OtherCaller key={custom} value={custom} apply={(caller) => choose({ caller, as: '' })} />}
    </>
  )
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

function Callers({ callers }: { callers: readonly CallerRow[] }): ReactElement {
  return (
    <>
      <Kind label="Agents" callers={callers.filter((caller) => caller.for === 'mcp')} />
      <Kind label="People" callers={callers.filter((caller) => caller.for === 'console')} />
    </>
  )
}

function Kind({ label, callers }: { label: string; callers: readonly CallerRow[] }): ReactElement | null {
  if (callers.length === 0) return null
  return (
    <optgroup label={label}>
      {callers.map((caller) => (
        <CallerOption key={caller.user} caller={caller} />
      ))}
    </optgroup>
  )
}

function CallerOption({ caller: { user, tenant, roles, visible } }: { caller: CallerRow }): ReactElement {
  const of = tenant === undefined ? '' : ` of ${tenant}`
  const having = roles.length > 0 && roles.join() !== user ? ` (${roles.join(', ')})` : ''
  return <option value={user}>{`${user}${of}${having} – sees ${visible}`}</option>
}
