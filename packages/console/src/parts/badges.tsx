import type { ReactElement } from 'react'
import { toneOf } from '../audit-feed.ts'
import type { AuditRecord, OutcomeWord, ServerRow } from '../wire.ts'

/** One of the four words. The word says it; shape and colour repeat it. */
export function OutcomeBadge({ outcome }: { outcome: OutcomeWord }): ReactElement {
  return <span className={`badge ${outcome}`}>{outcome}</span>
}

const SERVER_TONES: Readonly<Record<ServerRow['status'], string>> = {
  ready: 'good',
  starting: 'wait',
  down: 'bad',
  stopped: 'plain',
}

export function ServerBadge({ status }: Pick<ServerRow, 'status'>): ReactElement {
  return <span className={`state ${SERVER_TONES[status]}`}>{status}</span>
}

export function EventBadge({ record }: { record: AuditRecord }): ReactElement {
  return <span className={`state ${toneOf(record)}`}>{record.event}</span>
}
