import type { AuditEvent, AuditRecord } from './wire.ts'

export const EVENTS: readonly AuditEvent[] = [
  'tool_call',
  'tool_result',
  'tool_blocked',
  'tool_rate_limited',
  'tool_approval_required',
  'tool_abandoned',
]

/** What an event is coloured like. */
export type Tone = 'plain' | 'good' | 'bad' | 'wait' | 'ask'

export function toneOf({ event, error }: AuditRecord): Tone {
  if (event === 'tool_call') return 'plain'
  if (event === 'tool_result') return error === undefined ? 'good' : 'bad'
  if (event === 'tool_approval_required') return 'ask'
  return event === 'tool_rate_limited' ? 'wait' : 'bad'
}

/** How many of the latest records are newer than those that are held on the screen. */
export function countNewer(held: readonly AuditRecord[], latest: readonly AuditRecord[]): number {
  const newest = held[0]?.seq ?? 0
  return latest.filter(({ seq }) => seq > newest).length
}

/** Why a call ended as it did, in one line; empty where there is nothing to say. */
export function explainRecord(record: AuditRecord): string {
  const { reason, detail, error, limit, reset_ms: resetMs } = record
  const wait = resetMs === undefined ? '' : `, free again in ${Math.ceil(resetMs / 1000)} s`
  const parts = [detail, limit === undefined ? undefined : `limit ${limit}${wait}`, error]
  const words = parts.filter((part) => part !== undefined && part !== '').join(' · ')
  return words === '' ? (reason ?? '') : words
}
