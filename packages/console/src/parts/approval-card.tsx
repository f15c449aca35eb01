import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useId, useState } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, postJson } from '../api.ts'
import { formatIn } from '../format.ts'
import type { Approval, ApprovalVerdictBody } from '../wire.ts'
import { announce } from './announcer.tsx'
import { Exact } from './exact.tsx'
import { JsonBlock } from './json-block.tsx'
import { Ago } from './when.tsx'

export interface ApprovalCardProps {
  readonly approval: Approval
  readonly nowMs: number
  /** The card is about to go, and with it what had the focus. */
  readonly onDecided: () => void
}

/** One call that waits, with all that a person needs to judge it. */
export function ApprovalCard({ approval, nowMs, onDecided }: ApprovalCardProps): ReactElement {
  const id = useId()
  const { tool, user, tenant, run, input, requestedAt, expiresAt } = approval
  return (
    <li className="approval" aria-labelledby={`${id}-title`}>
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
          <Ago ms={requestedAt} />, expires {formatIn(expiresAt, nowMs)}
        </p>
      </div>
      <p className="label">The input</p>
      <JsonBlock value={input} label={`The input of ${tool}`} />
      <VerdictForm approval={approval} id={id} onDecided={onDecided} />
    </li>
  )
}

interface VerdictFormProps {
  readonly approval: Approval
  readonly id: string
  readonly onDecided: () => void
}

function VerdictForm({ approval, id, onDecided }: VerdictFormProps): ReactElement {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const verdict = useMutation<Approval, ApiError, ApprovalVerdictBody['decision']>({
    mutationFn: (decision) =>
      postJson(`/api/approvals/${encodeURIComponent(approval.id)}`, {
        decision,
        ...(reason.trim() === '' ? {} : { reason: reason.trim() }),
      } satisfies ApprovalVerdictBody),
    onSuccess({ status, tool }) {
      announce(`${status === 'rejected' ? 'Rejected' : 'Approved'}: ${tool}`)
      onDecided()
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['approvals'] }),
  })
  const isBusy = verdict.isPending || verdict.isSuccess
  return (
    <form className="verdict" onSubmit={(event) => event.preventDefault()}>
      <div className="field grow">
        <label htmlFor={`${id}-reason`}>Reason, if you like</label>
        <input id={`${id}-reason`} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
      </div>
      <button type="button" className="approve" disabled={isBusy} onClick={() => verdict.mutate('approve')}>
        Approve<span className="unseen"> {approval.tool}</span>
      </button>
      <button type="button" className="reject" disabled={isBusy} onClick={() => verdict.mutate('reject')}>
        Reject<span className="unseen"> {approval.tool}</span>
      </button>
      {verdict.error && (
        <p className="problem" role="alert">
          {verdict.error.message}
        </p>
      )}
    </form>
  )
}
