import { useInfiniteQuery, type UseQueryResult } from '@tanstack/react-query'
import { type ReactElement, useCallback, useEffect, useId, useState } from 'react'
import { type ApiError, getJson } from '../api.ts'
import { type Card, toQueue } from '../approval-queue.ts'
import { formatNumber, formatTime } from '../format.ts'
import { type Choose, useAddress, useApi, useLiveState, useNow } from '../hooks.ts'
import { live } from '../live-updates.ts'
import { announce } from '../parts/announcer.tsx'
import { ApprovalCard, RevokeButton } from '../parts/approval-card.tsx'
import { ApprovalBadge } from '../parts/badges.tsx'
import { Exact, JsonBlock } from '../parts/exact.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import type { Approval, ApprovalRow, ApprovalsBody, AuditEvent } from '../wire.ts'

const REFRESH_MS = 2000
const MAX_PENDING = 1000
const PAGE = 50
const DECIDED = ['approved', 'consumed', 'rejected', 'revoked', 'expired']

/** Fetches the waiting requests, for the page and for the count in the header. */
export function usePending(): UseQueryResult<ApprovalsBody, ApiError> {
  return useApi({
    key: ['approvals', 'pending'],
    path: '/api/approvals',
    parameters: { status: 'pending', limit: MAX_PENDING },
    everyMs: REFRESH_MS,
  })
}

/** The waiting requests with their inputs, and past decisions. */
export function ApprovalsPage(): ReactElement {
  const { data, error, refetch } = usePending()
  const [{ choices }, choose] = useAddress()
  return (
    <>
      <div className="page-head">
        <h1>Approvals</h1>
        <p>Calls that wait for a person. You approve this exact input, once. Secrets are masked.</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the approvals" />}
      {data && <Pending approvals={data.approvals} />}
      {data && <History status={choices.get('status') ?? ''} choose={choose} />}
    </>
  )
}

function Pending({ approvals }: { approvals: readonly ApprovalRow[] }): ReactElement {
  const nowMs = useNow(1000)
  const [ended, addEnded] = useEnded()
  const [shown, setShown] = useState<readonly ApprovalRow[]>([])
  const { cards, fresh } = toQueue({ shown, pending: approvals, ended, nowMs })
  // On an empty page nothing can move, so requests show at once.
  if (shown.length === 0 && fresh.length > 0) setShown(fresh)
  useEffect(() => {
    if (fresh.length > 0) announce(newRequests(fresh.length))
  }, [fresh.length])
  const waiting = cards.filter(({ state }) => state === 'pending').length
  const over = cards.length - waiting
  return (
    <section aria-labelledby="waiting-title">
      <div className="queue-bar">
        <h2 id="waiting-title" tabIndex={-1}>
          Waiting <span className="dim">{waiting + fresh.length}</span>
        </h2>
        {fresh.length > 0 && (
          <button type="button" className="main" onClick={() => setShown([...shown, ...fresh])}>
            {formatNumber(fresh.length)} new
            <span className="wide"> request{fresh.length === 1 ? '' : 's'}</span> – show
          </button>
        )}
        {over > 0 && (
          <button type="button" className="end" onClick={() => setShown(stillWaiting(cards))}>
            Clear {over}
            <span className="wide"> finished</span>
          </button>
        )}
      </div>
      {cards.length === 0 && (
        <Empty title="No call is waiting">
          <p>
            Calls to tools with the decision <code>ask</code> show here. A call can run once you approve it.
          </p>
        </Empty>
      )}
      <ul className="approvals">
        {cards.map((card) => (
          <ApprovalCard key={card.approval.id} card={card} nowMs={nowMs} onDecided={addEnded} />
        ))}
      </ul>
    </section>
  )
}

function newRequests(n: number): string {
  return `${formatNumber(n)} new request${n === 1 ? '' : 's'}`
}

function stillWaiting(cards: readonly Card[]): readonly ApprovalRow[] {
  return cards.filter(({ state }) => state === 'pending').map(({ approval }) => approval)
}

const RAN: ReadonlySet<AuditEvent> = new Set<AuditEvent>(['tool_call', 'tool_result', 'tool_abandoned'])

function withUsed(ended: ReadonlyMap<string, Approval>, id: string | undefined): ReadonlyMap<string, Approval> {
  const approval = id === undefined ? undefined : ended.get(id)
  if (approval?.status !== 'approved') return ended
  return new Map(ended).set(approval.id, { ...approval, status: 'consumed' })
}

/** Returns the decisions made while the page is open, by anyone, by approval id. */
function useEnded(): readonly [ReadonlyMap<string, Approval>, (approval: Approval) => void] {
  const [ended, setEnded] = useState<ReadonlyMap<string, Approval>>(new Map())
  const add = useCallback((approval: Approval) => setEnded((before) => new Map(before).set(approval.id, approval)), [])
  useEffect(
    () =>
      live.onMessage((message) => {
        if (message.type === 'approval' && message.approval.status !== 'pending') add(message.approval)
        // The use of an approval sends no message. The record of the call shows it.
        else if (message.type === 'audit' && RAN.has(message.record.event))
          setEnded((before) => withUsed(before, message.record.approval_id))
      }),
    [add],
  )
  return [ended, add]
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
            <option value="">all decisions</option>
            {DECIDED.map((one) => (
              <option key={one} value={one}>
                {one === 'consumed' ? 'approved, used' : one}
              </option>
            ))}
          </select>
        </div>
      </div>
      {error && !data && <p className="problem">{error.message}</p>}
      {data && decided.length === 0 && <p className="dim">No decisions yet.</p>}
      {decided.length > 0 && (
        <ul>
          {decided.map((approval) => (
            <Decided key={approval.id} approval={approval} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Older decisions
        </button>
      )}
    </section>
  )
}

function Decided({ approval }: { approval: ApprovalRow }): ReactElement {
  const { status, tool, user, decidedAt, decidedBy, reason, requestedAt } = approval
  const nowMs = Date.now()
  return (
    <li className="decided-row">
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
      {status === 'approved' && approval.mayDecide && <RevokeButton approval={approval} />}
    </li>
  )
}
