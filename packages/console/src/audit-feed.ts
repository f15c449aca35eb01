import { CALL_LOOKS, type Look } from './states.ts'
import type { AuditEvent, AuditOutcome, AuditRecord } from './wire.ts'

/** The events of call attempts, followed by the events of the gate. */
export const EVENTS: readonly AuditEvent[] = [
  'tool_call',
  'tool_result',
  'tool_blocked',
  'tool_rate_limited',
  'tool_approval_required',
  'tool_input_required',
  'tool_abandoned',
  'policy_changed',
  'policy_recorded',
  'config_changed',
  'approval_decided',
  'grant_made',
  'grant_revoked',
  'approval_refused',
  'tool_changed',
  'tool_flagged',
  'tool_accepted',
  'group_changed',
  'server_changed',
  'server_asked',
  'connection_made',
  'connection_ended',
  'run_started',
  'run_ended',
  'login_failed',
  'login_ended',
  'halt_set',
  'halt_released',
  'audit_opened',
  'audit_closed',
  'audit_dropped',
  'audit_pruned',
  'audit_restored',
  'inputs_pruned',
  'input_opened',
]

export const AUDIT_OUTCOMES: readonly AuditOutcome[] = [
  'done',
  'failed',
  'refused',
  'limited',
  'waiting',
  'input_required',
  'abandoned',
]

/** Returns the outcome of an attempt, or `undefined` for a record that does not end one. */
export function outcomeOf({
  event,
  error,
  is_error: isError,
}: Pick<AuditRecord, 'event' | 'error' | 'is_error'>): AuditOutcome | undefined {
  switch (event) {
    case 'tool_result':
      return error === undefined && isError !== true ? 'done' : 'failed'
    case 'tool_blocked':
      return 'refused'
    case 'tool_rate_limited':
      return 'limited'
    case 'tool_approval_required':
      return 'waiting'
    case 'tool_input_required':
      return 'input_required'
    case 'tool_abandoned':
      return 'abandoned'
    default:
      return undefined
  }
}

/** Returns the look of an event. */
export function lookOf(record: AuditRecord): Look {
  const outcome = outcomeOf(record)
  if (outcome !== undefined) return CALL_LOOKS[outcome]
  if (record.event === 'halt_set' || record.event === 'tool_flagged' || record.event === 'audit_dropped') return 'bad'
  if (CHANGES.has(record.event)) return CHANGE_LOOKS.get(record.reason ?? '') ?? 'plain'
  return record.event === 'tool_changed' ? 'ask' : 'plain'
}

const CHANGE_LOOKS: ReadonlyMap<string, Look> = new Map([
  ['available', 'good'],
  ['ready', 'good'],
  ['unavailable', 'wait'],
  ['down', 'bad'],
])

export const FILTER_FIELDS = ['event', 'outcome', 'tool', 'user', 'session', 'call'] as const

/** Selects the records that match all fields that are not empty. */
export type RecordFilter = Readonly<Record<(typeof FILTER_FIELDS)[number], string>>

/** Returns whether a record from the socket matches, by the same rules as in the gateway. */
export function matchesFilter(record: AuditRecord, filter: RecordFilter): boolean {
  return (
    holds(filter.event, record.event) &&
    holds(filter.outcome, outcomeOf(record)) &&
    holds(filter.tool, record.tool) &&
    holds(filter.user, record.user_id) &&
    holds(filter.session, record.session_id) &&
    holds(filter.call, record.tool_call_id)
  )
}

/** Returns one line about why a call ended as it did, or an empty text. */
export function explainRecord(record: AuditRecord): string {
  const { event, reason, detail, error, limit, reset_ms: resetMs } = record
  if (CHANGES.has(event)) return explainChange(detail ?? '', reason ?? '')
  const wait = resetMs === undefined ? '' : `, free again in ${Math.ceil(resetMs / 1000)} s`
  const parts = [detail, limit === undefined ? undefined : `limit ${limit}${wait}`, error]
  const words = parts.filter((part) => part !== undefined && part !== '').join(' · ')
  return words === '' ? (reason ?? '') : words
}

const CHANGES: ReadonlySet<AuditEvent> = new Set<AuditEvent>(['group_changed', 'server_changed'])

/** Explains a change. The record's reason is the new state. Its detail is the name, with the cause after a colon. */
function explainChange(detail: string, state: string): string {
  const colon = detail.indexOf(': ')
  const name = colon === -1 ? detail : detail.slice(0, colon)
  const cause = colon === -1 ? '' : detail.slice(colon)
  return `${name} became ${state}${cause}`
}

/** Returns the number of the latest records that are newer than the displayed ones. Both lists are newest first. */
export function countNewer(held: readonly AuditRecord[], latest: readonly AuditRecord[]): number {
  const newest = held[0]?.seq ?? 0
  let from = 0
  let to = latest.length
  while (from < to) {
    const middle = (from + to) >> 1
    if ((latest[middle]?.seq ?? 0) > newest) from = middle + 1
    else to = middle
  }
  return from
}

/** Merges records with the held ones: newest first, without duplicates, and at most `max`. */
export function mergeNewer(
  held: readonly AuditRecord[],
  incoming: readonly AuditRecord[],
  max: number,
): readonly AuditRecord[] {
  const newest = held[0]?.seq ?? 0
  const newer = incoming.filter(({ seq }) => seq > newest).toSorted((a, b) => b.seq - a.seq)
  const unique = newer.filter(({ seq }, i) => seq !== newer[i - 1]?.seq)
  return unique.length === 0 ? held : [...unique, ...held].slice(0, max)
}

function holds(wanted: string, actual: string | undefined): boolean {
  return wanted === '' || wanted === actual
}
