import { safely } from '../util/async.ts'
import { isErrorOf, messageOf } from '../errors.ts'
import type { AttemptEvent, MaybePromise } from '../ports.ts'
import type { Tool } from '../tools/tool.ts'
import { type Attempt, calledAs, type AuditFields, releaseSlots, writeLast } from './attempt.ts'
import { chain } from './chain.ts'
import { GateClosedError } from './closed.ts'
import { execute, type Executed, type Lasting } from './execute.ts'
import { HaltedError } from './halted.ts'
import { hookPorts, toHooked } from './hooked.ts'
import { type CallEnd, tellAfter } from './hooks.ts'
import type { CallDone, CallFailed, CallOutcome } from './outcome.ts'
import { capOutput, cutText, outputText } from './output.ts'
import { toolErrorOf } from './tool-error.ts'
import { isStream, type StreamEnd, watchStream } from './streams.ts'

/** Runs the tool of an admitted call, tells the `afterToolCall` hooks, and writes the terminal record. */
export function run(attempt: Attempt, tool: Tool): MaybePromise<CallOutcome> {
  const { view, request, ports, callId, cancelling, input, trace } = attempt
  const { onProgress, context, deadlineMs = tool.deadlineMs ?? ports.deadlineMs } = request
  const startedMs = ports.clock.monotonicMs()
  const execution = {
    tool,
    input,
    callId,
    caller: view.caller,
    cancelling,
    onProgress: onProgress && safely(onProgress, ports.onFault),
    context,
    startedMs,
    deadlineMs,
    through: attempt,
  }
  const running = trace ? trace.within(() => execute(execution, ports)) : execute(execution, ports)
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
  releaseSlots(attempt)
  return conclude(attempt, tool, toEnd(attempt, executed, attempt.ports.clock.monotonicMs() - startedMs))
}

/** How a call ended: what its hooks, its record and its trace are told. */
interface End {
  readonly outcome: CallDone | CallFailed
  readonly event: AttemptEvent
  readonly fields: AuditFields
}

function toEnd(attempt: Attempt, executed: Executed, durationMs: number): End {
  if (!executed.ok) return toFailed(attempt, executed.code, executed.error, durationMs)
  const { output, cut } = capOutput(executed.output, attempt.ports.maxOutputChars)
  const fields = { duration_ms: toMicros(durationMs), detail: cut ? OUTPUT_CUT : undefined }
  const error = toolErrorOf(executed.output)
  const outcome = new Done(attempt.callId, output, durationMs, error !== undefined)
  if (error === undefined) return { outcome, event: 'tool_result', fields }
  return { outcome, event: 'tool_result', fields: { ...fields, reason: TOOL_ERROR, error, is_error: true } }
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
  const reason = halted ? 'halted' : isErrorOf(error, GateClosedError) ? 'gate_closed' : code
  const fields = { duration_ms: toMicros(durationMs), reason, error: cutText(messageOf(error), MAX_ERROR_LENGTH) }
  return { outcome: { status: 'failed', callId, code, error, durationMs, text }, event, fields }
}

function toMicros(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

function conclude(attempt: Attempt, tool: Tool, ended: End): MaybePromise<CallOutcome> {
  if (attempt.hooks.length === 0) return record(attempt, ended)
  return chain(tellHooks(attempt, tool, ended.outcome), () => record(attempt, ended))
}

function tellHooks(attempt: Attempt, tool: Tool, outcome: CallDone | CallFailed): MaybePromise<void> {
  const { durationMs } = outcome
  const how: CallEnd =
    outcome.status === 'done'
      ? { ok: true, durationMs, output: outcome.output }
      : { ok: false, durationMs, error: outcome.error }
  return tellAfter(attempt.hooks, toHooked(attempt, tool, attempt.cancelling), how, hookPorts(attempt.ports))
}

/** The answer stands, whatever becomes of its record. */
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

/** Passes a stream on as it comes. Its call ends with it: at its end, its error, or when nobody wants the rest. */
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
    await conclude(attempt, tool, toStreamEnd(attempt, how, lasting, clock.monotonicMs() - startedMs))
  }
  const options = { onEnd, deadlines, clock, deadlineMs, cancelling: lasting, maxChars }
  try {
    return new Done(callId, watchStream(stream as AsyncIterable<unknown>, options), passedMs, false)
  } catch (error) {
    // What looks like a stream and throws when it is opened is none.
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

/** A class, as a literal with a getter costs a hidden class of its own for each call. */
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

  /** Made when it is asked for: a host that passes the output on needs no text of it. */
  get text(): string {
    return isStream(this.output) ? '(a stream)' : outputText(this.output)
  }
}
