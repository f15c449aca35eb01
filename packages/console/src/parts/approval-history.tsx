import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useId } from 'react'
import { getJson } from '../api.ts'
import { choose, useChoices, useLiveState } from '../hooks.ts'
import type { ApprovalRow, ApprovalsBody, ApprovalStatus } from '../wire.ts'
import { ApprovalBadge, wordOfApproval } from './badges.tsx'
import { Edited } from './edit-dialog.tsx'
import { Exact, JsonBlock, Phrase } from './exact.tsx'
import { Select } from './form.tsx'
import { RevokeButton } from './verdict.tsx'
import { At } from './when.tsx'

const REFRESH_MS = 2000
const SELDOM_MS = 15_000
const PAGE = 50
const DECIDED: readonly ApprovalStatus[] = ['approved', 'consumed', 'rejected', 'revoked', 'expired']

/** Shows past decisions, newest first. */
export function History(): ReactElement {
  const id = useId()
  const status = useChoices()('status')
  const isOpen = useLiveState() === 'open'
  const chosen = DECIDED.find((one) => one === status) ?? ''
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['approvals', 'history', chosen],
    queryFn: async ({ pageParam, signal }) => {
      const query = { status: chosen, limit: PAGE, before: pageParam }
      return (await getJson<ApprovalsBody>('/api/approvals', { query, signal })).approvals
    },
    initialPageParam: '',
    getNextPageParam: (page) => (page.length < PAGE ? undefined : page.at(-1)?.id),
    refetchInterval: isOpen ? SELDOM_MS : REFRESH_MS,
  })
  const decided = (data?.pages.flat() ?? []).filter(({ status: one }) => one !== 'pending')
  return (
    <section className="decided" aria-labelledby={`${id}-title`}>
      <div className="decided-head">
        <h2 id={`${id}-title`}>History</h2>
        <Select
          label="Show"
          isUnseen
          options={[['', 'all decisions'], ...DECIDED.map((one) => [one, wordOfApproval(one)] as const)]}
          value={chosen}
          apply={(to) => choose({ status: to })}
        />
      </div>
      {error && !data && <p className="problem">{error.message}</p>}
      {data && decided.length === 0 && <p className="dim">No decisions yet.</p>}
      {decided.length > 0 && (
        <ul className="card">
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
  return (
    <li className="decided-row">
      <details>
        <summary>
          <ApprovalBadge status={status} />
          <Exact text={tool} className="id" />
          <Phrase before="for " text={user} />
          <span className="dim">
            <Phrase before="by " text={decidedBy} after=" " />
            <At at={decidedAt ?? requestedAt} />
          </span>
          <Phrase before="“" text={reason} after="”" />
        </summary>
        <JsonBlock value={approval.input} label={`Input of ${tool}`} />
        <Edited approval={approval} />
      </details>
      {status === 'approved' && approval.mayDecide && <RevokeButton approval={approval} />}
    </li>
  )
}
