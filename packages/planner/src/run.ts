import { randomUUID } from 'node:crypto'
import { ToolgateError, type View } from '@toolgate/core'
import { createMeter, meetBudgets, type Meter } from './budgets.ts'
import { conclude } from './conclude.ts'
import { createTeller, type Teller } from './events.ts'
import { joinPrepareSteps } from './join-prepare-steps.ts'
import type { Begun, CheckedLeg, Leg, LegRequest } from './leg.ts'
import { runLevel } from './level.ts'
import type { PlannerParts } from './parts.ts'
import type { LevelState } from './pause.ts'
import { addUsage, type FailureReason, NO_USAGE, type RunReport, type RunResult, type Usage } from './result.ts'
import type { RunShared } from './scope.ts'
import type { Stopping } from './stopping.ts'
import { checkSubAgents } from './sub-agent.ts'
import { takeTurn, type Turn } from './turns.ts'
import { untilAborted } from './until-aborted.ts'

/** Runs one leg in its session's turn. What becomes of the model is a value; misuse throws. */
export async function runLeg(parts: PlannerParts, request: LegRequest): Promise<RunResult> {
  const { caller, options, stopping } = request
  const { clock, onFault, sessions } = parts
  const { signal } = stopping
  const askedMs = clock.monotonicMs()
  // Its place in the queue first, before anything is waited for: the order is that of asking.
  const taking = takeTurn(sessions, caller, { signal, deadlineMs: options.queueDeadlineMs, onFault })
  const left = taking.catch(() => undefined)
  try {
    const leg: Leg = { ...request, ...(await checkedInTime(request)) }
    return await runInTurn(parts, leg, { taking, askedMs })
  } catch (error) {
    // It may still stand in the queue.
    stopping.abort(error)
    throw error
  } finally {
    stopping.close()
    await (await left)?.end()
  }
}

/** A store that does not answer holds no run that was given up: that one has no past, and begins nothing. */
async function checkedInTime({ check, stopping: { signal } }: LegRequest): Promise<CheckedLeg> {
  try {
    return await untilAborted(signal, check)
  } catch (error) {
    if (!isAbort(error, signal)) throw error
    return { runId: randomUUID(), app: undefined, before: undefined, begin: () => Promise.reject(error) }
  }
}

async function runInTurn(
  parts: PlannerParts,
  leg: Leg,
  { taking, askedMs }: { taking: Promise<Turn>; askedMs: number },
): Promise<RunResult> {
  const { runId, caller, options, stopping } = leg
  const { clock, onEvent, onFault } = parts
  const teller = createTeller({ runId, caller, clock, onFault, listeners: [onEvent, options.onEvent] })
  const waitedMs = () => clock.monotonicMs() - askedMs
  if (caller.session !== undefined) teller.tell({ type: 'run-queued' })
  try {
    await taking
  } catch (error) {
    return neverBegun(leg, teller, { error, reason: queueFailureOf(error, stopping), waitedMs: waitedMs() })
  }
  try {
    const begun = await untilAborted(stopping.signal, () => leg.begin())
    return await runBegun(parts, leg, begun, { teller, waitedMs: waitedMs() })
  } catch (error) {
    if (isAbort(error, stopping.signal))
      return neverBegun(leg, teller, { error, reason: 'aborted', waitedMs: waitedMs() })
    const reason = error instanceof ToolgateError ? error.code : 'fault'
    teller.tell({ type: 'run-ended', status: 'failed', reason, durationMs: waitedMs() })
    throw error
  }
}

async function runBegun(
  parts: PlannerParts,
  leg: Leg,
  begun: Begun,
  { teller, waitedMs }: { teller: Teller; waitedMs: number },
): Promise<RunResult> {
  const { stopping, options, before } = leg
  const { view, resumed } = begun
  checkSubAgents(view)
  const budgets = meetBudgets(parts.budgets, before?.budgets, options.budgets)
  const meter = createMeter(budgets, parts.clock, before?.used)
  stopping.endAfter(meter.timeLeftMs())
  const warnings = new Set(warningsOf(view))
  let usage = before?.usage ?? NO_USAGE
  const shared: RunShared = {
    gate: parts.gate,
    runId: leg.runId,
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
  teller.tell(resumed ? { type: 'run-resumed', waitedMs, tools, ...resumed } : { type: 'run-started', waitedMs, tools })
  const { end, level } = await runLevel({
    shared,
    view,
    model: parts.model,
    stopWhen: parts.stopWhen,
    prepareStep: joinPrepareSteps(parts.prepareStep, options.prepareStep),
    teller,
    signal: stopping.signal,
    agents: [],
    level: begun.level,
    onStream: leg.onStream && ((stream) => leg.onStream?.(stream, leg.runId)),
  })
  meter.stop()
  const report = toReport(leg, { level, usage, meter, view, warnings })
  return conclude(parts, leg, { end, level, view, meter, report, teller })
}

function toReport(
  { runId }: Leg,
  {
    level,
    usage,
    meter,
    view,
    warnings,
  }: { level: LevelState; usage: Usage; meter: Meter; view: View; warnings: ReadonlySet<string> },
): RunReport {
  return {
    runId,
    text: level.steps.at(-1)?.text ?? '',
    messages: level.messages,
    steps: level.steps,
    usage,
    used: meter.used(),
    notices: view.notices,
    warnings: [...warnings],
  }
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && error === signal.reason
}

function queueFailureOf(error: unknown, { signal }: Stopping): FailureReason {
  if (signal.aborted) return 'aborted'
  return error instanceof ToolgateError && error.code === 'lock_timeout' ? 'queue_timeout' : 'session_unavailable'
}

/** A run that was given up, or that could not wait any longer, before its turn came: nothing of it has happened. */
function neverBegun(
  leg: Leg,
  teller: Teller,
  { error, reason, waitedMs }: { error: unknown; reason: FailureReason; waitedMs: number },
): RunResult {
  const used = leg.before?.used ?? { steps: 0, calls: 0, timeMs: 0, tokens: 0 }
  teller.tell({ type: 'run-ended', status: 'failed', reason, durationMs: waitedMs })
  return {
    status: 'failed',
    reason,
    error,
    runId: leg.runId,
    text: '',
    messages: [],
    steps: [],
    usage: leg.before?.usage ?? NO_USAGE,
    used,
    notices: [],
    warnings: [],
  }
}

function warningsOf({ failure, foreign }: View): readonly string[] {
  const failed = failure === undefined ? [] : [`the visibility of this run failed, so it sees no tools: ${failure}`]
  return [...failed, ...foreign.map((id) => `the visibility of this run names "${id}", which it was not given`)]
}
