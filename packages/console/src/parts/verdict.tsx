import { type ReactElement, type RefCallback, useEffect, useState } from 'react'
import type { Card } from '../approval-queue.ts'
import { useVerdicts, verdicts } from '../approval-verdicts.ts'
import { useStillButtons } from '../hooks.ts'
import type { ApprovalRow } from '../wire.ts'
import { announce } from './announcer.tsx'
import { EditButton } from './edit-dialog.tsx'
import { Field } from './form.tsx'
import { GrantButton } from './grant-dialog.tsx'

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

/** Whether a request waits for this person. Who has approved waits for others. */
export function isOpenTo({ state, approval: { mayDecide, needs } }: Card): boolean {
  return state === 'pending' && mayDecide && needs?.mayTakeBack !== true
}

interface VerdictFormProps {
  /** The requests that this person decides together. If empty, the form only keeps its space. */
  readonly open: readonly ApprovalRow[]
  /** What is decided, for screen readers: the tool, or `selected`. */
  readonly what: string
  /** Whether it also offers what is for one request only: to grant equal calls, and to change the input. */
  readonly isWhole?: boolean
  /** Called after a press. */
  readonly onDone?: () => void
}

/** A form to approve or reject, with a reason. */
export function VerdictForm({ open, what, isWhole = false, onDone }: VerdictFormProps): ReactElement {
  const [reason, setReason] = useState('')
  const { ref, isStill, note, press } = useStillPress()
  const { sending, problems } = useVerdicts()
  const isOver = open.length === 0
  const isOff = !isStill || open.some((one) => sending.has(one.id))
  return (
    <div className="verdict" inert={isOver}>
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
            onClick={() =>
              press(() => {
                verdicts[decision](open, reason)
                onDone?.()
              })
            }
          >
            {label}
            {open.length > 1 && ` all ${open.length}`}
            <span className="unseen"> {what}</span>
          </button>
        ))}
        {note !== '' && <p className="moved-note">{note}</p>}
      </div>
      {isWhole && <More open={open} reason={reason} />}
      <Problems texts={open.flatMap((one) => problems.get(one.id) ?? [])} />
    </div>
  )
}

/** What a person may do with a request besides approving or rejecting it as it is. */
function More({ open, reason }: { open: readonly ApprovalRow[]; reason: string }): ReactElement | null {
  const [one] = open
  const granting = open.find(({ mayGrant }) => mayGrant !== undefined)
  const isEditable = one?.mayEdit === true && open.length === 1
  if (!granting && !isEditable) return null
  return (
    <div className="row loose more-verdicts">
      {granting?.mayGrant && <GrantButton approval={granting} may={granting.mayGrant} reason={reason} />}
      {isEditable && <EditButton approval={one} reason={reason} />}
    </div>
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

interface RevokeButtonProps {
  readonly approval: ApprovalRow
  /** Default: `Revoke`. */
  readonly label?: string
}

/** Revokes an approval that no call has used yet, or takes back one's own of several. */
export function RevokeButton({ approval, label = 'Revoke' }: RevokeButtonProps): ReactElement {
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
        {label}
        <span className="unseen"> the approval of {approval.tool}</span>
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
