import { type ReactElement, type RefCallback, useEffect, useState } from 'react'
import { useVerdicts, verdicts } from '../approval-verdicts.ts'
import { useStillButtons } from '../hooks.ts'
import type { ApprovalRow } from '../wire.ts'
import { announce } from './announcer.tsx'
import { Field } from './form.tsx'

const MOVED = 'The page has just moved. Nothing was sent: press again.'

interface StillPress {
  /** A ref for the element around the buttons. */
  readonly ref: RefCallback<Element>
  readonly isStill: boolean
  /** Why the last press did nothing, or an empty text. */
  readonly note: string
  press(work: () => void): void
}

/** Returns functions that run a button's action only if the button has not just moved. */
function useStillPress(): StillPress {
  const [note, setNote] = useNote()
  const { ref, isStill, check } = useStillButtons()
  return {
    ref,
    isStill,
    note,
    press(work) {
      const isNow = check()
      setNote(isNow ? '' : MOVED)
      if (isNow) work()
      else announce(MOVED)
    },
  }
}

interface VerdictFormProps {
  /** The requests that this person decides together. If empty, the form only keeps its space. */
  readonly open: readonly ApprovalRow[]
  /** The tool of the card. */
  readonly tool: string
}

/** A form to approve or reject, with a reason. */
export function VerdictForm({ open, tool }: VerdictFormProps): ReactElement {
  const [reason, setReason] = useState('')
  const { ref, isStill, note, press } = useStillPress()
  const { sending, problems } = useVerdicts()
  const isOver = open.length === 0
  const isOff = !isStill || open.some((one) => sending.has(one.id))
  return (
    <form className="verdict" inert={isOver} onSubmit={(event) => event.preventDefault()}>
      <Field label="Reason (optional)" isGrowing>
        {(id) => <input id={id} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />}
      </Field>
      <div className="verdict-buttons" ref={isOver ? null : ref}>
        {VERDICTS.map(({ decision, label, key }) => (
          <button
            key={decision}
            type="button"
            className={decision}
            aria-disabled={isOff}
            aria-keyshortcuts={key}
            onClick={() => press(() => verdicts[decision](open, reason))}
          >
            {label}
            {open.length > 1 && ` all ${open.length}`}
            <span className="unseen"> {tool}</span>
          </button>
        ))}
        {note !== '' && <p className="moved-note">{note}</p>}
      </div>
      <Problems texts={open.flatMap((one) => problems.get(one.id) ?? [])} />
    </form>
  )
}

/** Decides one of several equal requests. */
export function OneVerdict({ approval }: { approval: ApprovalRow }): ReactElement {
  const { ref, isStill, note, press } = useStillPress()
  const { sending } = useVerdicts()
  return (
    <span className="verdict-buttons" ref={ref}>
      {VERDICTS.map(({ decision, label }) => (
        <button
          key={decision}
          type="button"
          className={`${decision} small`}
          aria-disabled={!isStill || sending.has(approval.id)}
          onClick={() => press(() => verdicts[decision]([approval]))}
        >
          {label}
          <span className="unseen"> only this one</span>
        </button>
      ))}
      {note !== '' && <span className="moved-note">{note}</span>}
    </span>
  )
}

/** Revokes an approval that no call has used yet. */
export function RevokeButton({ approval }: { approval: ApprovalRow }): ReactElement {
  const { ref, isStill, note, press } = useStillPress()
  const { sending, problems } = useVerdicts()
  return (
    <span className="revoke" ref={ref}>
      <button
        type="button"
        className="reject small"
        aria-disabled={!isStill || sending.has(approval.id)}
        onClick={() => press(() => verdicts.revoke(approval))}
      >
        Revoke<span className="unseen"> the approval of {approval.tool}</span>
      </button>
      {note !== '' && <span className="moved-note">{note}</span>}
      <Problems texts={[problems.get(approval.id) ?? []].flat()} />
    </span>
  )
}

interface UndoButtonProps {
  readonly ids: readonly string[]
  readonly tool: string
  readonly isSmall?: boolean
}

/** Undoes rejections that were not sent yet. */
export function UndoButton({ ids, tool, isSmall = false }: UndoButtonProps): ReactElement {
  return (
    <button
      type="button"
      className={isSmall ? 'undo small' : 'undo'}
      aria-keyshortcuts="U"
      onClick={() => verdicts.undo(ids)}
    >
      Undo<span className="unseen"> the rejection of {tool}</span>
    </button>
  )
}

function Problems({ texts }: { texts: readonly string[] }): ReactElement | null {
  if (texts.length === 0) return null
  return (
    <span className="problem" role="alert">
      {[...new Set(texts)].join(' ')}
    </span>
  )
}

const VERDICTS = [
  { decision: 'approve', label: 'Approve', key: 'A' },
  { decision: 'reject', label: 'Reject', key: 'R' },
] as const

const NOTE_MS = 5000

/** Returns a text that disappears after a while, and its setter. */
function useNote(): readonly [string, (text: string) => void] {
  const [note, setNote] = useState('')
  useEffect(() => {
    if (note === '') return
    const timer = setTimeout(() => setNote(''), NOTE_MS)
    return () => clearTimeout(timer)
  }, [note])
  return [note, setNote]
}
