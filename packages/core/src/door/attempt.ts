import type { Caller } from '../caller.ts'
import { type Cancelling, toCancelling } from '../cancelling.ts'
import type { Visible } from '../decide/visible.ts'
import type { Decision } from '../decision/outcome.ts'
import type { OutcomeWord } from '../decision/words.ts'
import type { Names } from '../decision/told.ts'
import type {
  ApprovalStore,
  AuditEntry,
  AuditEvent,
  AuditSink,
  Clock,
  CounterStore,
  LimitAnswer,
  MaybePromise,
  ValidateInput,
} from '../ports.ts'
import type { Progress } from '../tools/tool.ts'
import type { Tool } from '../tools/tool.ts'
import type { Deadlines } from './deadlines.ts'
import type { LimitUseOf } from './limits.ts'
import type { CallOutcome } from './outcome.ts'

export interface CallRequest<Name extends string = string> {
  /** A tool id. Adapters map wire names back; `undefined` where a name maps to none. */
  readonly tool: Name | undefined
  readonly input?: unknown
  /** Default: a random UUID. */
  readonly callId?: string | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Ends the execution after so many milliseconds. Default: the gate's. */
  readonly deadlineMs?: number | undefined
  /** What is wrong with the request itself, as its host found: it is refused and recorded, and runs nothing. */
  readonly malformed?: string | undefined
  /** The name as the client spelled it, for refusals and the audit. Default: `tool`. */
  readonly calledAs?: string | undefined
  /** Gives the name of a tool as the client knows it, for refusals. Default: its id. */
  readonly nameOf?: ((id: string) => string) | undefined
  /** The other way round, for tools that take names of tools: `undefined` where a name is none. Default: names are ids. */
  readonly idOf?: ((name: string) => string | undefined) | undefined
}

/** What the door asks of the view that a call came through. Each answer is today's. */
export interface Sight {
  readonly caller: Caller
  /** The ids that are visible in the view and today, for refusals. */
  idsToday(): readonly string[]
  see(id: string | undefined): Seen
  /** What the clauses that want the input say of it. */
  seeInput(seen: Seen, input: unknown): Decision
  explainSeen(seen: Seen): Decision
  /** Whether anything has changed since; if not, the answer would be the same. */
  isStale(seen: Seen): boolean
  /** The same object for as long as nothing changes. */
  visibleToday(): Visible
  /** Those, and the ones that a search would open. */
  findableToday(): Visible
  call(request: CallRequest): Promise<CallOutcome>
}

/** One decided tool. */
export interface Seen {
  readonly outcome: OutcomeWord
  /** Absent where the id is not known. */
  readonly tool: Tool | undefined
  readonly uses: readonly LimitUseOf[]
  readonly policyRevision: number
  readonly catalogRevision: number
}

export interface DoorPorts {
  readonly counters: CounterStore
  readonly approvals: ApprovalStore
  readonly audit: AuditSink
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly validate: ValidateInput
  readonly newCallId: () => string
  readonly deadlineMs: number
  /** Hears of faults that must not change an answer: a record that could not be written after the fact. */
  readonly onFault: (error: unknown) => void
}

/** One call on its way through the door. */
export interface Attempt {
  readonly sight: Sight
  readonly request: CallRequest
  readonly ports: DoorPorts
  readonly callId: string
  readonly cancelling: Cancelling | undefined
  readonly seen: Seen
  /** The frozen input, once it is known to be one. */
  input: unknown
  /** What must be given back if the call does not go ahead. */
  taken: LimitAnswer | undefined
  approvalId: string | undefined
}

export function openAttempt(sight: Sight, request: CallRequest, ports: DoorPorts): Attempt {
  const { callId = ports.newCallId(), signal } = request
  return {
    sight,
    request,
    ports,
    callId,
    cancelling: signal && toCancelling(signal),
    seen: sight.see(request.tool),
    input: undefined,
    taken: undefined,
    approvalId: undefined,
  }
}

/** Gives back the limit and the approval that were taken for a call that does not go ahead. Never rejects. */
export async function giveBack(attempt: Attempt): Promise<void> {
  const { taken, approvalId, ports, seen } = attempt
  attempt.taken = undefined
  attempt.approvalId = undefined
  // Each by itself: that one store fails must not keep the other from giving back.
  if (taken) await tell(ports.onFault, () => ports.counters.giveBack(seen.uses, taken))
  if (approvalId !== undefined) await tell(ports.onFault, () => ports.approvals.giveBack(approvalId))
}

async function tell(onFault: DoorPorts['onFault'], step: () => MaybePromise<void>): Promise<void> {
  try {
    await step()
  } catch (error) {
    onFault(error)
  }
}

/** Gives the names that a refusal may use: those of the client. */
export function namesOf({ sight, request }: Attempt): Names {
  const { nameOf } = request
  return { asked: calledAs(request), visible: () => (nameOf ? sight.idsToday().map(nameOf) : sight.idsToday()) }
}

export function calledAs({ calledAs: name, tool }: CallRequest): string {
  return name ?? tool ?? ''
}

/** What a record says beside who, what and when. */
export type Finding = Pick<
  AuditEntry,
  'reason' | 'detail' | 'limit' | 'reset_ms' | 'duration_ms' | 'error' | 'approval_id'
>

/** Writes a record; throws or rejects as the sink does. */
export function write(attempt: Attempt, event: AuditEvent, finding: Finding): MaybePromise<void> {
  const { sight, request, callId, seen, ports, input } = attempt
  const { caller } = sight
  // One shape for every entry, and no spread: this runs twice in each call.
  return ports.audit.write({
    event,
    wallMs: ports.clock.wallMs(),
    tool: request.tool ?? calledAs(request),
    tool_call_id: callId,
    chat_id: caller.chat?.id,
    user_id: caller.user,
    session_id: caller.session,
    tenant: caller.tenant,
    agent: caller.agent,
    policy_revision: seen.policyRevision,
    catalog_revision: seen.catalogRevision,
    reason: finding.reason,
    detail: finding.detail,
    limit: finding.limit,
    reset_ms: finding.reset_ms,
    duration_ms: finding.duration_ms,
    error: finding.error,
    approval_id: finding.approval_id,
    input: event === 'tool_result' ? undefined : input,
  })
}

/** Writes the terminal record. The answer stands whatever becomes of it: a fault here is told to the host. */
export function writeLast(attempt: Attempt, event: AuditEvent, finding: Finding): MaybePromise<void> {
  const { onFault } = attempt.ports
  try {
    const written = write(attempt, event, finding)
    return written instanceof Promise ? written.catch(onFault) : written
  } catch (error) {
    return onFault(error)
  }
}
