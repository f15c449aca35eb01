import { type Decision, type Reason, ruleText } from '../decide/decision.ts'
import { messageFor } from '../decide/message.ts'
import {
  capOutput,
  chain,
  cutText,
  isErrorOf,
  isStream,
  messageOf,
  outputText,
  safely,
  sizeOf,
  toolErrorOf,
  ToolgateError,
} from '@toolgate/values'
import type { Approval, MaybePromise, AttemptEvent } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import {
  countedIn,
  type Attempt,
  type CallPorts,
  type CallRequest,
  type CallView,
  type Check,
  type Stop,
  checkRequest,
  giveBack,
  namesOf,
  openAttempt,
  startTrace,
  writeLast,
  calledAs,
  type AuditFields,
  releaseSlots,
  hookPorts,
  toHooked,
} from './attempt.ts'
import { asksPeople } from './checks.ts'
import {
  type CallOutcome,
  type CallRefused,
  type CallWaiting,
  GateClosedError,
  HaltedError,
  LeaseEndedError,
  type CallDone,
  type CallFailed,
  type CallInputRequired,
  InputRequired,
} from './outcome.ts'
import { approvalsFull, callerGone, historyFull, storeFailed } from './refusals.ts'
import { execute, type Executed, type Lasting } from './execute.ts'
import { enterEnd, enterStreamEnd, hasHistory, watchItems, watchProgress } from './history.ts'
import { type CallEnd, tellAfter } from './hooks.ts'
import { nextRound } from './rounds.ts'
import { settleLimits } from './settle.ts'
import { type StreamEnd, watchStream } from './streams.ts'

/**
 * Makes one call: it passes the checks and runs, or ends with the first that stops it. It leaves one terminal record.
 */
export function call(view: CallView, request: CallRequest, ports: CallPorts): Promise<CallOutcome> {
  return passChecks(view, request, ports, CALLING)
}

/**
 * Asks a person for a call that policy lets run only with their word, and runs nothing: for hosts whose own loop
 * must know before. `undefined` where nobody has to be asked, or the person has approved: then make the call,
 * which is decided again.
 *
 * An attempt that waits or is refused here leaves its terminal record.
 */
export async function requestApproval(
  view: CallView,
  request: CallRequest,
  ports: CallPorts,
): Promise<CallRefused | CallWaiting | undefined> {
  checkRequest(request)
  return asksPeople(view, request, ports) ? passChecks(view, request, ports, ASKING) : undefined
}

/** How far an attempt goes. */
interface Way<Passed> {
  readonly onlyAsks: boolean
  readonly until: keyof CallPorts['checks']
  /** Runs after the last check, in the same turn. */
  readonly next: (attempt: Attempt, tool: Tool) => MaybePromise<Passed>
}

const CALLING: Way<CallOutcome> = { onlyAsks: false, until: 'call', next: run }
const ASKING: Way<undefined> = { onlyAsks: true, until: 'approval', next: leaveNoTrace }

/** An attempt without anything to ask leaves no record: the call that follows does. */
function leaveNoTrace({ ports }: Attempt): undefined {
  ports.live.end()
}

/** Runs in one turn where everything answers at once. */
async function passChecks<Passed>(
  view: CallView,
  request: CallRequest,
  ports: CallPorts,
  { onlyAsks, until, next }: Way<Passed>,
): Promise<Passed | CallRefused | CallWaiting> {
  const attempt = openAttempt(view, request, ports, onlyAsks)
  const checks = ports.checks[until]
  const { tool } = attempt.decided
  if (request.abandoned !== undefined) return endStopped(attempt, { decision: callerGone(request.abandoned) })
  if (tool === undefined) return endStopped(attempt, { decision: view.explainDecided(attempt.decided) })
  let stop = nextStop(attempt, tool, checks)
  while (stop instanceof Promise) stop = (await stop) ?? nextStop(attempt, tool, checks)
  return stop === undefined ? next(attempt, tool) : endStopped(attempt, stop)
}

/** Asks the checks that the attempt has not passed yet, as far as the first that stops it or must be waited for. */
function nextStop(attempt: Attempt, tool: Tool, checks: readonly Check[]): MaybePromise<Stop | undefined> {
  try {
    for (;;) {
      const check = checks[attempt.passed++]
      if (check === undefined) return undefined
      const stop = check.run(attempt, tool)
      if (stop instanceof Promise) return stop.catch((error: unknown) => failure(attempt, error))
      if (stop !== undefined) return stop
    }
  } catch (error) {
    return failure(attempt, error)
  }
}

/** The one place where a failing store, validator or condition becomes an answer: failure refuses. */
function failure({ ports }: Attempt, error: unknown): Stop {
  // The store works: there is no room.
  if (error instanceof ToolgateError && error.code === 'approval_too_many') return { decision: approvalsFull(error) }
  if (error instanceof ToolgateError && error.code === 'history_full') return { decision: historyFull(error) }
  ports.onFault(error)
  return { decision: storeFailed(error) }
}

function endStopped(attempt: Attempt, stop: Stop): Promise<CallRefused | CallWaiting> {
  const giving = giveBack(attempt)
  return giving === undefined ? recordStop(attempt, stop) : giving.then(() => recordStop(attempt, stop))
}

function recordStop(attempt: Attempt, { decision, approval }: Stop): Promise<CallRefused | CallWaiting> {
  if (attempt.onlyAsks) startTrace(attempt)
  return approval ? waitFor(attempt, approval, decision) : refuse(attempt, decision)
}

/** Returns the text for the model. It lists no names where the host's `nameOf` fails. */
export function textFor(attempt: Attempt, decision: Decision): string {
  const names = namesOf(attempt)
  try {
    return messageFor(decision, names)
  } catch (error) {
    attempt.ports.onFault(error)
    return messageFor(decision, { ...names, nameOf: () => undefined, visible: () => [] })
  }
}

async function refuse(attempt: Attempt, decision: Decision): Promise<CallRefused> {
  const first = decision.reasons[0] as Reason
  const { code, text: detail, limit, resetMs } = first
  const fields = { reason: code, detail, clause: ruleText(first), limit, reset_ms: resetMs, read: countedIn(decision) }
  await writeLast(attempt, EVENTS.get(code) ?? 'tool_blocked', fields)
  attempt.trace?.end({ status: 'refused', code, input: attempt.input })
  return { status: 'refused', callId: attempt.callId, decision, text: textFor(attempt, decision) }
}

const EVENTS: ReadonlyMap<Reason['code'], 'tool_rate_limited' | 'tool_abandoned'> = new Map([
  ['rate_limited', 'tool_rate_limited'],
  ['caller_gone', 'tool_abandoned'],
  ['gate_closed', 'tool_abandoned'],
])

async function waitFor(attempt: Attempt, approval: Approval, decision: Decision): Promise<CallWaiting> {
  const first = decision.reasons[0]
  const fields = { reason: 'approval_required', detail: first?.text, clause: first && ruleText(first) }
  await writeLast(attempt, 'tool_approval_required', { ...fields, approval_id: approval.id })
  attempt.trace?.end({ status: 'waiting', code: 'approval_required', input: attempt.input })
  return { status: 'waiting', callId: attempt.callId, decision, approval, text: textFor(attempt, decision) }
}

/** Runs the tool of a call that passed its checks, calls the `afterToolCall` hooks, and writes the terminal record. */
export function run(attempt: Attempt, tool: Tool): MaybePromise<CallOutcome> {
  const { view, request, ports, callId, cancelling, input, trace } = attempt
  const { onProgress, context, deadlineMs = tool.deadlineMs ?? ports.deadlineMs } = request
  const startedMs = ports.clock.monotonicMs()
  const { isActive } = ports.histories
  if (isActive && !request.comparing) attempt.labels = ports.histories.raisedBy(tool)
  const execution = {
    tool,
    instead: request.instead,
    input,
    callId,
    caller: view.caller,
    cancelling,
    onProgress: onProgress && watchProgress(attempt, safely(onProgress, ports.onFault)),
    context,
    startedMs,
    deadlineMs,
    through: attempt,
  }
  const start = () => execute(execution, ports)
  const traced = trace ? () => trace.within(start) : start
  const running = isActive ? ports.histories.within(view.caller, attempt.request.run, traced) : traced()
  return running instanceof Promise
    ? ranLater(attempt, tool, running, startedMs)
    : ran(attempt, tool, running, startedMs)
}

async function ranLater(
  attempt: Attempt,
  tool: Tool,
  running: Promise<Executed>,
  startedMs: number,
): Promise<CallOutcome> {
  return ran(attempt, tool, await running, startedMs)
}

function ran(attempt: Attempt, tool: Tool, executed: Executed, startedMs: number): MaybePromise<CallOutcome> {
  if (executed.ok && executed.lasting) return passOn(attempt, tool, executed.output, executed.lasting, startedMs)
  if (attempt.slots || attempt.place) releaseSlots(attempt)
  const durationMs = attempt.ports.clock.monotonicMs() - startedMs
  const entered = hasHistory(attempt) ? enterEnd(attempt, tool, executed) : undefined
  if (entered instanceof Promise)
    return entered.then((known) => conclude(attempt, tool, toEnd(attempt, tool, known, durationMs)))
  return conclude(attempt, tool, toEnd(attempt, tool, entered ?? executed, durationMs))
}

/** How a call ended, for its hooks, its record and its trace. */
interface End {
  readonly outcome: CallDone | CallFailed | CallInputRequired
  readonly event: AttemptEvent
  readonly fields: AuditFields
  /** What the tool returned, before it was cut. Absent for streams. */
  readonly output?: unknown
}

function toEnd(attempt: Attempt, tool: Tool, executed: Executed, durationMs: number): End {
  if (!executed.ok) return toFailed(attempt, executed.code, executed.error, durationMs)
  if (executed.output instanceof InputRequired) return toInputRequired(attempt, tool, executed.output, durationMs)
  const { output, cut } = capOutput(executed.output, attempt.ports.maxOutputChars)
  const fields = { duration_ms: toMicros(durationMs), detail: cut ? OUTPUT_CUT : undefined }
  const error = toolErrorOf(executed.output)
  const outcome = new Done(attempt.callId, output, durationMs, error !== undefined)
  if (error === undefined) return { outcome, event: 'tool_result', fields, output: executed.output }
  return { outcome, event: 'tool_result', fields: { ...fields, reason: TOOL_ERROR, error, is_error: true } }
}

/** A payload is never cut, since half a question cannot be answered. */
function toInputRequired(attempt: Attempt, tool: Tool, { payload, inner }: InputRequired, durationMs: number): End {
  const { callId, request, ports } = attempt
  try {
    if (sizeOf(payload, ports.maxOutputChars) > ports.maxOutputChars)
      throw new Error(`it asked for more input in more than ${ports.maxOutputChars} characters`)
    const continues = nextRound(attempt, tool, inner)
    const text = `${calledAs(request)} needs more input, which this client cannot give.`
    return {
      outcome: { status: 'input_required', callId, payload, continues, durationMs, text },
      event: 'tool_input_required',
      fields: { duration_ms: toMicros(durationMs) },
    }
  } catch (error) {
    return toFailed(attempt, 'tool_failed', error, durationMs)
  }
}

/** The reason of a call whose tool ran and reported an error. */
const TOOL_ERROR = 'tool_error'

const OUTPUT_CUT = 'the output was cut'

/** The audit keeps less; so much is enough for it to see a secret whole. */
const MAX_ERROR_LENGTH = 16_384

function toFailed(
  { callId, request, ports }: Attempt,
  code: CallFailed['code'],
  error: unknown,
  durationMs: number,
): End {
  const halted = isErrorOf(error, HaltedError)
  const text = halted
    ? `${calledAs(request)} is unavailable: ${error.message}.`
    : `${calledAs(request)} failed: ${cutText(messageOf(error), ports.maxOutputChars)}`
  const event = code === 'tool_aborted' ? 'tool_abandoned' : 'tool_result'
  const reason = halted ? 'halted' : (stopReasonOf(error) ?? code)
  const fields = { duration_ms: toMicros(durationMs), reason, error: cutText(messageOf(error), MAX_ERROR_LENGTH) }
  return { outcome: { status: 'failed', callId, code, error, durationMs, text }, event, fields }
}

function stopReasonOf(error: unknown): Reason['code'] | undefined {
  if (isErrorOf(error, GateClosedError)) return 'gate_closed'
  return isErrorOf(error, LeaseEndedError) ? 'replica_unsure' : undefined
}

function toMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

function conclude(attempt: Attempt, tool: Tool, ended: End): MaybePromise<CallOutcome> {
  const settled = attempt.taken && settleLimits(attempt, tool, ended.outcome, ended.output)
  if (settled !== undefined) return chain(settled, (overrun) => finish(attempt, tool, withDetail(ended, overrun)))
  return finish(attempt, tool, ended)
}

function finish(attempt: Attempt, tool: Tool, ended: End): MaybePromise<CallOutcome> {
  if (attempt.hooks.length === 0 || attempt.request.comparing) return record(attempt, ended)
  return chain(tellHooks(attempt, tool, ended.outcome), () => record(attempt, ended))
}

function withDetail(ended: End, detail: string | undefined): End {
  if (detail === undefined) return ended
  const { fields } = ended
  return {
    ...ended,
    fields: { ...fields, detail: fields.detail === undefined ? detail : `${fields.detail}; ${detail}` },
  }
}

function tellHooks(attempt: Attempt, tool: Tool, outcome: End['outcome']): MaybePromise<void> {
  const how = toCallEnd(outcome)
  return tellAfter(attempt.hooks, toHooked(attempt, tool, attempt.cancelling), how, hookPorts(attempt.ports))
}

function toCallEnd(outcome: End['outcome']): CallEnd {
  const { status, durationMs } = outcome
  if (status === 'failed') return { ok: false, durationMs, error: outcome.error }
  const output = status === 'done' ? outcome.output : new InputRequired(outcome.payload)
  return { ok: true, durationMs, output }
}

/** Writes the terminal record. Its failure does not change the outcome. */
function record(attempt: Attempt, { outcome, event, fields }: End): MaybePromise<CallOutcome> {
  const reported = outcome.status === 'done' && outcome.isError
  attempt.trace?.end({
    status: reported ? 'failed' : outcome.status,
    code: reported ? TOOL_ERROR : outcome.status === 'failed' ? outcome.code : undefined,
    input: attempt.input,
    output: outcome.status === 'done' ? outcome.output : undefined,
  })
  const written = writeLast(attempt, event, fields)
  return written === undefined ? outcome : chain(written, () => outcome)
}

/** Passes a stream on as it comes. The call ends with the stream: at its end, its error, or when the consumer stops. */
function passOn(
  attempt: Attempt,
  tool: Tool,
  stream: unknown,
  lasting: Lasting,
  startedMs: number,
): MaybePromise<CallOutcome> {
  const { ports, callId, request } = attempt
  const { clock, deadlines, maxOutputChars: maxChars } = ports
  const passedMs = clock.monotonicMs() - startedMs
  const deadlineMs = Math.max(1, (request.deadlineMs ?? tool.deadlineMs ?? ports.deadlineMs) - passedMs)
  const onEnd = async (how: StreamEnd): Promise<void> => {
    lasting.close()
    releaseSlots(attempt)
    await enterStreamEnd(attempt, tool, how)
    await conclude(attempt, tool, toStreamEnd(attempt, how, lasting, clock.monotonicMs() - startedMs))
  }
  const options = { onEnd, onItem: watchItems(attempt), deadlines, clock, deadlineMs, cancelling: lasting, maxChars }
  try {
    return new Done(callId, watchStream(stream as AsyncIterable<unknown>, options), passedMs, false)
  } catch (error) {
    // It looks like a stream and throws when it is opened.
    lasting.close()
    releaseSlots(attempt)
    return conclude(attempt, tool, toFailed(attempt, 'tool_failed', error, passedMs))
  }
}

function toStreamEnd(attempt: Attempt, end: StreamEnd, { stoppedBy }: Lasting, durationMs: number): End {
  switch (end.how) {
    case 'ended':
      return {
        outcome: new Done(attempt.callId, undefined, durationMs, false),
        event: 'tool_result',
        fields: { duration_ms: toMicros(durationMs) },
      }
    case 'failed':
    case 'flooded':
      return toFailed(attempt, 'tool_failed', end.error, durationMs)
    case 'timeout':
      return toFailed(attempt, 'tool_timeout', end.error, durationMs)
    case 'aborted':
      return toFailed(attempt, stoppedBy ?? 'tool_aborted', end.error, durationMs)
    case 'abandoned':
      return toFailed(attempt, 'tool_aborted', new Error('nobody read the rest of the stream'), durationMs)
  }
}

/** A class: an object literal with a getter would cost a hidden class for each call. */
class Done implements CallDone {
  readonly status = 'done'
  readonly callId: string
  readonly output: unknown
  readonly durationMs: number
  readonly isError: boolean

  constructor(callId: string, output: unknown, durationMs: number, isError: boolean) {
    this.callId = callId
    this.output = output
    this.durationMs = durationMs
    this.isError = isError
  }

  /** Made on demand: a host that passes the output on does not need it. */
  get text(): string {
    return isStream(this.output) ? '(a stream)' : outputText(this.output)
  }
}
