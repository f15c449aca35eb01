import { canonicalize } from '../canonical.ts'
import type { Caller } from '../caller.ts'
import { type Decision, strictest } from '../decision/outcome.ts'
import type { OutcomeWord } from '../decision/words.ts'
import type { Reason } from '../decision/reason.ts'
import { toldText } from '../decision/told.ts'
import { messageOf } from '../errors.ts'
import { frozenCopy } from '../freeze.ts'
import { sha256Hex } from '../hash.ts'
import type { Approval, ApprovalBinding, LimitAnswer, MaybePromise } from '../ports.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { ParseInput } from '../tools/standard-schema.ts'
import type { Tool } from '../tools/tool.ts'
import {
  type Attempt,
  calledAs,
  type CallRequest,
  type DoorPorts,
  giveBack,
  namesOf,
  openAttempt,
  type Sight,
  write,
  writeLast,
} from './attempt.ts'
import { chain } from './chain.ts'
import { execute, type Executed } from './execute.ts'
import type { CallDone, CallOutcome } from './outcome.ts'
import {
  approvalNeeded,
  approvalRejected,
  approvalUsed,
  auditFailed,
  callerGone,
  invalidInput,
  notExecutable,
  rateLimited,
  storeFailed,
  toolChanged,
} from './refusals.ts'

/**
 * Takes one call through the door, in this order: find and decide, validate, decide with the input, peek at the
 * limits and ask for approval where one is needed, take limit and approval and decide once more, `tool_call`
 * record, execute, terminal record. Nothing before `execute` touches the tool.
 */
export async function call(sight: Sight, request: CallRequest, ports: DoorPorts): Promise<CallOutcome> {
  const attempt = openAttempt(sight, request, ports)
  let admission: Admission
  try {
    const admitting = admit(attempt)
    admission = admitting instanceof Promise ? await admitting : admitting
  } catch (error) {
    // The one place where a failing store, validator or condition becomes an answer: failure refuses.
    await giveBack(attempt)
    ports.onFault(error)
    admission = refused(storeFailed(error))
  }
  switch (admission.kind) {
    case 'refused':
      return refuse(attempt, admission.decision)
    case 'waiting':
      return waitFor(attempt, admission.approval, admission.decision)
    case 'admitted':
      return run(attempt, admission.tool)
  }
}

type Admission =
  | { readonly kind: 'admitted'; readonly tool: Tool }
  | { readonly kind: 'refused'; readonly decision: Decision }
  | { readonly kind: 'waiting'; readonly approval: Approval; readonly decision: Decision }

function refused(decision: Decision): Admission {
  return { kind: 'refused', decision }
}

/** A store that answers nonsense has not said yes. */
function isYes(answer: unknown): boolean {
  return answer === true
}

function mayGoOn(outcome: OutcomeWord): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

function admit(attempt: Attempt): MaybePromise<Admission> {
  const { sight, request, ports, seen } = attempt
  const { tool } = seen
  if (tool === undefined || !mayGoOn(seen.outcome)) return refused(sight.explainSeen(seen))
  if (!tool.execute) return refused(notExecutable())
  if (request.malformed !== undefined) return refused(invalidInput({ pointer: '', message: request.malformed }))

  const copy = frozenCopy(request.input ?? {})
  if ('problem' in copy) return refused(invalidInput(copy.problem))
  const parsed = parseInput(tool, copy, ports)
  attempt.input = 'problem' in parsed ? copy.value : parsed.value
  if ('problem' in parsed) return refused(invalidInput(parsed.problem))

  const withInput = sight.seeInput(seen, parsed.value)
  if (!mayGoOn(withInput.outcome)) return refused(withInput)
  const asks = seen.outcome === 'ask' || withInput.outcome === 'ask'
  return asks ? admitByApproval(attempt, tool, withInput) : takeLimits(attempt, tool, undefined)
}

/** Gives the input as it is from here on: a schema of the tool's own may fill in defaults. */
function parseInput(tool: Tool, copy: { value: unknown }, ports: DoorPorts): ReturnType<ParseInput> {
  if (tool.parseInput) return tool.parseInput(copy.value)
  const problem = ports.validate(tool.inputSchema, copy.value)
  return problem ? { problem } : copy
}

/** Looks at the limits first: nobody should be asked to approve what could not run. */
async function admitByApproval(attempt: Attempt, tool: Tool, withInput: Decision): Promise<Admission> {
  const { sight, ports, seen, input } = attempt
  if (seen.uses.length > 0) {
    const peeked = await ports.counters.peek(seen.uses)
    if (!isYes(peeked.allowed)) return refused(rateLimited(seen.uses, peeked))
  }
  const approval = await ports.approvals.request(bindingOf(sight.caller, tool, input), input, ports.clock.wallMs())
  if (approval.status === 'rejected') return refused(approvalRejected(approval))
  if (approval.status === 'approved') return takeLimits(attempt, tool, approval)
  const stopped = decideAgain(attempt, tool, { mayAsk: true })
  if (stopped) return refused(stopped)
  const byPolicy = seen.outcome === 'ask' ? [sight.explainSeen(seen), withInput] : [withInput]
  return { kind: 'waiting', approval, decision: strictest(byPolicy) }
}

function bindingOf({ tenant, user }: Caller, tool: Tool, input: unknown): ApprovalBinding {
  const inputHash = sha256Hex(canonicalize(input))
  return { tenant, user, tool: tool.id, definitionHash: definitionHash(tool), inputHash, run: undefined }
}

function takeLimits(attempt: Attempt, tool: Tool, approval: Approval | undefined): MaybePromise<Admission> {
  const { uses } = attempt.seen
  if (uses.length === 0) return takeApproval(attempt, tool, approval)
  return chain<LimitAnswer, Admission>(attempt.ports.counters.take(uses), (answer) => {
    if (!isYes(answer.allowed)) return refused(rateLimited(uses, answer))
    attempt.taken = answer
    return takeApproval(attempt, tool, approval)
  })
}

function takeApproval(attempt: Attempt, tool: Tool, approval: Approval | undefined): MaybePromise<Admission> {
  if (!approval) return recordCall(attempt, tool, undefined)
  const { approvals, clock } = attempt.ports
  return chain<boolean, Admission>(approvals.consume(approval.id, clock.wallMs()), (consumed) => {
    if (!isYes(consumed)) return undo(attempt, approvalUsed())
    attempt.approvalId = approval.id
    return recordCall(attempt, tool, `approved by ${approval.decidedBy}`)
  })
}

/** Decides once more, records the call that goes ahead, and if that took time, decides once more again. */
function recordCall(attempt: Attempt, tool: Tool, detail: string | undefined): MaybePromise<Admission> {
  const stopped = decideAgain(attempt, tool)
  if (stopped) return undo(attempt, stopped)
  try {
    const written = write(attempt, 'tool_call', { approval_id: attempt.approvalId, detail })
    return written === undefined ? { kind: 'admitted', tool } : afterRecord(attempt, tool, written)
  } catch (error) {
    return undo(attempt, auditFailed(error), error)
  }
}

async function afterRecord(attempt: Attempt, tool: Tool, written: Promise<void>): Promise<Admission> {
  try {
    await written
  } catch (error) {
    return undo(attempt, auditFailed(error), error)
  }
  const stopped = decideAgain(attempt, tool)
  return stopped ? undo(attempt, stopped) : { kind: 'admitted', tool }
}

/** Gives the decision that stops the call now, if there is one: the same question as at first, asked of today. */
function decideAgain(attempt: Attempt, tool: Tool, { mayAsk = false } = {}): Decision | undefined {
  const { sight, request, cancelling, seen, input, approvalId } = attempt
  if (cancelling?.aborted) return callerGone()
  if (!sight.isStale(seen)) return undefined
  const now = sight.see(request.tool)
  if (!mayGoOn(now.outcome)) return sight.explainSeen(now)
  if (now.tool !== tool) return toolChanged()
  const withInput = sight.seeInput(now, input)
  if (!mayGoOn(withInput.outcome)) return withInput
  const asks = now.outcome === 'ask' || withInput.outcome === 'ask'
  return asks && !mayAsk && approvalId === undefined ? approvalNeeded() : undefined
}

async function undo(attempt: Attempt, decision: Decision, fault?: unknown): Promise<Admission> {
  if (fault !== undefined) attempt.ports.onFault(fault)
  await giveBack(attempt)
  return refused(decision)
}

async function refuse(attempt: Attempt, decision: Decision): Promise<CallOutcome> {
  const { code, text: detail, limit, resetMs } = decision.reasons[0] as Reason
  await writeLast(attempt, EVENTS.get(code) ?? 'tool_blocked', { reason: code, detail, limit, reset_ms: resetMs })
  return { status: 'refused', callId: attempt.callId, decision, text: toldText(decision, namesOf(attempt)) }
}

const EVENTS: ReadonlyMap<Reason['code'], 'tool_rate_limited' | 'tool_abandoned'> = new Map([
  ['rate_limited', 'tool_rate_limited'],
  ['caller_gone', 'tool_abandoned'],
])

async function waitFor(attempt: Attempt, approval: Approval, decision: Decision): Promise<CallOutcome> {
  const detail = decision.reasons[0]?.text
  await writeLast(attempt, 'tool_approval_required', { reason: 'approval_required', detail, approval_id: approval.id })
  return { status: 'waiting', callId: attempt.callId, decision, approval, text: toldText(decision, namesOf(attempt)) }
}

function run(attempt: Attempt, tool: Tool): MaybePromise<CallOutcome> {
  const { sight, request, ports, callId, cancelling, input } = attempt
  const { onProgress, deadlineMs = ports.deadlineMs } = request
  const startedMs = ports.clock.monotonicMs()
  const execution = {
    tool,
    input,
    callId,
    caller: sight.caller,
    cancelling,
    onProgress,
    startedMs,
    deadlineMs,
    through: attempt,
  }
  const running = execute(execution, ports.deadlines)
  return chain(running, (executed) => finish(attempt, executed, ports.clock.monotonicMs() - startedMs))
}

function finish(attempt: Attempt, executed: Executed, durationMs: number): MaybePromise<CallOutcome> {
  const { callId, request } = attempt
  const duration_ms = Math.round(durationMs * 1000) / 1000
  if (executed.ok) {
    const outcome = new Done(callId, executed.output, durationMs)
    return chain(writeLast(attempt, 'tool_result', { duration_ms }), () => outcome)
  }
  const { code, error } = executed
  const text = `${calledAs(request)} failed: ${messageOf(error)}`
  const event = code === 'tool_aborted' ? 'tool_abandoned' : 'tool_result'
  const finding = { duration_ms, reason: code, error: messageOf(error) }
  return chain(writeLast(attempt, event, finding), () => ({ status: 'failed', callId, code, error, durationMs, text }))
}

/** A class, as a literal with a getter costs a hidden class of its own for each call. */
class Done implements CallDone {
  readonly status = 'done'
  readonly callId: string
  readonly output: unknown
  readonly durationMs: number

  constructor(callId: string, output: unknown, durationMs: number) {
    this.callId = callId
    this.output = output
    this.durationMs = durationMs
  }

  /** Made when it is asked for: a host that passes the output on needs no text of it. */
  get text(): string {
    return outputText(this.output)
  }
}

function outputText(output: unknown): string {
  if (typeof output === 'string') return output
  try {
    return JSON.stringify(output) ?? ''
  } catch {
    return messageOf(output)
  }
}
