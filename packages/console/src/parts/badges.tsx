import type { ReactElement } from 'react'
import { lookOf } from '../audit-feed.ts'
import { type Look, OUTCOME_LOOKS, type State, STATE_LOOKS } from '../states.ts'
import type { ApprovalStatus, AuditRecord, OutcomeWord, ServerRow } from '../wire.ts'

/** A word with a colour and a shape that repeat it: neither is ever alone. */
export function Badge({ word, look }: { word: string; look: Look }): ReactElement {
  return <span className={`badge ${look}`}>{word}</span>
}

/** One of the four words. */
export function OutcomeBadge({ outcome }: { outcome: OutcomeWord }): ReactElement {
  return <Badge word={outcome} look={OUTCOME_LOOKS[outcome]} />
}

export function StateBadge({ state }: { state: State }): ReactElement {
  return <Badge word={state} look={STATE_LOOKS[state]} />
}

const SERVER_LOOKS: Readonly<Record<ServerRow['status'], Look>> = {
  ready: 'good',
  starting: 'wait',
  down: 'bad',
  stopped: 'plain',
}

export function ServerBadge({ status }: Pick<ServerRow, 'status'>): ReactElement {
  return <Badge word={status} look={SERVER_LOOKS[status]} />
}

export function EventBadge({ record }: { record: AuditRecord }): ReactElement {
  return <Badge word={record.event} look={lookOf(record)} />
}

const APPROVAL_LOOKS: Readonly<Record<ApprovalStatus, Look>> = {
  pending: 'ask',
  approved: 'good',
  rejected: 'bad',
  revoked: 'bad',
  expired: 'plain',
  consumed: 'good',
}

export function ApprovalBadge({ status }: { status: ApprovalStatus }): ReactElement {
  return <Badge word={status === 'consumed' ? 'approved, used' : status} look={APPROVAL_LOOKS[status]} />
}
