import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useId, useState } from 'react'
import { type ApiError, postJson } from '../api.ts'
import { toPrettyJson } from '../exact-text.ts'
import { formatIn } from '../format.ts'
import type { Approval, ApprovalVerdictBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { Ago } from './when.tsx'

/** One call that waits, with all that a person needs to judge it. */
export function ApprovalCard({ approval, nowMs }: { approval: Approval; nowMs: number }): ReactElement {
  const id = useId()
  const { tool, user, tenant, run, input, requestedAt, expiresAt } = approval
  return (
    <li className="approval" aria-labelledby={`${id}-title`}>
      <div className="approval-head">
        <h2 id={`${id}-title`}>
          <Exact text={tool} className="id" />
        </h2>
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
          <Ago ms={requestedAt} nowMs={nowMs} />, expires {formatIn(expiresAt, nowMs)}
        </p>
      </div>
      <h3 id={`${id}-input`}>The exact input</h3>
      <pre tabIndex={0} aria-labelledby={`${id}-input`} dir="ltr">
        <Exact text={toPrettyJson(input)} />
      </pre>
      <VerdictForm approval={approval} id={id} />
    </li>
  )
}

function VerdictForm({ approval, id }: { approval: Approval; id: string }): ReactElement {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const verdict = useMutation<Approval, ApiError, ApprovalVerdictBody['decision']>({
    mutationFn: (decision) =>
      postJson(`/api/approvals/${encodeURIComponent(approval.id)}`, {
        decision,
        ...(reason.trim() === '' ? {} : { reason: reason.trim() }),
      } satisfies ApprovalVerdictBody),
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
