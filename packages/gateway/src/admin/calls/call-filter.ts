import { type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import type { CallOutcome } from '../../model/rows.ts'

/** The fields of a record that filter calls, by the name of their parameter. */
export const CALL_FIELDS = {
  tool: 'tool',
  user: 'user_id',
  session: 'session_id',
  tenant: 'tenant',
  call: 'tool_call_id',
  run: 'run_id',
  app: 'app',
  agent: 'agent',
  actor: 'actor',
  client: 'client',
  chat: 'chat_id',
  reason: 'reason',
  clause: 'clause',
  approval: 'approval_id',
  kind: 'kind',
  model: 'model',
  trace: 'trace_id',
} as const satisfies Readonly<Record<string, keyof AuditRecord>>

/** Selects the calls that match every given field. */
export interface CallFilter extends Partial<Readonly<Record<keyof typeof CALL_FIELDS, string>>> {
  readonly outcome?: CallOutcome
  readonly since?: number
  readonly until?: number
  /** A text that occurs anywhere in the record, ignoring case. */
  readonly text?: string
  /** Selects calls that took at least this many milliseconds. */
  readonly slower?: number
}

/** Fields that the text search ignores, because they are not texts of the call. */
const NOT_SEARCHED: ReadonlySet<string> = new Set(['hash', 'prev', 'ts', 'event', 'policy', 'policy_hash'])

/** Whether the main record of a call matches. */
export function matchesCall(record: AuditRecord, filter: CallFilter): boolean {
  for (const [name, field] of Object.entries(CALL_FIELDS) as [keyof typeof CALL_FIELDS, keyof AuditRecord][])
    if (!isField(filter[name], record[field], name === 'tool')) return false
  const { outcome, since, until, text, slower } = filter
  if (outcome !== undefined && (outcomeOfRecord(record) ?? 'running') !== outcome) return false
  if (slower !== undefined && !((record.duration_ms ?? 0) >= slower)) return false
  const ms = Date.parse(record.ts)
  if ((since !== undefined && ms < since) || (until !== undefined && ms >= until)) return false
  return text === undefined || hasText(record, text.toLowerCase())
}

/** Whether a field has a value. The id of a tool may be given as a pattern, such as `files:*`. */
function isField(wanted: string | undefined, value: unknown, isTool: boolean): boolean {
  if (wanted === undefined || wanted === value) return true
  return isTool && typeof value === 'string' && isPattern(wanted) && matchesGlob(parseGlob(wanted), value)
}

/** Whether the text of a tool is a pattern, which a store cannot look up. */
export function isPattern(tool: string): boolean {
  return tool.includes('*')
}

function hasText(record: AuditRecord, text: string): boolean {
  for (const [field, value] of Object.entries(record))
    if (typeof value === 'string' && !NOT_SEARCHED.has(field) && value.toLowerCase().includes(text)) return true
  return false
}
