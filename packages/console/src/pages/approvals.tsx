import { useInfiniteQuery, type UseQueryResult } from '@tanstack/react-query'
import { type ReactElement, useId, useRef } from 'react'
import { type ApiError, getJson } from '../api.ts'
import { formatTime } from '../format.ts'
import { type Choose, useAddress, useApi, useLiveState, useNow } from '../hooks.ts'
import { ApprovalCard } from '../parts/approval-card.tsx'
import { ApprovalBadge } from '../parts/badges.tsx'
import { Exact } from '../parts/exact.tsx'
import { JsonBlock } from '../parts/json-block.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import type { Approval, ApprovalsBody } from '../wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000
const PAGE = 50
const DECIDED = ['approved', 'consumed', 'rejected', 'expired']

/** What waits, for the page and for the count in the header. */
export function usePending(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi({
    key: ['approvals', 'pending'],
    path: '/api/approvals',
    parameters: { status: 'pending', limit: MAX_PENDING },
    everyMs: REFRESH_MS,
  })
}

/** What waits for a person, with the input, and what was decided before. */
export function ApprovalsPage(): ReactElement {
  const { data, error, refetch } = usePending()
  const [{ choices }, choose] = useAddress()
  return (
    <>
      <div className="page-head">
        <h1>Approvals</h1>
        <p>
          Calls that wait for a person. What you approve is this input, once; of what looks like a secret, a mark is
          shown.
        </p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the approvals" />}
      {data && <Pending approvals={data.approvals} />}
      {data && <History status={choices.get('status') ?? ''} choose={choose} />}
    </>
  )
}

function Pending({ approvals }: { approvals: readonly Approval[] }): ReactElement {
  const nowMs = useNow(1000)
  const heading = useRef<HTMLHeadingElement>(null)
  const pending = approvals.filter(({ status, expiresAt }) => status === 'pending' && expiresAt > nowMs)
  return (
    <section aria-labelledby="waiting-title">
      <h2 id="waiting-title" ref={heading} tabIndex={-1}>
        Waiting <span className="dim">{pending.length}</span>
      </h2>
      {pending.length === 0 && (
        <Empty title="Nothing waits for you">
          <p>
            A call that the policy says to <code>ask</code> about shows here, and goes on when you approve it.
          </p>
        </Empty>
      )}
      <ul className="approvals">
        {pending.map((approval) => (
          <ApprovalCard
            key={approval.id}
            approval={approval}
            nowMs={nowMs}
            onDecided={() => heading.current?.focus()}
          />
        ))}
      </ul>
    </section>
  )
}

function History({ status, choose }: { status: string; choose: Choose }): ReactElement {
  const id = useId()
  const isOpen = useLiveState() === 'open'
  const chosen = DECIDED.includes(status) ? status : ''
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['approvals', 'history', chosen],
    queryFn: async ({ pageParam, signal }) => {
      const query = { status: chosen, limit: PAGE, before: pageParam }
      return (await getJson<ApprovalsBody>('/api/approvals', { query, signal })).approvals
    },
    initialPageParam: '',
    getNextPageParam: (page) => (page.length < PAGE ? undefined : page.at(-1)?.id),
    refetchInterval: isOpen ? 15_000 : REFRESH_MS,
  })
  const decided = (data?.pages.flat() ?? []).filter(({ status: one }) => one !== 'pending')
  return (
    <section className="decided" aria-labelledby={`${id}-title`}>
      <div className="decided-head">
        <h2 id={`${id}-title`}>History</h2>
        <div className="field">
          <label htmlFor={id} className="unseen">
            Show
          </label>
          <select id={id} value={chosen} onChange={(event) => choose({ status: event.target.value })}>
            <option value="">every verdict</option>
            {DECIDED.map((one) => (
              <option key={one} value={one}>
                {one === 'consumed' ? 'approved, used' : one}
              </option>
            ))}
          </select>
        </div>
      </div>
      {error && !data && <p className="problem">{error.message}</p>}
      {data && decided.length === 0 && <p className="dim">Nothing was decided yet.</p>}
      {decided.length > 0 && (
        <ul>
          {decided.map((approval) => (
            <Decided key={approval.id} approval={approval} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Earlier ones
        </button>
      )}
    </section>
  )
}

function Decided({ approval }: { approval: Approval }): ReactElement {
  const { status, tool, user, decidedAt, decidedBy, reason, requestedAt } = approval
  const nowMs = Date.now()
  return (
    <li>
      <details>
        <summary>
          <ApprovalBadge status={status} />
          <Exact text={tool} className="id" />
          {user !== undefined && (
            <span>
              for <Exact text={user} />
            </span>
          )}
          <span className="dim">
            {decidedBy !== undefined && (
              <>
                by <Exact text={decidedBy} />{' '}
              </>
            )}
            {formatTime(decidedAt ?? requestedAt, nowMs)}
          </span>
          {reason !== undefined && reason !== '' && (
            <span>
              “<Exact text={reason} />”
            </span>
          )}
        </summary>
        <JsonBlock value={approval.input} label={`Input of ${tool}`} />
      </details>
    </li>
  )
}
