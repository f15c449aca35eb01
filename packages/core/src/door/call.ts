import { canonicalize } from '../audit/canonical.ts'
import type { Caller } from '../caller.ts'
import { type Decision, type OutcomeWord, strictest } from '../decision/outcome.ts'
import { type Reason, reason } from '../decision/reason.ts'
import { toldText } from '../decision/told.ts'
import { sha256Hex } from '../hash.ts'
import type {
  Approval,
  ApprovalStore,
  AuditEntry,
  AuditEvent,
  AuditSink,
  Clock,
  CounterStore,
  LimitAnswer,
  ValidateInput,
} from '../ports.ts'
import type { Progress } from '../tools/call-context.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { Tool } from '../tools/tool.ts'
import { execute, type Executed } from './execute.ts'
import { frozenCopy } from './freeze.ts'
import type { LimitUseOf } from './limits.ts'
import type { CallOutcome } from './outcome.ts'

export interface CallRequest {
  /** A tool id. Adapters map wire names back; `undefined` where a name maps to none. */
  readonly tool: string | undefined
  readonly input?: unknown
  /** Default: a random UUID. */
  readonly callId?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Ends the execution after so many milliseconds. Default: the gate's. */
  readonly deadlineMs?: number | undefined
  /** The name as the client spelled it, for refusals and the audit. Default: `tool`. */
  readonly calledAs?: string | undefined
  /** Gives the name of a tool as the client knows it, for refusals. Default: its id. */
  readonly nameOf?: ((id: string) => string) | undefined
}

/** What the door asks of the view that a call came through. Each answer is today's. */
export interface Sight {
  readonly caller: Caller
  /** The visible ids, for refusals. */
  ids(): readonly string[]
  decide(id: string | undefined): Seen
  decideWithInput(id: string | undefined, input: unknown): Decision
}

/** One decided tool. */
export interface Seen {
  readonly outcome: OutcomeWord
  /** Absent where the id is not known. */
  readonly tool: Tool | undefined
  readonly uses: readonly LimitUseOf[]
  readonly policyRevision: number
  readonly catalogRevision: number
  explain(): Decision
}

export interface DoorPorts {
  readonly counters: CounterStore
  readonly approvals: ApprovalStore
  readonly audit: AuditSink
  readonly clock: Clock
  readonly validate: ValidateInput
  readonly newCallId: () => string
  readonly deadlineMs: number
  /** Hears of faults that must not change an answer: a record that could not be written after the fact. */
  readonly onFault: (error: unknown) => void
}

/**
 * Takes one call through the door, in the order that `docs/guide/the-door.md` gives: find and decide, validate,
 * decide with the input, peek at the limits, approval, take limits and approval and decide once more,
 * `tool_call` record, execute, terminal record. Nothing before `execute` touches the tool.
 */
export async function call(sight: Sight, request: CallRequest, ports: DoorPorts): Promise<CallOutcome> {
  const attempt = openAttempt(sight, request, ports)
  let admission: Admission
  try {
    admission = await admit(attempt)
  } catch (error) {
    await attempt.giveBack()
    ports.onFault(error)
    admission = refused({
      outcome: 'deny',
      reasons: [
        reason('door', 'store_failed', `a store failed: ${messageOf(error)}`, {
          message: 'the gate cannot decide now',
        }),
      ],
    })
  }
  switch (admission.kind) {
    case 'refused':
      return refuse(attempt, admission.decision)
    case 'waiting':
      return waitFor(attempt, admission.approval, admission.decision)
    case 'admitted': {
      const startedMs = ports.clock.monotonicMs()
      const running = execute({
        tool: admission.tool,
        input: admission.input,
        callId: attempt.callId,
        caller: sight.caller,
        signal: request.signal,
        onProgress: request.onProgress,
        deadlineMs: request.deadlineMs ?? ports.deadlineMs,
      })
      const executed = running instanceof Promise ? await running : running
      return finish(attempt, executed, ports.clock.monotonicMs() - startedMs)
    }
  }
}

type Admission =
  | { readonly kind: 'refused'; readonly decision: Decision }
  | { readonly kind: 'waiting'; readonly approval: Approval; readonly decision: Decision }
  | { readonly kind: 'admitted'; readonly tool: Tool; readonly input: unknown }

interface Attempt {
  readonly sight: Sight
  readonly request: CallRequest
  readonly ports: DoorPorts
  readonly callId: string
  readonly seen: Seen
  input: unknown
  /** What must be undone if the call does not go ahead. */
  taken: { uses: readonly LimitUseOf[]; approval: string | undefined }
  giveBack(): Promise<void>
}

function openAttempt(sight: Sight, request: CallRequest, ports: DoorPorts): Attempt {
  return {
    sight,
    request,
    ports,
    callId: request.callId ?? ports.newCallId(),
    seen: sight.decide(request.tool),
    input: undefined,
    taken: NOTHING,
    async giveBack() {
      const { uses, approval } = this.taken
      this.taken = NOTHING
      try {
        if (uses.length > 0) await ports.counters.giveBack(uses)
        if (approval !== undefined) await ports.approvals.giveBack(approval)
      } catch (error) {
        ports.onFault(error)
      }
    },
  }
}

const NOTHING = { uses: [], approval: undefined } as const

async function admit(attempt: Attempt): Promise<Admission> {
  const { sight, request, ports, seen } = attempt
  const tool = seen.tool
  if (tool === undefined || !mayGoOn(seen.outcome)) return refused(seen.explain())
  if (!tool.execute)
    return refused(denial('door', 'tool_not_executable', 'it is described here and executed elsewhere'))

  const copy = frozenCopy(request.input ?? {})
  if ('problem' in copy) return refused(invalidInput(copy.problem))
  attempt.input = copy.value
  const problem = ports.validate(tool.inputSchema, copy.value)
  if (problem) return refused(invalidInput(problem))

  const withInput = sight.decideWithInput(request.tool, copy.value)
  if (!mayGoOn(withInput.outcome)) return refused(withInput)

  let approval: Approval | undefined
  if (seen.outcome === 'ask' || withInput.outcome === 'ask') {
    if (seen.uses.length > 0) {
      const peeked = await ports.counters.peek(seen.uses)
      if (!peeked.allowed) return refused(limited(seen.uses, peeked))
    }
    approval = await ports.approvals.request(
      bindingOf(sight.caller, tool, copy.value),
      copy.value,
      ports.clock.wallMs(),
    )
    if (approval.status === 'rejected') return refused(rejected(approval))
    if (approval.status !== 'approved') return waiting(approval, seen, withInput)
  }
  return commit(attempt, tool, approval)
}

/** Takes the limits and the approval together, decides once more, and writes the record of the call that goes ahead. */
async function commit(attempt: Attempt, tool: Tool, approval: Approval | undefined): Promise<Admission> {
  const { ports, seen } = attempt
  if (seen.uses.length > 0) {
    const answer = ports.counters.take(seen.uses)
    const taken = answer instanceof Promise ? await answer : answer
    if (!taken.allowed) return refused(limited(seen.uses, taken))
    attempt.taken = { uses: seen.uses, approval: undefined }
  }
  if (approval) {
    if (!(await ports.approvals.consume(approval.id, ports.clock.wallMs()))) {
      await attempt.giveBack()
      return refused(
        denial('approval', 'approval_used', 'the approval was used or expired meanwhile', {
          message: 'its approval was already used; call again to ask anew',
        }),
      )
    }
    attempt.taken = { ...attempt.taken, approval: approval.id }
  }
  const before = decideAgain(attempt, tool, approval)
  if (before) return giveBackAndRefuse(attempt, before)
  try {
    const written = ports.audit.write(
      entryOf(
        attempt,
        'tool_call',
        approval ? { approval_id: approval.id, input: attempt.input } : { input: attempt.input },
      ),
    )
    if (!written) return admitted(attempt, tool)
    await written
  } catch (error) {
    ports.onFault(error)
    return giveBackAndRefuse(
      attempt,
      denial('door', 'audit_failed', `the audit failed: ${messageOf(error)}`, {
        message: 'the call cannot be recorded now',
      }),
    )
  }
  const after = decideAgain(attempt, tool, approval)
  return after ? giveBackAndRefuse(attempt, after) : admitted(attempt, tool)
}

/** Gives the decision that stops the call now, if there is one: the same question as at first, asked of today. */
function decideAgain(
  { sight, request, input }: Attempt,
  tool: Tool,
  approval: Approval | undefined,
): Decision | undefined {
  if (request.signal?.aborted) return denial('door', 'caller_gone', 'the caller went away before the call')
  const seen = sight.decide(request.tool)
  if (!mayGoOn(seen.outcome)) return seen.explain()
  if (seen.tool !== tool)
    return denial('door', 'tool_changed', 'its definition changed while the call was on its way', {
      message: 'the tool has just changed; look at it again',
    })
  const withInput = sight.decideWithInput(request.tool, input)
  if (!mayGoOn(withInput.outcome)) return withInput
  const asks = seen.outcome === 'ask' || withInput.outcome === 'ask'
  return asks && !approval
    ? denial('approval', 'approval_required', 'an approval came to be needed while the call was on its way')
    : undefined
}

async function giveBackAndRefuse(attempt: Attempt, decision: Decision): Promise<Admission> {
  await attempt.giveBack()
  return refused(decision)
}

function mayGoOn(outcome: OutcomeWord): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

function admitted({ input }: Attempt, tool: Tool): Admission {
  return { kind: 'admitted', tool, input }
}

function refused(decision: Decision): Admission {
  return { kind: 'refused', decision }
}

function waiting(approval: Approval, seen: Seen, withInput: Decision): Admission {
  const asked = strictest([seen.outcome === 'ask' ? seen.explain() : { outcome: 'allow', reasons: [] }, withInput])
  return { kind: 'waiting', approval, decision: asked }
}

function denial(layer: Reason['layer'], code: Reason['code'], text: string, more: Partial<Reason> = {}): Decision {
  const one = reason(layer, code, text, more)
  return { outcome: one.outcome, reasons: [one] }
}

function invalidInput({ pointer, message }: { pointer: string; message: string }): Decision {
  return denial('input', 'input_invalid', `the input at ${pointer || '/'} ${message}`, {
    pointer,
    message: `invalid input at "${pointer}": ${message}`,
  })
}

function limited(uses: readonly LimitUseOf[], { refused: at, resetMs }: LimitAnswer): Decision {
  const use = uses[at] ?? uses[0]
  return denial('limits', 'rate_limited', `the limit ${use?.rule}:${use?.label} is used up`, {
    limit: use?.label,
    resetMs,
  })
}

function rejected({ decidedBy, reason: why, id }: Approval): Decision {
  const text = `approval ${id} was rejected by ${decidedBy}${why ? `: ${why}` : ''}`
  return denial('approval', 'approval_rejected', text, {
    message: `a person rejected this call${why ? `: ${why}` : '.'}`,
  })
}

function bindingOf({ tenant, user }: Caller, tool: Tool, input: unknown) {
  return {
    tenant,
    user,
    tool: tool.id,
    definitionHash: definitionHash(tool),
    inputHash: sha256Hex(canonicalize(input)),
    run: undefined,
  }
}

async function refuse(attempt: Attempt, decision: Decision): Promise<CallOutcome> {
  const deciding = decision.reasons[0] as Reason
  const event =
    deciding.code === 'rate_limited'
      ? 'tool_rate_limited'
      : deciding.code === 'caller_gone'
        ? 'tool_abandoned'
        : 'tool_blocked'
  await record(attempt, event, {
    reason: deciding.code,
    detail: deciding.text,
    limit: deciding.limit,
    reset_ms: deciding.resetMs,
    input: attempt.input,
  })
  return { status: 'refused', callId: attempt.callId, decision, text: toldText(decision, namesOf(attempt)) }
}

async function waitFor(attempt: Attempt, approval: Approval, decision: Decision): Promise<CallOutcome> {
  const detail = decision.reasons[0]?.text
  await record(attempt, 'tool_approval_required', {
    reason: 'approval_required',
    detail,
    approval_id: approval.id,
    input: attempt.input,
  })
  return { status: 'waiting', callId: attempt.callId, decision, approval, text: toldText(decision, namesOf(attempt)) }
}

async function finish(attempt: Attempt, executed: Executed, durationMs: number): Promise<CallOutcome> {
  const { callId } = attempt
  const duration_ms = Math.round(durationMs * 1000) / 1000
  if (executed.ok) {
    const written = record(attempt, 'tool_result', { duration_ms })
    if (written) await written
    return {
      status: 'done',
      callId,
      output: executed.output,
      durationMs,
      get text() {
        return outputText(executed.output)
      },
    }
  }
  const { code, error } = executed
  const event = code === 'tool_aborted' ? 'tool_abandoned' : 'tool_result'
  await record(attempt, event, { duration_ms, reason: code, error: messageOf(error) })
  return {
    status: 'failed',
    callId,
    code,
    error,
    durationMs,
    text: `${calledAs(attempt.request)} failed: ${messageOf(error)}`,
  }
}

/** Writes the terminal record. The answer stands whatever becomes of it: a fault here is told to the host. */
function record(attempt: Attempt, event: AuditEvent, more: Partial<AuditEntry>): Promise<void> | undefined {
  const { audit, onFault } = attempt.ports
  try {
    const written = audit.write(entryOf(attempt, event, more))
    return written ? written.catch(onFault) : undefined
  } catch (error) {
    onFault(error)
    return undefined
  }
}

function entryOf(
  { sight: { caller }, request, callId, seen, ports }: Attempt,
  event: AuditEvent,
  more: Partial<AuditEntry>,
): AuditEntry {
  return {
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
    ...more,
  }
}

function namesOf({ sight, request }: Attempt) {
  return {
    asked: calledAs(request),
    visible: () => (request.nameOf ? sight.ids().map(request.nameOf) : sight.ids()),
  }
}

function calledAs({ calledAs: name, tool }: CallRequest): string {
  return name ?? tool ?? ''
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function outputText(output: unknown): string {
  if (typeof output === 'string') return output
  try {
    return JSON.stringify(output) ?? ''
  } catch {
    return String(output)
  }
}
