import { Fragment, type ReactElement, useEffect, useId, useRef } from 'react'
import { linkTo } from '../address.ts'
import type { Card, CardState } from '../approval-queue.ts'
import { formatIn } from '../format.ts'
import type { Approval, ApprovalRow } from '../wire.ts'
import { ApprovalBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { JsonBlock } from './json-block.tsx'
import { RevokeButton, VerdictForm } from './verdicts.tsx'
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
  revoked: 'The approval was taken back. The call will not run.',
  expired: 'Nobody decided in time. The agent has to ask again.',
  gone: 'It no longer waits. The history below may say why.',
}

/** What became of the request, in the place of its buttons. */
function Result({ card: { approval, state }, onDecided }: Omit<ApprovalCardProps, 'nowMs'>): ReactElement | null {
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
          No console key can: it takes one with the role <code>approver</code> and{' '}
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
