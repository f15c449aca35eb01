import type { Decision } from '../decide/decision.ts'
import type { AttemptEvent, AuditEntry } from '../ports/ports.ts'
import { recordedKind } from '../tools/tool-id.ts'
import { catchRejection } from '@toolgate/values'
import { operandsOfCall } from './asked-call.ts'
import {
  type ApprovalOfCall,
  type Attempt,
  calledAs,
  type CallPorts,
  type CheckResult,
  type HistoryOfCall,
  type Stop,
  storeInTime,
  textOf,
} from './attempt.ts'
import { auditFailed } from './refusals.ts'

/** The fields of a record besides the caller, the tool and the time. */
export type AuditFields = Pick<
  AuditEntry,
  | 'reason'
  | 'detail'
  | 'clause'
  | 'limit'
  | 'reset_ms'
  | 'duration_ms'
  | 'error'
  | 'is_error'
  | 'approval_id'
  | 'grant'
  | 'read'
>

const MAX_NAME_LENGTH = 256
/** The redactor gets this many characters, so that it still finds a secret that the cut would split. */
const MAX_LOOKED_AT = 2 * MAX_NAME_LENGTH

/** An unknown name is free text from the client, so it is redacted before it is recorded. */
function unknownName({ request, ports }: Attempt): string {
  const name = (textOf(request.tool) ?? calledAs(request)).slice(0, MAX_LOOKED_AT)
  try {
    const redacted = ports.redactor.redactText(name)
    catchRejection(redacted, ports.onFault)
    return redacted.slice(0, MAX_NAME_LENGTH)
  } catch (error) {
    ports.onFault(error)
    return '[not shown: it could not be redacted]'
  }
}

/** Tools have no `kind` in records. */
function recordedKindOf({ decided, request }: Attempt): AuditEntry['kind'] {
  return recordedKind(decided.tool?.id ?? textOf(request.tool) ?? '')
}

/** Returns the facts that counted against a call, from the reasons that decided. */
export function countedIn({ outcome, reasons }: Decision): AuditEntry['read'] {
  if (reasons.length === 0) return undefined
  const read = reasons.flatMap((one) => (one.outcome === outcome ? (one.read ?? []) : []))
  return read.length === 0 ? undefined : read
}

function labelsOf({ facts, shadowFacts }: HistoryOfCall): AuditEntry['run_labels'] {
  const known = facts ?? shadowFacts
  return known?.isUnknown ? undefined : known?.labels
}

/** Writes a record. Throws or rejects if the sink does. */
function write(attempt: Attempt, event: AttemptEvent, fields: AuditFields) {
  const { view, request, callId, decided, ports, input, trace, would, withInput, history, uses } = attempt
  const { caller } = view
  const { run, as } = request
  const comparing = as?.kind === 'compare' ? as : undefined
  const { tool, bounds } = decided
  const wallMs = ports.clock.wallMs()
  if (!attempt.isCounted && !comparing) {
    attempt.isCounted = true
    ports.coverage.count(decided, attempt.hits, wallMs)
  }
  const detail = fields.detail ?? (comparing && `read for ${comparing.by}, who decides the approval`)
  // One shape for every entry and no spread, because this runs twice in each call.
  const written = ports.audit.write({
    event,
    wallMs,
    tool: tool ? tool.id : unknownName(attempt),
    kind: tool?.kind === 'tool' ? undefined : recordedKindOf(attempt),
    purpose: as && as.kind !== 'abandoned' ? as.kind : undefined,
    tool_call_id: callId,
    chat_id: caller.chat?.id,
    user_id: caller.user,
    session_id: caller.session,
    tenant: caller.tenant,
    agent: caller.agent,
    client: caller.client,
    actor: caller.actor,
    act_chain: caller.actChain && JSON.stringify(caller.actChain),
    key_made_by: caller.keyMadeBy,
    app: view.app ?? run?.app,
    run,
    run_history: run && ports.histories.sharedBy(caller, run),
    trace_id: trace?.traceId,
    policy_revision: decided.today.policyRevision,
    in_force: decided.today.policy,
    catalog_revision: decided.today.catalogRevision,
    reason: fields.reason,
    detail: attempt.isCoerced && event !== 'tool_result' ? withCoerced(detail) : detail,
    clause: fields.clause,
    limit: fields.limit,
    reset_ms: fields.reset_ms,
    duration_ms: fields.duration_ms,
    error: fields.error,
    is_error: fields.is_error,
    approval_id: fields.approval_id ?? comparing?.approval,
    grant: fields.grant,
    continues: request.continues?.callId,
    labels: history?.labels,
    run_labels: history && labelsOf(history),
    read: fields.read ?? (withInput && withInput.reasons.length > 0 ? countedIn(withInput) : undefined),
    input: event === 'tool_result' ? undefined : input,
    edited: event === 'tool_result' ? undefined : attempt.edited,
    asked:
      event === 'tool_result' ? undefined : { caller: bounds.caller, operands: () => operandsOfCall(decided, uses) },
    would_outcome: event === 'tool_call' ? undefined : would?.outcome,
    would_clause: event === 'tool_call' ? undefined : would?.clause,
  })
  return written === undefined ? undefined : storeInTime(ports, written)
}

/** The record with the input says that it is not the input as it came. */
function withCoerced(detail: string | undefined): string {
  return detail === undefined ? 'coerced' : `${detail}; coerced`
}

/** Writes the terminal record, which ends the attempt. An error goes to `onFault` and does not change the answer. */
export function writeLast(attempt: Attempt, event: AttemptEvent, fields: AuditFields): Promise<void> | undefined {
  const { onFault, live } = attempt.ports
  try {
    const written = write(attempt, event, fields)
    if (written instanceof Promise) return written.catch(onFault).finally(() => live.end())
  } catch (error) {
    onFault(error)
  }
  live.end()
  return undefined
}

/** Records that a call is about to run. A call that cannot be recorded does not run. */
export function recordCall(attempt: Attempt): CheckResult {
  const { approval: used, continues, ports } = attempt
  try {
    const detail = used && (used.grant ? `granted by ${used.approval.decidedBy}` : approvedText(used.approval))
    const id = used?.spend === undefined ? continues?.approvalId : used.approval.id
    const written = write(attempt, 'tool_call', { approval_id: id, grant: used?.grant?.id, detail })
    if (written === undefined) return undefined
    if (!(written instanceof Promise)) throw new TypeError('it answered something other than nothing or a promise')
    return written.then(
      () => undefined,
      (error: unknown) => recordFailed(error, ports),
    )
  } catch (error) {
    return recordFailed(error, ports)
  }
}

function approvedText({ approvedBy, decidedBy, edit }: ApprovalOfCall['approval']): string {
  const by = approvedBy?.map((vote) => vote.by).join(' and ') ?? decidedBy
  return edit ? `approved by ${by}, changed by ${edit.by}` : `approved by ${by}`
}

function recordFailed(error: unknown, { onFault }: CallPorts): Stop {
  onFault(error)
  return { decision: auditFailed(error) }
}
