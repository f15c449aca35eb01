import type { Reason } from '../decide/decision.ts'
import type { AttemptEvent, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import {
  chain,
  cutText,
  hasNullsLeftOut,
  isErrorOf,
  isStream,
  messageOf,
  outputText,
  safely,
  sizeOf,
  toolErrorOf,
} from '@toolgate/values'
import { type Attempt, calledAs, hookPorts, insteadOf, type Ran, releaseHeld, toHooked } from './attempt.ts'
import { cutOutput } from './cut-output.ts'
import { editNote } from './editing.ts'
import { execute, type Executed, type Execution, type Lasting } from './execute.ts'
import { enterEnd, enterStreamEnd, watchItems, watchProgress, withinHistory } from './history.ts'
import { type HookedEnd, tellAfter } from './hooks.ts'
import {
  type CallDone,
  type CallFailed,
  type CallOutcome,
  GateClosedError,
  HaltedError,
  InputRequired,
  LeaseEndedError,
} from './outcome.ts'
import { type AuditFields, writeLast } from './records.ts'
import { nextRound } from './rounds.ts'
import { type StreamEnd, watchStream } from './streams.ts'

/** Runs the tool of a call that passed its checks, calls the `afterToolCall` hooks, and writes the terminal record. */
export function run(attempt: Attempt, tool: Tool): MaybePromise<CallOutcome> {
  const { view, request, ports, callId, cancelling, input, forTool, trace } = attempt
  const { onProgress, context, deadlineMs = tool.deadlineMs ?? ports.deadlineMs } = request
  const startedMs = ports.clock.monotonicMs()
  const execution = {
    tool,
    instead: request.as && insteadOf(request),
    input: forTool ? forTool.input : input,
    callId,
    caller: view.caller,
    cancelling,
    onProgress: onProgress && watchProgress(attempt, safely(onProgress, ports.onFault)),
    context,
    startedMs,
    deadlineMs,
    through: attempt,
  }
  const isWithin = trace?.within !== undefined || ports.current.history !== undefined
  const running = isWithin ? executeWithin(attempt, tool, execution) : execute(execution, ports)
  return running instanceof Promise
    ? ranLater(attempt, tool, running, startedMs)
    : ran(attempt, tool, running, startedMs)
}

/** Runs the tool within the trace and the history of its call. */
function executeWithin(attempt: Attempt, tool: Tool, execution: Execution): MaybePromise<Executed> {
  const { trace, ports } = attempt
  const start = () => execute(execution, ports)
  const within = trace?.within
  const traced = within ? () => within(start) : start
  return ports.current.history ? withinHistory(attempt, tool, traced) : traced()
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
  if (attempt.held.length > 0) releaseHeld(attempt)
  const durationMs = attempt.ports.clock.monotonicMs() - startedMs
  const entered = attempt.history ? enterEnd(attempt, tool, executed) : undefined
  if (entered instanceof Promise)
    return entered.then((known) => conclude(attempt, tool, toEnd(attempt, tool, known, durationMs)))
  return conclude(attempt, tool, toEnd(attempt, tool, entered ?? executed, durationMs))
}

/** How a call ended, for its hooks, its record and its trace. */
interface CallEnding {
  readonly outcome: Ran
  readonly event: AttemptEvent
  readonly fields: AuditFields
  /** The tool's output before it was cut. Absent for streams. */
  readonly output?: unknown
}

function toEnd(attempt: Attempt, tool: Tool, executed: Executed, durationMs: number): CallEnding {
  if (!executed.ok) return toFailed(attempt, executed.code, executed.error, durationMs)
  if (executed.output instanceof InputRequired) return toInputRequired(attempt, tool, executed.output, durationMs)
  const { callId, ports } = attempt
  const returned = executed.output
  // A text that fits is passed on unchanged, and reports no error.
  const isShort = typeof returned === 'string' && returned.length <= ports.maxOutputChars
  const { output, cut } = isShort ? { output: returned, cut: false } : cutOutput(returned, tool.outputSchema, ports)
  const fields = { duration_ms: toMicros(durationMs), detail: isShort ? undefined : detailOf(cut, returned) }
  const error = isShort ? undefined : toolErrorOf(returned)
  const outcome = new DoneCall(
    callId,
    output,
    durationMs,
    error !== undefined,
    cut,
    attempt.edited && editNote(attempt, true),
  )
  if (error === undefined) return { outcome, event: 'tool_result', fields, output: returned }
  return { outcome, event: 'tool_result', fields: { ...fields, reason: TOOL_ERROR, error, is_error: true } }
}

/** A payload is never cut, because half a question cannot be answered. */
function toInputRequired(
  attempt: Attempt,
  tool: Tool,
  { payload, inner }: InputRequired,
  durationMs: number,
): CallEnding {
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
const NULLS_LEFT_OUT = 'null members left out'

/** Returns what was changed of an output; `undefined` for an output that is passed on as it came. */
function detailOf(isCut: boolean, output: unknown): string | undefined {
  if (!hasNullsLeftOut(output)) return isCut ? OUTPUT_CUT : undefined
  return isCut ? `${OUTPUT_CUT}; ${NULLS_LEFT_OUT}` : NULLS_LEFT_OUT
}

/** More than the audit stores, so that the redactor sees a whole secret even where the stored text is cut. */
const MAX_ERROR_LENGTH = 16_384

function toFailed(attempt: Attempt, code: CallFailed['code'], error: unknown, durationMs: number): CallEnding {
  const { callId, request, ports } = attempt
  const halted = isErrorOf(error, HaltedError)
  const how = halted
    ? `${calledAs(request)} is unavailable: ${error.message}.`
    : `${calledAs(request)} failed: ${cutText(messageOf(error), ports.maxOutputChars)}`
  const note = editNote(attempt, true)
  const text = note === undefined ? how : `${note}\n${how}`
  const event = code === 'tool_aborted' ? 'tool_abandoned' : 'tool_result'
  const reason = halted ? 'halted' : (stopReasonOf(error) ?? code)
  const fields = { duration_ms: toMicros(durationMs), reason, error: cutText(messageOf(error), MAX_ERROR_LENGTH) }
  const outcome = {
    status: 'failed',
    callId,
    code,
    error,
    durationMs,
    ...(note !== undefined && { note }),
    text,
  } as const
  return { outcome, event, fields }
}

function stopReasonOf(error: unknown): Reason['code'] | undefined {
  if (isErrorOf(error, GateClosedError)) return 'gate_closed'
  return isErrorOf(error, LeaseEndedError) ? 'replica_unsure' : undefined
}

function toMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** Settles the costs, calls the `afterToolCall` hooks, and writes the terminal record. */
function conclude(attempt: Attempt, tool: Tool, ended: CallEnding): MaybePromise<CallOutcome> {
  const { taken, ports, hooks } = attempt
  const { costs } = ports.current
  if (taken && costs) {
    const settled = costs.settle(attempt, tool, ended.outcome, ended.output)
    return chain(settled, (overrun) => finish(attempt, tool, withDetail(ended, overrun)))
  }
  return hooks.length > 0 ? finish(attempt, tool, ended) : record(attempt, ended)
}

function finish(attempt: Attempt, tool: Tool, ended: CallEnding): MaybePromise<CallOutcome> {
  if (attempt.hooks.length === 0 || attempt.request.as?.kind === 'compare') return record(attempt, ended)
  return chain(tellHooks(attempt, tool, ended.outcome), () => record(attempt, ended))
}

function withDetail(ended: CallEnding, detail: string | undefined): CallEnding {
  if (detail === undefined) return ended
  const { fields } = ended
  return {
    ...ended,
    fields: { ...fields, detail: fields.detail === undefined ? detail : `${fields.detail}; ${detail}` },
  }
}

function tellHooks(attempt: Attempt, tool: Tool, outcome: Ran): MaybePromise<void> {
  const how = toCallEnd(outcome)
  return tellAfter(attempt.hooks, toHooked(attempt, tool, attempt.cancelling), how, hookPorts(attempt.ports))
}

function toCallEnd(outcome: Ran): HookedEnd {
  const { status, durationMs } = outcome
  if (status === 'failed') return { ok: false, durationMs, error: outcome.error }
  const output = status === 'done' ? outcome.output : new InputRequired(outcome.payload)
  return { ok: true, durationMs, output }
}

/** Writes the terminal record. Its failure does not change the outcome. */
function record(attempt: Attempt, { outcome, event, fields }: CallEnding): MaybePromise<CallOutcome> {
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

/** Passes a stream on as it comes. The call ends when the stream ends or fails, or when the consumer stops. */
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
    releaseHeld(attempt)
    await enterStreamEnd(attempt, tool, how)
    await conclude(attempt, tool, toStreamEnd(attempt, how, lasting, clock.monotonicMs() - startedMs))
  }
  const options = { onEnd, onItem: watchItems(attempt), deadlines, clock, deadlineMs, cancelling: lasting, maxChars }
  try {
    const items = watchStream(stream as AsyncIterable<unknown>, options)
    return new DoneCall(callId, items, passedMs, false, false, editNote(attempt, true))
  } catch (error) {
    // The value looks like a stream but throws when it is opened.
    lasting.close()
    releaseHeld(attempt)
    return conclude(attempt, tool, toFailed(attempt, 'tool_failed', error, passedMs))
  }
}

function toStreamEnd(attempt: Attempt, end: StreamEnd, { stoppedBy }: Lasting, durationMs: number): CallEnding {
  switch (end.how) {
    case 'ended':
      return {
        outcome: new DoneCall(attempt.callId, undefined, durationMs, false),
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
class DoneCall implements CallDone {
  readonly status = 'done'
  readonly callId: string
  readonly output: unknown
  readonly durationMs: number
  readonly isError: boolean
  readonly isCut: boolean
  readonly note: string | undefined

  constructor(callId: string, output: unknown, durationMs: number, isError: boolean, isCut = false, note?: string) {
    this.callId = callId
    this.output = output
    this.durationMs = durationMs
    this.isError = isError
    this.isCut = isCut
    this.note = note
  }

  /** Computed on demand, because a host that only passes the output on does not need the text. */
  get text(): string {
    const text = isStream(this.output) ? '(a stream)' : outputText(this.output)
    return this.note === undefined ? text : `${this.note}\n${text}`
  }
}
