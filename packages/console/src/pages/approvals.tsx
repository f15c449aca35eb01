import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import type { ApiError } from '../api.ts'
import { formatTime } from '../format.ts'
import { useApi, useNow } from '../hooks.ts'
import { ApprovalCard } from '../parts/approval-card.tsx'
import { Exact } from '../parts/exact.tsx'
import { Empty, Failed, Loading, Stale } from '../parts/panels.tsx'
import type { Approval, ApprovalsBody } from '../wire.ts'

const REFRESH_MS = 2000
const MAX_DECIDED = 20

/** The approvals, for the page and for the count in the header. */
export function useApprovals(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi({ key: ['approvals'], path: '/api/approvals', everyMs: REFRESH_MS })
}

/** What waits for a person, with the exact input, and what was decided lately. */
export function ApprovalsPage(): ReactElement {
  const { data, error, refetch, dataUpdatedAt } = useApprovals()
  const nowMs = useNow(1000)
  return (
    <>
      <div className="page-head">
        <h1>Approvals</h1>
        <p>Calls that wait for a person. What you approve is this exact input, once.</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {error && data && <Stale error={error} sinceMs={dataUpdatedAt} />}
      {!data && !error && <Loading what="the approvals" />}
      {data && <Lists approvals={data.approvals} nowMs={nowMs} />}
    </>
  )
}

function Lists({ approvals, nowMs }: { approvals: readonly Approval[]; nowMs: number }): ReactElement {
  const pending = approvals.filter(({ status, expiresAt }) => status === 'pending' && expiresAt > nowMs)
  const decided = approvals.filter((approval) => !pending.includes(approval)).slice(0, MAX_DECIDED)
  return (
    <>
      <section aria-label="Waiting">
        {pending.length === 0 && (
          <Empty title="Nothing waits for you">
            <p>
              A call that the policy says to <code>ask</code> about shows here, and goes on when you approve it.
            </p>
          </Empty>
        )}
        <ul className="approvals">
          {pending.map((approval) => (
            <ApprovalCard key={approval.id} approval={approval} nowMs={nowMs} />
          ))}
        </ul>
      </section>
      {decided.length > 0 && (
        <section className="decided" aria-labelledby="decided-title">
          <h2 id="decided-title">Lately</h2>
          <ul>
            {decided.map((approval) => (
              <Decided key={approval.id} approval={approval} nowMs={nowMs} />
            ))}
          </ul>
        </section>
      )}
    </>
  )
}

const TONES: Readonly<Record<Approval['status'], string>> = {
  pending: 'wait',
  approved: 'good',
  rejected: 'bad',
  expired: 'plain',
  consumed: 'good',
}

function Decided({ approval, nowMs }: { approval: Approval; nowMs: number }): ReactElement {
  const { status, tool, user, decidedAt, decidedBy, reason } = approval
  const shown = status === 'pending' ? 'expired' : status
  return (
    <li>
      <span className={`state ${TONES[shown]}`}>{shown === 'consumed' ? 'approved, used' : shown}</span>
      <span>
        <Exact text={tool} className="id" />{' '}
        {user !== undefined && (
          <>
            for <Exact text={user} />
          </>
        )}
      </span>
      <span className="dim">
        {decidedBy !== undefined && (
          <>
            by <Exact text={decidedBy} />{' '}
          </>
        )}
        {decidedAt !== undefined && `at ${formatTime(decidedAt, nowMs)}`}
      </span>
      {reason !== undefined && reason !== '' && (
        <span className="whole">
          “<Exact text={reason} />”
        </span>
      )}
    </li>
  )
}
