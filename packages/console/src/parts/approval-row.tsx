import type { ReactElement } from 'react'
import type { Card } from '../approval-queue.ts'
import { useVerdicts } from '../approval-verdicts.ts'
import { count, toSentence } from '../format.ts'
import { ApprovalBadge } from './badges.tsx'
import { Opener } from './cells.tsx'
import { Exact } from './exact.tsx'
import { TenantTag, useManyTenants } from './tenant-tag.tsx'
import { isOpenTo } from './verdict.tsx'
import { Ago } from './when.tsx'

interface RequestRowProps {
  /** The cards of equal requests, oldest first. */
  readonly cards: readonly Card[]
  /** The position in the list, and the list's length, because the page has only a part of it. */
  readonly index: number
  readonly size: number
  readonly isSelected: boolean
  readonly toggle: (id: string) => void
}

/** Shows equal requests in a row, which keeps its place and height after the decision. */
export function RequestRow({ cards, index, size, isSelected, toggle }: RequestRowProps): ReactElement | null {
  const isTagged = useManyTenants()
  const { problems } = useVerdicts()
  const [first] = cards
  if (!first) return null
  const { id, tool, user, tenant, why, requestedAt, needs } = first.approval
  const users = new Set(cards.map(({ approval }) => approval.user))
  const isWaiting = cards.some(({ state }) => state === 'pending' || state === 'held')
  return (
    <li
      className={isWaiting ? 'request' : 'request over'}
      data-index={index}
      data-id={id}
      aria-setsize={size}
      aria-posinset={index + 1}
    >
      <label className="request-check">
        <input
          type="checkbox"
          checked={isSelected}
          disabled={!cards.some(isOpenTo)}
          onChange={() => toggle(id)}
          aria-keyshortcuts="X"
          aria-label={`Select ${tool}, request ${index + 1}`}
        />
      </label>
      <Opener id={id} choice="id" className="request-tool" title={tool}>
        <Exact text={tool} className="id" />
      </Opener>
      <span className="request-who">
        {users.size > 1 ? `${users.size} users` : <Exact text={user ?? 'nobody'} />}
        {isTagged && tenant !== undefined && (
          <>
            {' '}
            <TenantTag tenant={tenant} />
          </>
        )}
      </span>
      <span className="request-why dim">{why !== undefined && <Exact text={toSentence(why)} />}</span>
      <span className="request-marks">
        {cards.length > 1 && <span className="dim">{count(cards.length, 'request')}</span>}
        {needs && isWaiting && (
          <span className="badge ask">
            {needs.approvedBy.length} of {needs.count}
          </span>
        )}
        {cards.some(({ approval }) => problems.has(approval.id)) && <span className="badge bad">not done</span>}
        <Mark cards={cards} />
      </span>
      <span className="request-age dim">
        <Ago ms={requestedAt} />
      </span>
    </li>
  )
}

/** The state of equal requests that wait no more, or whose rejection can still be undone. */
function Mark({ cards }: Pick<RequestRowProps, 'cards'>): ReactElement | null {
  const states = new Set(cards.map(({ state }) => state))
  const [state] = states
  if (states.size > 1 || state === undefined || state === 'pending') return null
  if (state === 'gone') return <span className="dim">gone</span>
  return <ApprovalBadge status={state === 'held' ? 'rejected' : state} />
}
