import { canonicalize } from '../canonical.ts'
import { sha256Hex } from '../hash.ts'
import type { AuditEntry, AuditRecord } from '../ports.ts'

const MAX_TOOL_LENGTH = 256
const MAX_TEXT_LENGTH = 1024

/**
 * Gives the record that is stored and shown for an entry.
 *
 * The input becomes its hash; it has none when it has no canonical JSON. Texts are capped (the
 * tool at 256 characters, all others at 1,024), unpaired surrogates become U+FFFD, and absent
 * fields are left out. Fields are in alphabetical order, so that `JSON.stringify` of a record is
 * its RFC 8785 form. Never throws.
 *
 * @example
 * sealEntry({ event: 'tool_call', wallMs: 0, tool: 'search', tool_call_id: 'c1', … }, 1)
 * // { …, event: 'tool_call', …, seq: 1, tool: 'search', tool_call_id: 'c1', ts: '1970-01-01T00:00:00.000Z' }
 */
export function sealEntry(entry: AuditEntry, seq: number): AuditRecord {
  const record: Partial<Writable<AuditRecord>> = {}
  if (entry.agent !== undefined) record.agent = capText(entry.agent)
  if (entry.app !== undefined) record.app = capText(entry.app)
  if (entry.approval_id !== undefined) record.approval_id = capText(entry.approval_id)
  record.catalog_revision = entry.catalog_revision
  if (entry.chat_id !== undefined) record.chat_id = capText(entry.chat_id)
  if (entry.detail !== undefined) record.detail = capText(entry.detail)
  if (isFinite(entry.duration_ms)) record.duration_ms = entry.duration_ms
  if (entry.error !== undefined) record.error = capText(entry.error)
  record.event = entry.event
  const inputHash = hashInput(entry.input)
  if (inputHash !== undefined) record.input_hash = inputHash
  if (entry.limit !== undefined) record.limit = capText(entry.limit)
  if (entry.model !== undefined) record.model = capText(entry.model)
  record.policy_revision = entry.policy_revision
  if (entry.reason !== undefined) record.reason = capText(entry.reason)
  if (isFinite(entry.reset_ms)) record.reset_ms = entry.reset_ms
  if (entry.run_id !== undefined) record.run_id = capText(entry.run_id)
  record.seq = seq
  if (entry.session_id !== undefined) record.session_id = capText(entry.session_id)
  if (isFinite(entry.step)) record.step = entry.step
  if (entry.tenant !== undefined) record.tenant = capText(entry.tenant)
  if (entry.tool !== undefined) record.tool = capText(entry.tool, MAX_TOOL_LENGTH)
  if (entry.tool_call_id !== undefined) record.tool_call_id = capText(entry.tool_call_id)
  if (entry.trace_id !== undefined) record.trace_id = capText(entry.trace_id)
  record.ts = toTimestamp(entry.wallMs)
  if (entry.user_id !== undefined) record.user_id = capText(entry.user_id)
  return record as AuditRecord
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function hashInput(input: unknown): string | undefined {
  if (input === undefined) return undefined
  try {
    return sha256Hex(canonicalize(input))
  } catch {
    return undefined
  }
}

function isFinite(value: number | undefined): value is number {
  return Number.isFinite(value)
}

/** Cuts a long text and says how long it was; never cuts a character in two. */
function capText(text: string, max: number = MAX_TEXT_LENGTH): string {
  if (text.length <= max) return text.isWellFormed() ? text : text.toWellFormed()
  const marker = `… (${text.length} characters)`
  const kept = text.slice(0, max - marker.length).replace(/[\uD800-\uDBFF]$/, '')
  return kept.toWellFormed() + marker
}

let latestMs = Number.NaN
let latestTimestamp = ''

/** RFC 3339 with milliseconds; written once for all records of one millisecond. */
function toTimestamp(wallMs: number): string {
  const ms = Math.trunc(wallMs)
  if (ms !== latestMs) {
    const date = new Date(ms)
    // A clock that answers nonsense must not lose the record.
    latestTimestamp = (Number.isNaN(date.getTime()) ? new Date(0) : date).toISOString()
    latestMs = ms
  }
  return latestTimestamp
}
