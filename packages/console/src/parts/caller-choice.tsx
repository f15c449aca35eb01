import { type ReactElement, useId, useState } from 'react'
import type { Choose } from '../hooks.ts'
import type { CallersBody } from '../wire.ts'

type CallerRow = CallersBody['callers'][number]

export interface CallerChoiceProps {
  readonly callers: readonly CallerRow[]
  readonly as: string
  /** A caller as JSON; empty for a configured caller. */
  readonly custom: string
  readonly choose: Choose
}

/** Never a user's name, since those have no control characters. */
const OTHER = '\u0000other'

/** Chooses the caller whose view is shown: a configured caller, or any caller as JSON. */
export function CallerChoice({ callers, as, custom, choose }: CallerChoiceProps): ReactElement {
  const id = useId()
  const [isWriting, setWriting] = useState(false)
  const isOther = isWriting || custom !== ''
  return (
    <>
      <div className="field">
        <label htmlFor={id}>See as</label>
        <select
          id={id}
          value={isOther ? OTHER : as}
          onChange={({ target }) => {
            setWriting(target.value === OTHER)
            if (target.value !== OTHER) choose({ as: target.value, caller: '' })
          }}
        >
          {!isOther && !callers.some(({ user }) => user === as) && <option value={as}>{as} (not configured)</option>}
          <Callers label="Agents" callers={callers.filter((caller) => caller.for === 'mcp')} />
          <Callers label="People" callers={callers.filter((caller) => caller.for === 'console')} />
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
      className="field grow"
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

function Callers({ label, callers }: { label: string; callers: readonly CallerRow[] }): ReactElement | null {
  if (callers.length === 0) return null
  return (
    <optgroup label={label}>
      {callers.map(({ user, tenant, roles, visible }) => (
        <option key={user} value={user}>
          {user}
          {tenant !== undefined && ` of ${tenant}`}
          {roles.length > 0 && roles.join() !== user && ` (${roles.join(', ')})`} – sees {visible}
        </option>
      ))}
    </optgroup>
  )
}
