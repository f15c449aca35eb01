import { type ReactElement, useId } from 'react'
import { OUTCOMES } from '../tool-list.ts'
import type { CallersBody, OutcomeWord } from '../wire.ts'

type CallerRow = CallersBody['callers'][number]

export interface ToolToolbarProps {
  readonly callers: readonly CallerRow[]
  readonly as: string
  readonly words: string
  readonly outcome: string
  readonly counts: Readonly<Record<OutcomeWord, number>> | undefined
  readonly choose: (changes: Readonly<Record<string, string>>) => void
}

export function ToolToolbar({ callers, as, words, outcome, counts, choose }: ToolToolbarProps): ReactElement {
  const id = useId()
  return (
    <div className="toolbar">
      <div className="field">
        <label htmlFor={`${id}-as`}>See as</label>
        <select id={`${id}-as`} value={as} onChange={(event) => choose({ as: event.target.value })}>
          {!callers.some(({ user }) => user === as) && <option value={as}>{as} (not configured)</option>}
          <Callers label="Agents" callers={callers.filter((caller) => caller.for === 'mcp')} />
          <Callers label="People" callers={callers.filter((caller) => caller.for === 'console')} />
        </select>
      </div>
      <div className="field grow">
        <label htmlFor={`${id}-q`}>Filter</label>
        <input
          id={`${id}-q`}
          type="search"
          value={words}
          placeholder="name, tag or reason"
          spellCheck={false}
          onChange={(event) => choose({ q: event.target.value })}
        />
      </div>
      <div className="chips" role="group" aria-label="Show only">
        {OUTCOMES.map((word) => (
          <button
            key={word}
            type="button"
            className={`chip ${word}`}
            aria-pressed={outcome === word}
            onClick={() => choose({ show: outcome === word ? '' : word })}
          >
            {word} <span className="n">{counts?.[word] ?? '–'}</span>
          </button>
        ))}
      </div>
    </div>
  )
}

function Callers({ label, callers }: { label: string; callers: readonly CallerRow[] }): ReactElement | null {
  if (callers.length === 0) return null
  return (
    <optgroup label={label}>
      {callers.map(({ user, roles, visible }) => (
        <option key={user} value={user}>
          {user}
          {roles.length > 0 && roles.join() !== user && ` (${roles.join(', ')})`} – sees {visible}
        </option>
      ))}
    </optgroup>
  )
}
