import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, type RefCallback, useEffect, useRef, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { useArming } from '../hooks.ts'
import type { Approval, ApprovalRow, ApprovalVerdictBody } from '../wire.ts'
import { announce } from './announcer.tsx'

type Decision = ApprovalVerdictBody['decision']
type OnDecided = (approval: Approval) => void

const MOVED = 'The page has just moved. Nothing was sent: press again.'
const SAID: Readonly<Record<Decision, string>> = { approve: 'Approved', reject: 'Rejected', revoke: 'Revoked' }

interface Verdict {
  /** For the element around the buttons. */
  readonly ref: RefCallback<Element>
  /** Whether the buttons would do nothing now. */
  readonly isOff: boolean
  /** Why the last press did nothing, or empty. */
  readonly note: string
  readonly error: ApiError | null
  decide(decision: Decision, reason?: string): void
}

/** Sends one decision about an approval, and only from buttons that stand still. */
function useVerdict({ id, tool }: ApprovalRow, onDecided: OnDecided | undefined): Verdict {
  const client = useQueryClient()
  const [note, setNote] = useNote()
  const { ref, isArmed, check } = useArming()
  // The mutation shows its state a moment later, and a second click may come before that.
  const isSent = useRef(false)
  const verdict = useMutation<Approval, ApiError, ApprovalVerdictBody>({
    mutationFn: (body) => postJson(`/api/approvals/${encodeURIComponent(id)}`, body),
    onSuccess(decided, { decision }) {
      announce(`${SAID[decision]}: ${tool}`)
      onDecided?.(decided)
    },
    onError() {
      isSent.current = false
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  })
  return {
    ref,
    isOff: !isArmed || verdict.isPending || verdict.isSuccess,
    note,
    error: verdict.error,
    decide(decision, reason = '') {
      if (isSent.current) return
      if (check()) {
        isSent.current = true
        setNote('')
        verdict.mutate({ decision, ...(reason.trim() === '' ? {} : { reason: reason.trim() }) })
        return
      }
      setNote(MOVED)
      announce(MOVED)
    },
  }
}

interface VerdictFormProps {
  readonly approval: ApprovalRow
  readonly id: string
  /** Whether it is only there to keep the place. */
  readonly isOver: boolean
  readonly onDecided: OnDecided
}

/** Approve or reject, with a reason. */
export function VerdictForm({ approval, id, isOver, onDecided }: VerdictFormProps): ReactElement {
  const [reason, setReason] = useState('')
  const { ref, isOff, note, error, decide } = useVerdict(approval, onDecided)
  return (
    <form className="verdict" inert={isOver} onSubmit={(event) => event.preventDefault()}>
      <div className="field grow">
        <label htmlFor={`${id}-reason`}>Reason, if you like</label>
        <input id={`${id}-reason`} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
      </div>
      <div className="verdict-buttons" ref={isOver ? null : ref}>
        {VERDICTS.map(({ decision, label }) => (
          <button
            key={decision}
            type="button"
            className={decision}
            aria-disabled={isOff}
            onClick={() => decide(decision, reason)}
          >
            {label}
            <span className="unseen"> {approval.tool}</span>
          </button>
        ))}
        {note !== '' && <p className="moved-note">{note}</p>}
      </div>
      <Problem error={error} />
    </form>
  )
}

interface RevokeButtonProps {
  readonly approval: ApprovalRow
  readonly onDecided?: OnDecided
}

/** Takes back an approval that no call has used yet. */
export function RevokeButton({ approval, onDecided }: RevokeButtonProps): ReactElement {
  const { ref, isOff, note, error, decide } = useVerdict(approval, onDecided)
  return (
    <span className="revoke" ref={ref}>
      <button type="button" className="reject" aria-disabled={isOff} onClick={() => decide('revoke')}>
        Revoke<span className="unseen"> the approval of {approval.tool}</span>
      </button>
      {note !== '' && <span className="moved-note">{note}</span>}
      <Problem error={error} />
    </span>
  )
}

function Problem({ error }: { error: ApiError | null }): ReactElement | null {
  if (!error) return null
  return (
    <span className="problem" role="alert">
      {error.message}
    </span>
  )
}

const VERDICTS = [
  { decision: 'approve', label: 'Approve' },
  { decision: 'reject', label: 'Reject' },
] as const

const NOTE_MS = 5000

/** A text that goes away by itself. */
function useNote(): readonly [string, (text: string) => void] {
  const [note, setNote] = useState('')
  useEffect(() => {
    if (note === '') return
    const timer = setTimeout(() => setNote(''), NOTE_MS)
    return () => clearTimeout(timer)
  }, [note])
  return [note, setNote]
}
