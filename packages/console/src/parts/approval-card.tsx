import { Fragment, type ReactElement, type Ref, useEffect, useId, useRef, useState } from 'react'
import { linkTo } from '../address.ts'
import type { Card, CardState } from '../approval-queue.ts'
import { useVerdicts } from '../approval-verdicts.ts'
import { count, formatIn, toSentence } from '../format.ts'
import type { ApprovalRow } from '../wire.ts'
import { ApprovalBadge } from './badges.tsx'
import { Comparison } from './comparison.tsx'
import { Exact, JsonBlock, Phrase } from './exact.tsx'
import { ApprovalTrail } from './trail.tsx'
import { OneVerdict, RevokeButton, UndoButton, VerdictForm } from './verdict.tsx'
import { TenantTag, useManyTenants } from './tenant-tag.tsx'
import { Ago } from './when.tsx'

interface ApprovalCardProps {
  /** The cards of equal requests, oldest first. */
  readonly cards: readonly Card[]
  readonly nowMs: number
  /** The position in the list, and the list's length, because the page has only a part of it. */
  readonly index: number
  readonly size: number
  readonly measure: Ref<HTMLLIElement>
}

/**
 * Shows equal requests with everything that a person needs to decide. The card keeps its position and size after the
 * decision.
 */
export function ApprovalCard({ cards, nowMs, index, size, measure }: ApprovalCardProps): ReactElement | null {
  const id = useId()
  const [first] = cards
  if (!first) return null
  const { tool, user, input, why } = first.approval
  const isWaiting = cards.some(({ state }) => state === 'pending' || state === 'held')
  const open = cards.filter(({ state, approval }) => state === 'pending' && approval.mayDecide)
  const isForeign = cards.every(({ approval }) => !approval.mayDecide)
  // The form stays as an empty space once the requests are decided.
  const [hadForm, setHadForm] = useState(open.length > 0)
  if (open.length > 0 && !hadForm) setHadForm(true)
  return (
    <li
      ref={measure}
      data-index={index}
      className={isWaiting ? 'card stack approval' : 'card stack approval over'}
      aria-labelledby={`${id}-title`}
      aria-setsize={size}
      aria-posinset={index + 1}
      tabIndex={-1}
    >
      <div className="approval-head">
        <h3 id={`${id}-title`}>
          <a href={linkTo('tool', { id: tool, as: user ?? '' })}>
            <Exact text={tool} className="id" />
          </a>
        </h3>
        {cards.length === 1 ? <Asked card={first} nowMs={nowMs} /> : <AskedByAll cards={cards} nowMs={nowMs} />}
        {why !== undefined && (
          <p className="why">
            <span className="label">Why you are asked</span> <Exact text={toSentence(why)} />
          </p>
        )}
      </div>
      {cards.length === 1 && <ApprovalTrail approval={first.approval} />}
      <p className="label">The input</p>
      <JsonBlock value={input} label={`The input of ${tool}`} />
      {cards.length === 1 && <ComparisonPlace card={first} />}
      <div className="verdict-place">
        {hadForm && <VerdictForm open={open.map(({ approval }) => approval)} tool={tool} />}
        {isForeign && isWaiting && <Deciders approval={first.approval} />}
        {open.length === 0 && !(isForeign && isWaiting) && (
          <Result key={first.state} cards={cards} nowMs={nowMs} tool={tool} />
        )}
      </div>
    </li>
  )
}

/** Shows one comparison per request, because each is read for its own caller, whose file may differ. */
function ComparisonPlace({ card: { state, approval } }: { card: Card }): ReactElement | null {
  const isComparable = approval.mayCompare === true && (state === 'pending' || state === 'approved')
  const [wasComparable, setWasComparable] = useState(isComparable)
  if (isComparable && !wasComparable) setWasComparable(true)
  return wasComparable ? <Comparison approval={approval} isOver={!isComparable} /> : null
}

/** Shows the caller, the user, the run and the expiry of a request. */
function Asked({ card: { approval, state }, nowMs }: { card: Card; nowMs: number }): ReactElement {
  const { user, tenant, keyMadeBy, behind = [], run, requestedAt, expiresAt } = approval
  const isTagged = useManyTenants() && tenant !== undefined
  return (
    <p className="dim">
      <Phrase before="for " text={user} className="strong" />
      {isTagged && (
        <>
          {' '}
          <TenantTag tenant={tenant} />
        </>
      )}
      <Phrase before=", with a key made by " text={keyMadeBy} className="strong" />
      <Phrase before=", also behind it: " text={behind.join(', ')} className="strong" />
      <Phrase before=", run " text={run} className="id" />
      {', asked '}
      <Ago ms={requestedAt} />
      {state === 'pending' && <>, expires {formatIn(expiresAt, nowMs)}</>}
    </p>
  )
}

function AskedByAll({ cards, nowMs }: { cards: readonly Card[]; nowMs: number }): ReactElement {
  return (
    <details className="asked-by-all">
      <summary>
        <strong>{count(cards.length, 'equal request')}</strong>
        <span className="dim"> for {usersOf(cards)}: decided one by one</span>
      </summary>
      <ul>
        {cards.map((card) => (
          <li key={card.approval.id} className="row loose">
            <Asked card={card} nowMs={nowMs} />
            {card.state === 'pending' && card.approval.mayDecide && <OneVerdict approval={card.approval} />}
            {card.state === 'held' && <UndoButton ids={[card.approval.id]} tool={card.approval.tool} isSmall />}
            {card.state === 'approved' && card.approval.mayDecide && <RevokeButton approval={card.approval} />}
            <StateOf state={card.state} />
            <ApprovalTrail approval={card.approval} />
            <ComparisonPlace card={card} />
          </li>
        ))}
      </ul>
    </details>
  )
}

const MAX_USERS = 3

function usersOf(cards: readonly Card[]): ReactElement {
  const users = [...new Set(cards.flatMap(({ approval }) => approval.user ?? []))]
  return (
    <>
      {users.slice(0, MAX_USERS).map((user, i) => (
        <Fragment key={user}>
          {i > 0 && ', '}
          <Exact text={user} className="strong" />
        </Fragment>
      ))}
      {users.length > MAX_USERS && ` and ${count(users.length - MAX_USERS, 'other')}`}
    </>
  )
}

function StateOf({ state }: { state: CardState }): ReactElement | null {
  if (state === 'pending' || state === 'gone') return null
  return <ApprovalBadge status={state === 'held' ? 'rejected' : state} />
}

const ENDS: Readonly<Record<Exclude<CardState, 'pending' | 'held'>, string>> = {
  approved: 'The call can run once.',
  consumed: 'The call has run.',
  rejected: 'The call will not run.',
  revoked: 'The approval was revoked. The call will not run.',
  expired: 'Nobody decided in time. The agent has to ask again.',
  gone: 'It no longer waits. The history below may show why.',
}

/** Shows the result of the requests in place of their buttons. */
function Result({ cards, nowMs, tool }: Pick<ApprovalCardProps, 'cards' | 'nowMs'> & { tool: string }): ReactElement {
  const line = useRef<HTMLDivElement>(null)
  const { held } = useVerdicts()
  // The pressed button is gone, so the focus moves here.
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement?.closest('[inert]')) line.current?.focus()
  }, [])
  const undoable = cards.filter(({ state }) => state === 'held').map(({ approval }) => approval.id)
  const sentAtMs = Math.max(...undoable.map((id) => held.get(id)?.sentAtMs ?? 0))
  return (
    <div ref={line} className="row loose result" tabIndex={-1}>
      {cards.length === 1 ? <OneResult card={cards[0]} /> : <ResultOfAll cards={cards} />}
      {undoable.length > 0 && (
        <>
          <span className="dim">The agent learns of it in {Math.max(1, Math.ceil((sentAtMs - nowMs) / 1000))} s.</span>
          <UndoButton ids={undoable} tool={tool} />
        </>
      )}
    </div>
  )
}

function OneResult({ card }: { card: Card | undefined }): ReactElement | null {
  if (!card || card.state === 'pending') return null
  const { approval, state } = card
  const { decidedBy, reason } = approval
  return (
    <>
      <StateOf state={state} />
      <Phrase before="by " text={decidedBy} />
      <Phrase before="“" text={reason} after="”" />
      {state !== 'held' && <span className="dim">{ENDS[state]}</span>}
      {state === 'approved' && approval.mayDecide && <RevokeButton approval={approval} />}
    </>
  )
}

function ResultOfAll({ cards }: { cards: readonly Card[] }): ReactElement {
  const counts = new Map<CardState, number>()
  for (const { state } of cards) counts.set(state, (counts.get(state) ?? 0) + 1)
  return (
    <>
      {[...counts].map(([state, n]) => (
        <span key={state} className="state-count">
          {n} <StateOf state={state} />
          {state === 'gone' && <span className="dim">no longer wait</span>}
        </span>
      ))}
    </>
  )
}

/** Shows who may decide the request, to a person who may not. */
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
