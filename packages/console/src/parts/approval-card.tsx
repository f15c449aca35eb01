import { Fragment, type ReactElement, useEffect, useRef, useState } from 'react'
import { linkTo } from '../address.ts'
import type { Card, CardState } from '../approval-queue.ts'
import { useVerdicts } from '../approval-verdicts.ts'
import { count, formatIn, toSentence } from '../format.ts'
import { useChoices } from '../hooks.ts'
import type { ApprovalRow } from '../wire.ts'
import { ApprovalBadge } from './badges.tsx'
import { Comparison } from './comparison.tsx'
import { Drawer } from './drawer.tsx'
import { Edited } from './edit-dialog.tsx'
import { Exact, JsonBlock, Phrase } from './exact.tsx'
import { ApprovalTrail } from './trail.tsx'
import { isOpenTo, OneVerdict, RevokeButton, UndoButton, VerdictForm } from './verdict.tsx'
import { TenantTag, useManyTenants } from './tenant-tag.tsx'
import { Ago } from './when.tsx'

interface ApprovalDrawerProps {
  /** The cards of equal requests, oldest first. Absent: no such request waits. */
  readonly cards: readonly Card[] | undefined
  readonly nowMs: number
}

/** Shows the open request: beside the list, or over it. */
export function ApprovalDrawer({ cards, nowMs }: ApprovalDrawerProps): ReactElement {
  const open = useChoices()('id')
  const { id = open, tool, user } = cards?.[0]?.approval ?? {}
  return (
    <Drawer
      id={id}
      choice="id"
      title={
        tool === undefined ? (
          'A request'
        ) : (
          <a href={linkTo('tool', { id: tool, as: user ?? '' })}>
            <Exact text={tool} className="id" />
          </a>
        )
      }
      what="request"
      row={cards ?? []}
      isUnknown={false}
    >
      {(own) => (own.length === 0 ? <Elsewhere id={id} /> : <ApprovalCard cards={own} nowMs={nowMs} />)}
    </Drawer>
  )
}

/** Leads to the page of a request that is not in the list: it is decided, or not for this person to see. */
function Elsewhere({ id }: { id: string }): ReactElement {
  return (
    <div className="stack">
      <p>This request does not wait here any more.</p>
      <p>
        <a href={`/approvals/${encodeURIComponent(id)}`}>Open its page</a>, which shows how it ended, or look into the{' '}
        <a href={linkTo('approvals', { view: 'history' })}>history</a>.
      </p>
    </div>
  )
}

/**
 * Shows equal requests with everything that a person needs to decide. It keeps its place and size after the decision.
 */
function ApprovalCard({ cards, nowMs }: { cards: readonly Card[]; nowMs: number }): ReactElement | null {
  const open = cards.filter(isOpenTo)
  // The form stays as an empty space once the requests are decided.
  const [hadForm, setHadForm] = useState(open.length > 0)
  if (open.length > 0 && !hadForm) setHadForm(true)
  const [first] = cards
  if (!first) return null
  const { id, tool, input, why } = first.approval
  const isWaiting = cards.some(({ state }) => state === 'pending' || state === 'held')
  const isForeign = cards.every(({ approval }) => !approval.mayDecide)
  return (
    <div className={isWaiting ? 'stack approval' : 'stack approval over'} data-id={id}>
      <div className="approval-head">
        {cards.length === 1 ? <Asked card={first} nowMs={nowMs} /> : <AskedByAll cards={cards} nowMs={nowMs} />}
        {why !== undefined && <Why why={why} />}
        {cards.length === 1 && <Needs approval={first.approval} />}
      </div>
      {cards.length === 1 && <ApprovalTrail approval={first.approval} />}
      <p className="label">The input</p>
      <JsonBlock value={input} label={`The input of ${tool}`} />
      {cards.length === 1 && <Edited approval={first.approval} />}
      {cards.length === 1 && <ComparisonPlace card={first} />}
      <div className="verdict-place">
        {hadForm && <VerdictForm open={open.map(({ approval }) => approval)} what={tool} isWhole />}
        {isForeign && isWaiting && <Deciders approval={first.approval} />}
        {open.length === 0 && !(isForeign && isWaiting) && (
          <Result key={first.state} cards={cards} nowMs={nowMs} tool={tool} />
        )}
      </div>
    </div>
  )
}

/** Shows the reason as a sentence, and the text of the rule below it to those who may read it. */
function Why({ why }: { why: string }): ReactElement {
  const at = why.search(/(?<=\S\s)policy "/)
  const [told, rule] = at < 0 ? [why, ''] : [why.slice(0, at).trim(), why.slice(at)]
  return (
    <div className="why">
      <span className="label">Why you are asked</span>
      <div>
        <Exact text={toSentence(told)} />
        {rule !== '' && (
          <p className="rule">
            <Exact text={toSentence(rule)} />
          </p>
        )}
      </div>
    </div>
  )
}

/** Shows who has approved so far, and who is still needed. */
function Needs({ approval: { needs } }: { approval: ApprovalRow }): ReactElement | null {
  if (!needs) return null
  const { count: wanted, roles = {}, approvedBy } = needs
  const places = Object.entries(roles).map(([role, n]) => `${n} with the role ${role}`)
  return (
    <div className="needs">
      <span className="label">Approvals</span>
      <span>
        {approvedBy.length} of {wanted}
        {places.length > 0 && <Exact text={` (${places.join(', ')})`} />}
        {approvedBy.map(({ by, atMs, reason }) => (
          <span key={by} className="sub">
            <Exact text={by} className="strong" /> approved <Ago ms={atMs} />
            <Phrase before=": “" text={reason} after="”" />
          </span>
        ))}
      </span>
    </div>
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
            {isOpenTo(card) && <OneVerdict approval={card.approval} />}
            <TakeBack card={card} />
            {card.state === 'held' && <UndoButton ids={[card.approval.id]} tool={card.approval.tool} isSmall />}
            {card.state === 'approved' && card.approval.mayDecide && <RevokeButton approval={card.approval} />}
            <StateOf state={card.state} />
            <Needs approval={card.approval} />
            <ApprovalTrail approval={card.approval} />
            <Edited approval={card.approval} />
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
  gone: 'It no longer waits. The history may show why.',
}

interface ResultProps {
  readonly cards: readonly Card[]
  readonly nowMs: number
  readonly tool: string
}

/** Shows the result of the requests in place of their buttons. */
function Result({ cards, nowMs, tool }: ResultProps): ReactElement {
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

/** Takes back this person's own approval of several. */
function TakeBack({ card: { state, approval } }: { card: Card }): ReactElement | null {
  if (state !== 'pending' || approval.needs?.mayTakeBack !== true) return null
  return (
    <>
      <span>You have approved it. It waits for others.</span>
      <RevokeButton approval={approval} label="Take back" />
    </>
  )
}

function OneResult({ card }: { card: Card | undefined }): ReactElement | null {
  if (!card) return null
  if (card.state === 'pending') return <TakeBack card={card} />
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
