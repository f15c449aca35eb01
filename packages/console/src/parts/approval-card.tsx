import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useEffect, useId, useRef, useState } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, postJson } from '../api.ts'
import type { Card, CardState } from '../approval-queue.ts'
import { formatIn } from '../format.ts'
import { useArming } from '../hooks.ts'
import type { Approval, ApprovalVerdictBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { ApprovalBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { JsonBlock } from './json-block.tsx'
import { Ago } from './when.tsx'

export interface ApprovalCardProps {
  readonly card: Card
  readonly nowMs: number
  readonly onDecided: (approval: Approval) => void
}

/** One request with everything a person needs to decide it. Decided, it keeps its place and its size. */
export function ApprovalCard({ card, nowMs, onDecided }: ApprovalCardProps): ReactElement {
  const id = useId()
  const { approval, state } = card
  const { tool, user, tenant, run, input, requestedAt, expiresAt } = approval
  return (
    <li className={state === 'pending' ? 'approval' : 'approval over'} aria-labelledby={`${id}-title`}>
      <div className="approval-head">
        <h3 id={`${id}-title`}>
          <a href={linkTo('tool', { id: tool, as: user ?? '' })}>
            <Exact text={tool} className="id" />
          </a>
        </h3>
        <p className="dim">
          {user !== undefined && (
            <>
              for <Exact text={user} className="strong" />
            </>
          )}
          {tenant !== undefined && (
            <>
              {' '}
              of <Exact text={tenant} />
            </>
          )}
          {run !== undefined && (
            <>
              , run <Exact text={run} className="id" />
            </>
          )}
          {', asked '}
          <Ago ms={requestedAt} />
          {state === 'pending' && <>, expires {formatIn(expiresAt, nowMs)}</>}
        </p>
      </div>
      <p className="label">The input</p>
      <JsonBlock value={input} label={`The input of ${tool}`} />
      <div className="verdict-place">
        <VerdictForm approval={approval} id={id} isOver={state !== 'pending'} onDecided={onDecided} />
        {state !== 'pending' && <Result card={card} />}
      </div>
    </li>
  )
}

const ENDS: Readonly<Record<Exclude<CardState, 'pending'>, string>> = {
  approved: 'The call can run once.',
  consumed: 'The call has run.',
  rejected: 'The call will not run.',
  expired: 'Nobody decided in time. The agent has to ask again.',
  gone: 'It no longer waits. The history below may say why.',
}

/** What became of the request, in the place of its buttons. */
function Result({ card: { approval, state } }: { card: Card }): ReactElement | null {
  const line = useRef<HTMLParagraphElement>(null)
  // The pressed button is gone now, and the focus must not be lost with it.
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement?.closest('[inert]')) line.current?.focus()
  }, [])
  if (state === 'pending') return null
  const { decidedBy, reason } = approval
  return (
    <p ref={line} className="result" tabIndex={-1}>
      {state !== 'gone' && <ApprovalBadge status={state} />}
      {decidedBy !== undefined && (
        <span>
          by <Exact text={decidedBy} />
        </span>
      )}
      {reason !== undefined && reason !== '' && (
        <span>
          “<Exact text={reason} />”
        </span>
      )}
      <span className="dim">{ENDS[state]}</span>
    </p>
  )
}

interface VerdictFormProps {
  readonly approval: Approval
  readonly id: string
  /** Whether it is only there to keep the place. */
  readonly isOver: boolean
  readonly onDecided: (approval: Approval) => void
}

const MOVED = 'The page has just moved. Nothing was sent: press again.'

function VerdictForm({ approval, id, isOver, onDecided }: VerdictFormProps): ReactElement {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const [note, setNote] = useNote()
  const arming = useArming()
  const verdict = useMutation<Approval, ApiError, ApprovalVerdictBody['decision']>({
    mutationFn: (decision) =>
      postJson(`/api/approvals/${encodeURIComponent(approval.id)}`, {
        decision,
        ...(reason.trim() === '' ? {} : { reason: reason.trim() }),
      } satisfies ApprovalVerdictBody),
    onSuccess(decided) {
      announce(`${decided.status === 'rejected' ? 'Rejected' : 'Approved'}: ${decided.tool}`)
      onDecided(decided)
    },
    onError() {
      isSent.current = false
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  })
  // The mutation shows its state a moment later, and a second click may come before that.
  const isSent = useRef(false)
  const isBusy = verdict.isPending || verdict.isSuccess

  function decide(decision: ApprovalVerdictBody['decision']): void {
    if (isSent.current) return
    if (arming.check()) {
      isSent.current = true
      setNote('')
      verdict.mutate(decision)
      return
    }
    setNote(MOVED)
    announce(MOVED)
  }
  return (
    <form className="verdict" inert={isOver} onSubmit={(event) => event.preventDefault()}>
      <div className="field grow">
        <label htmlFor={`${id}-reason`}>Reason, if you like</label>
        <input id={`${id}-reason`} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
      </div>
      <div className="verdict-buttons" ref={isOver ? null : arming.ref}>
        {VERDICTS.map(({ decision, label }) => (
          <button
            key={decision}
            type="button"
            className={decision}
            aria-disabled={!arming.isArmed || isBusy}
            onClick={() => decide(decision)}
          >
            {label}
            <span className="unseen"> {approval.tool}</span>
          </button>
        ))}
        {note !== '' && <p className="moved-note">{note}</p>}
      </div>
      {verdict.error && (
        <p className="problem" role="alert">
          {verdict.error.message}
        </p>
      )}
    </form>
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
