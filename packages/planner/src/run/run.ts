import { randomUUID } from 'node:crypto'
import { ToolgateError, type View } from '@toolgate/core'
import { createMeter, type Meter, smallestBudgets } from '../budgets.ts'
import { createEmitter, type PlannerEmitter } from '../events.ts'
import type { PlannerParts } from '../parts.ts'
import { type Conversation, identityOf, openCallsOf, type PauseState, toolsOf } from '../pause/state.ts'
import { toStorable } from '../pause/store.ts'
import { addUsage, type FailureReason, NO_USAGE, type RunReport, type RunResult, type Usage } from '../result.ts'
import { checkSubAgents } from '../sub-agent.ts'
import { joinPrepareSteps, runConversation } from './conversation.ts'
import type { ConversationEnd, RunShared } from './scope.ts'
import type { CheckedSegment, RunSegment, SegmentRequest, SegmentStart } from './segment.ts'
import { type StoppingTurn, takeTurn, type Turn, untilAborted } from './turn.ts'

/** Runs one segment in its session's turn. A model failure is a value; misuse throws. */
export async function runSegment(parts: PlannerParts, request: SegmentRequest): Promise<RunResult> {
  const { caller, options, stopping } = request
  const { clock, onFault, sessions } = parts
  const { signal } = stopping
  const askedMs = clock.monotonicMs()
  // The run joins the queue before any wait, so that runs keep their order.
  const onLost = (reason: unknown) => stopping.abort(reason)
  const taking = takeTurn(sessions, caller, { signal, deadlineMs: options.queueDeadlineMs, onFault, onLost })
  const left = taking.catch(() => undefined)
  try {
    const segment: RunSegment = { ...request, ...(await checkedInTime(request)) }
    return await runInTurn(parts, segment, { taking, askedMs })
  } catch (error) {
    // The run may still be in the queue.
    stopping.abort(error)
    throw error
  } finally {
    stopping.close()
    await (await left)?.end()
  }
}

/** Runs the check, but stops waiting for a silent store if the run is cancelled. Nothing has begun then. */
async function checkedInTime({ check, stopping: { signal } }: SegmentRequest): Promise<CheckedSegment> {
  try {
    return await untilAborted(signal, check)
  } catch (error) {
    if (!isAbort(error, signal)) throw error
    return { runId: randomUUID(), app: undefined, words: {}, before: undefined, begin: () => Promise.reject(error) }
  }
}

async function runInTurn(
  parts: PlannerParts,
  segment: RunSegment,
  { taking, askedMs }: { taking: Promise<Turn>; askedMs: number },
): Promise<RunResult> {
  const { runId, caller, options, stopping } = segment
  const { clock, onEvent, onFault } = parts
  const events = createEmitter({ runId, caller, clock, onFault, listeners: [onEvent, options.onEvent] })
  const waitedMs = () => clock.monotonicMs() - askedMs
  if (caller.session !== undefined) events.emit({ type: 'run-queued' })
  let turn: Turn
  try {
    turn = await taking
  } catch (error) {
    return neverBegun(segment, events, { error, reason: queueFailureOf(error, stopping), waitedMs: waitedMs() })
  }
  try {
    const begun = await untilAborted(stopping.signal, () => segment.begin())
    return await runBegun(parts, segment, begun, { events, waitedMs: waitedMs(), turn })
  } catch (error) {
    if (isAbort(error, stopping.signal))
      return neverBegun(segment, events, { error, reason: 'aborted', waitedMs: waitedMs() })
    const reason = error instanceof ToolgateError ? error.code : 'fault'
    events.emit({ type: 'run-ended', status: 'failed', reason, durationMs: waitedMs() })
    throw error
  }
}

async function runBegun(
  parts: PlannerParts,
  segment: RunSegment,
  begun: SegmentStart,
  { events, waitedMs, turn }: { events: PlannerEmitter; waitedMs: number; turn: Turn },
): Promise<RunResult> {
  const { stopping, options, before } = segment
  const { view, resumed } = begun
  checkSubAgents(view)
  const budgets = smallestBudgets(parts.budgets, before?.budgets, options.budgets)
  const meter = createMeter(budgets, parts.clock, before?.used)
  stopping.endAfter(meter.timeLeftMs())
  const warnings = new Set(warningsOf(view))
  let usage = before?.usage ?? NO_USAGE
  const shared: RunShared = {
    gate: parts.gate,
    runId: segment.runId,
    words: segment.words,
    meter,
    settings: parts.settings,
    offering: parts.offering,
    catalogOf: parts.catalogOf,
    state: options.state,
    answers: begun.answers,
    approving: new Map(),
    warn: (text) => void warnings.add(text),
    addUsage: (more) => void (usage = addUsage(usage, more)),
  }
  const tools = view.ids
  events.emit(resumed ? { type: 'run-resumed', waitedMs, tools, ...resumed } : { type: 'run-started', waitedMs, tools })
  const { end, conversation } = await runConversation({
    shared,
    view,
    model: parts.model,
    stopWhen: parts.stopWhen,
    prepareStep: joinPrepareSteps(parts.prepareStep, options.prepareStep),
    events,
    signal: stopping.signal,
    agents: [],
    conversation: begun.conversation,
    onStream: segment.onStream && ((stream) => segment.onStream?.(stream, segment.runId)),
  })
  meter.stop()
  const report = toReport(segment, { conversation, usage, meter, view, warnings })
  return conclude(parts, segment, { end, conversation, view, meter, report, events, turn })
}

function toReport(
  { runId }: RunSegment,
  {
    conversation,
    usage,
    meter,
    view,
    warnings,
  }: { conversation: Conversation; usage: Usage; meter: Meter; view: View; warnings: ReadonlySet<string> },
): RunReport {
  return {
    runId,
    text: conversation.steps.at(-1)?.text ?? '',
    messages: conversation.messages,
    steps: conversation.steps,
    usage,
    used: meter.used(),
    notices: view.notices,
    warnings: [...warnings],
  }
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && error === signal.reason
}

function queueFailureOf(error: unknown, { signal }: StoppingTurn): FailureReason {
  if (signal.aborted) return 'aborted'
  return error instanceof ToolgateError && error.code === 'lock_timeout' ? 'queue_timeout' : 'session_unavailable'
}

/** Returns the result of a run that was cancelled or timed out while it waited for its turn. */
function neverBegun(
  segment: RunSegment,
  events: PlannerEmitter,
  { error, reason, waitedMs }: { error: unknown; reason: FailureReason; waitedMs: number },
): RunResult {
  const used = segment.before?.used ?? { steps: 0, calls: 0, timeMs: 0, tokens: 0 }
  events.emit({ type: 'run-ended', status: 'failed', reason, durationMs: waitedMs })
  return {
    status: 'failed',
    reason,
    error,
    runId: segment.runId,
    text: '',
    messages: [],
    steps: [],
    usage: segment.before?.usage ?? NO_USAGE,
    used,
    notices: [],
    warnings: [],
  }
}

function warningsOf({ failure, foreign }: View): readonly string[] {
  const failed = failure === undefined ? [] : [`the visibility of this run failed, so it sees no tools: ${failure}`]
  return [...failed, ...foreign.map((id) => `the visibility of this run names "${id}", which is not one of its tools`)]
}

/** A segment whose conversation has ended or paused. */
interface EndedSegment {
  readonly end: ConversationEnd['end']
  readonly conversation: Conversation
  readonly view: View
  readonly meter: Meter
  readonly report: RunReport
  readonly events: PlannerEmitter
  readonly turn: Turn
}

/** Returns the result of a segment. A pause is stored first. */
async function conclude(parts: PlannerParts, segment: RunSegment, outcome: EndedSegment): Promise<RunResult> {
  const { end, report } = outcome
  switch (end.kind) {
    case 'finished':
    case 'stopped':
      return finish({ ...report, status: 'done', reason: end.kind }, outcome)
    case 'failed':
      return finish(
        { ...report, status: 'failed', reason: failureOf(end, segment.stopping), error: end.error },
        outcome,
      )
    case 'paused':
      try {
        return await pause(parts, segment, outcome)
      } catch (error) {
        return finish({ ...report, status: 'failed', reason: 'pause_failed', error }, outcome)
      }
  }
}

async function pause(parts: PlannerParts, segment: RunSegment, outcome: EndedSegment): Promise<RunResult> {
  const { view, meter, report, events, turn } = outcome
  const { conversation, lost } = toStorable(outcome.conversation)
  // The token contains an integer.
  const expiresAt = Math.floor(parts.clock.wallMs()) + parts.pauseMs
  const identity = identityOf(segment.caller)
  const state: PauseState = {
    version: 1,
    nonce: randomUUID(),
    runId: segment.runId,
    identity,
    app: segment.app,
    tools: toolsOf(view),
    policyRevision: parts.gate.policyRevision,
    lineage: parts.lineage,
    budgets: meter.budgets,
    used: meter.used(),
    usage: report.usage,
    level: conversation,
  }
  const { signal } = segment.stopping
  const put = () => parts.pauses.put(state, { expiresAt, fence: turn.fence })
  // A cancelled run's pause is stored too, because the host may answer its waiting calls.
  const id = await (signal.aborted ? put() : untilAborted(signal, put))
  const resumeToken = parts.tokens.sign({ pause: id, expiresAt }, { identity, audience: parts.deployment })
  const pending = openCallsOf(conversation).map((open) => open.pending)
  events.emit({ type: 'run-paused', pending, expiresAt })
  const warnings = lost > 0 ? [...report.warnings, NOT_STORED] : report.warnings
  return { ...report, warnings, status: 'paused', resumeToken, expiresAt, pending }
}

const NOT_STORED = 'the context of this run is not plain JSON, so its resume does not have it: pass it again'

function finish(result: Exclude<RunResult, { status: 'paused' }>, { events, report }: EndedSegment): RunResult {
  const { status, reason } = result
  events.emit({ type: 'run-ended', status, reason, durationMs: report.used.timeMs })
  return result
}

function failureOf(
  { reason, error }: Extract<ConversationEnd['end'], { kind: 'failed' }>,
  stopping: StoppingTurn,
): FailureReason {
  if (stopping.isLate) return 'budget_time'
  return stopping.signal.aborted && error === stopping.signal.reason ? 'aborted' : reason
}
