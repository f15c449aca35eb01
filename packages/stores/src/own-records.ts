import { type AuditEntry, type AuditEvent, type AuditRecord, TERMINAL_EVENTS } from '@toolgate/core/audit'
import { SOLE_WRITER } from '@toolgate/core/audit'

/** Calls with a record of their beginning but none of their end. */
export interface OpenCalls<T = AuditEntry> {
  note(entry: T): void
  /** Removes a call whose entry was not stored. */
  forget(entry: T): void
  list(): readonly T[]
}

/**
 * The events that end a call. Other terminal events end an attempt before its call, whose id another call may share.
 */
export const ENDS_OF_CALLS: ReadonlySet<AuditEvent> = new Set(
  [...TERMINAL_EVENTS].filter((event) => event !== 'tool_rate_limited' && event !== 'tool_approval_required'),
)

interface TrackedCall<T> {
  /** The beginning of the call. It is `undefined` once the call has ended, which frees its memory. */
  entry: T | undefined
  /** The number of calls with this id, because a client may use an id twice. */
  count: number
}

export function createOpenCalls<T extends AuditEntry | AuditRecord>(): OpenCalls<T> {
  const open = new Map<string, TrackedCall<T>>()

  function end(id: string): void {
    const call = open.get(id)
    if (call === undefined || --call.count > 0) return
    call.entry = undefined
    open.delete(id)
  }

  return {
    note(entry) {
      const { event, tool_call_id: id } = entry
      if (id === undefined) return
      if (event !== 'tool_call') {
        if (ENDS_OF_CALLS.has(event)) end(id)
        return
      }
      const call = open.get(id)
      if (call === undefined) open.set(id, { entry, count: 1 })
      else call.count++
    },
    forget({ event, tool_call_id: id }) {
      if (event === 'tool_call' && id !== undefined) end(id)
    },
    list: () =>
      [...open.values()].flatMap(({ entry, count }) => (entry ? Array.from({ length: count }, () => entry) : [])),
  }
}

/**
 * Returns the calls that a dead process left open. Takes the records newest first.
 *
 * Reads back to the last opening by a sole writer, because that opening ended all earlier open calls.
 */
export function findOpenCalls(records: Iterable<AuditRecord>): readonly AuditRecord[] {
  /** The number of ends read so far for each id, without those whose beginning was read. */
  const ended = new Map<string, number>()
  const open: AuditRecord[] = []
  for (const record of records) {
    const { event, reason, tool_call_id: id } = record
    if (event === 'audit_opened' && reason === SOLE_WRITER) break
    if (id === undefined) continue
    const count = ended.get(id) ?? 0
    if (ENDS_OF_CALLS.has(event)) ended.set(id, count + 1)
    if (event !== 'tool_call') continue
    if (count === 0) open.push(record)
    else if (count === 1) ended.delete(id)
    else ended.set(id, count - 1)
  }
  return open.toReversed()
}

/** Returns the entry that ends a call with an unknown outcome. */
export function abandonedEntry(call: AuditEntry | AuditRecord, wallMs: number): AuditEntry {
  return {
    event: 'tool_abandoned',
    wallMs,
    tool: call.tool,
    tool_call_id: call.tool_call_id,
    chat_id: call.chat_id,
    user_id: call.user_id,
    session_id: call.session_id,
    tenant: call.tenant,
    agent: call.agent,
    client: call.client,
    actor: call.actor,
    act_chain: call.act_chain,
    key_made_by: call.key_made_by,
    app: call.app,
    run_id: call.run_id,
    step: call.step,
    model: call.model,
    continues: call.continues,
    run: 'run' in call ? call.run : undefined,
    trace_id: call.trace_id,
    policy_revision: call.policy_revision,
    catalog_revision: call.catalog_revision,
    reason: 'outcome_unknown',
    detail: 'the process ended before the call did',
  }
}

/** Returns an entry about the audit itself. */
export function ownEntry(
  event: 'audit_opened' | 'audit_closed' | 'audit_dropped' | 'audit_pruned' | 'inputs_pruned' | 'policy_recorded',
  wallMs: number,
  fields: Pick<AuditEntry, 'reason' | 'detail' | 'signed_seq' | 'policy' | 'policy_hash' | 'inputs_before'> = {},
): AuditEntry {
  return { event, wallMs, policy_revision: 0, catalog_revision: 0, ...fields }
}
