import { Fragment, type ReactElement, useEffect, useId, useRef, type RefCallback, useState } from 'react'
import { linkTo } from '../address.ts'
import type { Card, CardState } from '../approval-queue.ts'
import { formatIn } from '../format.ts'
import type { Approval, ApprovalRow, ApprovalVerdictBody } from '../wire.ts'
import { ApprovalBadge } from './badges.tsx'
import { Exact, JsonBlock } from './exact.tsx'
import { Ago } from './when.tsx'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ApiError, postJson } from '../api.ts'
import { useStillButtons } from '../hooks.ts'
import { announce } from './announcer.tsx'

export interface ApprovalCardProps {
  readonly card: Card
  readonly nowMs: number
  readonly onDecided: (approval: Approval) => void
}

/** A request with everything a person needs to decide it. It keeps its place and size after the decision. */
export function ApprovalCard({ card, nowMs, onDecided }: ApprovalCardProps): ReactElement {
  const id = useId()
  const { approval, state } = card
  const { tool, user, tenant, keyMadeBy, run, input, requestedAt, expiresAt } = approval
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
          {keyMadeBy !== undefined && (
            <>
              , with a key made by <Exact text={keyMadeBy} className="strong" />
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
        {approval.mayDecide && (
          <VerdictForm approval={approval} id={id} isOver={state !== 'pending'} onDecided={onDecided} />
        )}
        {!approval.mayDecide && state === 'pending' && <Deciders approval={approval} />}
        {state !== 'pending' && <Result key={state} card={card} onDecided={onDecided} />}
      </div>
    </li>
  )
}

const ENDS: Readonly<Record<Exclude<CardState, 'pending'>, string>> = {
  approved: 'The call can run once.',
  consumed: 'The call has run.',
  rejected: 'The call will not run.',
  revoked: 'The approval was revoked. The call will not run.',
  expired: 'Nobody decided in time. The agent has to ask again.',
  gone: 'It no longer waits. The history below may show why.',
}

/** The result of the request, in the place of its buttons. */
function Result({ card: { approval, state }, onDecided }: Omit<ApprovalCardProps, 'nowMs'>): ReactElement | null {
  const line = useRef<HTMLParagraphElement>(null)
  // The pressed button is gone, so the focus moves here.
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
      {state === 'approved' && approval.mayDecide && <RevokeButton approval={approval} onDecided={onDecided} />}
    </p>
  )
}

/** Who may decide the request, for a person who may not. */
function Deciders({ approval: { deciders, tenant } }: { approval: ApprovalRow }): ReactElement {
  return (
    <p className="deciders">
      <strong>You may not decide this request.</strong>{' '}
      {deciders.length > 0 ? (
        <>
          The console key of{' '}
          {deciders.map((user, i) => (
            <Fragment key={user}>
              {i > 0 && (i === deciders.length - 1 ? ' or ' : ', ')}
              <Exact text={user} className="strong" />
            </Fragment>
          ))}{' '}
          can.
        </>
      ) : (
        <>
          No console key can: it needs the role <code>approver</code> and{' '}
          {tenant === undefined ? (
            'no tenant'
          ) : (
            <>
              the tenant <Exact text={tenant} className="strong" />
            </>
          )}
          .
        </>
      )}
    </p>
  )
}

type Decision = ApprovalVerdictBody['decision']
type OnDecided = (approval: Approval) => void

const MOVED = 'The page has just moved. Nothing was sent: press again.'
const ANNOUNCED: Readonly<Record<Decision, string>> = { approve: 'Approved', reject: 'Rejected', revoke: 'Revoked' }

interface Verdict {
  /** For the element around the buttons. */
  readonly ref: RefCallback<Element>
  /** Whether the buttons do nothing now. */
  readonly isOff: boolean
  /** Why the last press did nothing, or empty. */
  readonly note: string
  readonly error: ApiError | null
  decide(decision: Decision, reason?: string): void
}

/** Sends one decision about an approval, only from buttons that have not just moved. */
function useVerdict({ id, tool }: ApprovalRow, onDecided: OnDecided | undefined): Verdict {
  const client = useQueryClient()
  const [note, setNote] = useNote()
  const { ref, isStill, check } = useStillButtons()
  // The mutation's state updates later, and a second click may come before that.
  const isSent = useRef(false)
  const verdict = useMutation<Approval, ApiError, ApprovalVerdictBody>({
    mutationFn: (body) => postJson(`/api/approvals/${encodeURIComponent(id)}`, body),
    onSuccess(decided, { decision }) {
      announce(`${ANNOUNCED[decision]}: ${tool}`)
      onDecided?.(decided)
    },
    onError() {
      isSent.current = false
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  })
  return {
    ref,
    isOff: !isStill || verdict.isPending || verdict.isSuccess,
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
  /** Whether it only keeps the place of the buttons. */
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
        <label htmlFor={`${id}-reason`}>Reason (optional)</label>
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

/** Revokes an approval that no call has used yet. */
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
