import { randomUUID } from 'node:crypto'
import { ToolgateError, type Caller, type View } from '@toolgate/core'
import { createMeter, meetBudgets, type Meter } from './budgets.ts'
import { toolsOf } from './ceiling.ts'
import { createTeller, type Teller } from './events.ts'
import { identityOf } from './identity.ts'
import { runLevel } from './level.ts'
import type { LegOptions } from './options.ts'
import type { PlannerParts } from './parts.ts'
import { type LevelState, openCallsOf, type PauseState, type PendingState, toStorable } from './pause.ts'
import { addUsage, type FailureReason, NO_USAGE, type RunReport, type RunResult, type Usage } from './result.ts'
import type { AnyPrepareStep, AnyStream, LevelEnd, RunShared } from './scope.ts'
import { createStopping, type Stopping } from './stopping.ts'
import { takeTurn, type Turn } from './turns.ts'
import { checkSubAgents } from './sub-agent.ts'

/** One leg of a run: from its beginning, or from a pause, to its end or its next pause. */
export interface LegRequest {
  readonly caller: Caller
  readonly options: LegOptions
  readonly stopping: ReturnType<typeof createStopping>
  /** Given the SDK's stream as soon as there is one. */
  readonly onStream?: ((stream: AnyStream, runId: string) => void) | undefined
  /** Done while it waits for its turn; what it throws comes out of the run, and nothing has happened. */
  check(): Promise<CheckedLeg>
}

export interface CheckedLeg {
  readonly runId: string
  readonly app: string | undefined
  /** What the run has used before this leg. */
  readonly before: Pick<PauseState, 'used' | 'usage' | 'budgets'> | undefined
  /** Done when it is the leg's turn; what it throws comes out of the run. */
  begin(): Promise<Begun>
}

type Leg = LegRequest & CheckedLeg

/** Where a leg begins. */
export interface Begun {
  readonly view: View
  readonly level: LevelState
  readonly answers: ReadonlyMap<PendingState, unknown>
  /** What is told of a leg that goes on. */
  readonly resumed: { readonly hidden: readonly string[]; readonly policyChanged: boolean } | undefined
}

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
    const leg: Leg = { ...request, ...(await request.check()) }
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
    return await runBegun(parts, leg, await leg.begin(), { teller, waitedMs: waitedMs() })
  } catch (error) {
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

interface Ended {
  readonly end: LevelEnd['end']
  readonly level: LevelState
  readonly view: View
  readonly meter: Meter
  readonly report: RunReport
  readonly teller: Teller
}

async function conclude(parts: PlannerParts, leg: Leg, ended: Ended): Promise<RunResult> {
  const { end, report } = ended
  switch (end.kind) {
    case 'finished':
    case 'stopped':
      return tellEnd({ ...report, status: 'done', reason: end.kind }, ended)
    case 'failed':
      return tellEnd({ ...report, status: 'failed', reason: failureOf(end, leg.stopping), error: end.error }, ended)
    case 'paused':
      try {
        return await pause(parts, leg, ended)
      } catch (error) {
        return tellEnd({ ...report, status: 'failed', reason: 'pause_failed', error }, ended)
      }
  }
}

async function pause(parts: PlannerParts, leg: Leg, ended: Ended): Promise<RunResult> {
  const { view, meter, report, teller } = ended
  const { level, lost } = toStorable(ended.level)
  const expiresAt = parts.clock.wallMs() + parts.pauseMs
  const identity = identityOf(leg.caller)
  const state: PauseState = {
    version: 1,
    nonce: randomUUID(),
    runId: leg.runId,
    identity,
    app: leg.app,
    tools: toolsOf(view),
    policyRevision: parts.gate.policyRevision,
    lineage: parts.lineage,
    budgets: meter.budgets,
    used: meter.used(),
    usage: report.usage,
    level,
  }
  const id = await parts.pauses.put(state, expiresAt)
  const resumeToken = parts.tokens.sign({ pause: id, expiresAt }, { identity, audience: parts.deployment })
  const pending = openCallsOf(level).map(({ told }) => told)
  teller.tell({ type: 'run-paused', pending, expiresAt })
  const warnings = lost > 0 ? [...report.warnings, NOT_STORED] : report.warnings
  return { ...report, warnings, status: 'paused', resumeToken, expiresAt, pending }
}

const NOT_STORED = 'the context of this run is not plain JSON, so its resume does not have it: give it again'

function tellEnd(result: Exclude<RunResult, { status: 'paused' }>, { teller, report }: Ended): RunResult {
  const { status, reason } = result
  teller.tell({ type: 'run-ended', status, reason, durationMs: report.used.timeMs })
  return result
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

function failureOf({ reason, error }: Extract<LevelEnd['end'], { kind: 'failed' }>, stopping: Stopping): FailureReason {
  if (stopping.isLate) return 'budget_time'
  return stopping.signal.aborted && error === stopping.signal.reason ? 'aborted' : reason
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

/** Both are asked, the planner's first: lists of tools are met, and of the rest the later word holds. */
function joinPrepareSteps(
  first: AnyPrepareStep | undefined,
  second: AnyPrepareStep | undefined,
): AnyPrepareStep | undefined {
  if (!first || !second) return first ?? second
  return async (context) => {
    const a = await first(context)
    const b = await second(a?.context === undefined ? context : { ...context, context: a.context })
    if (!a || !b) return a ?? b
    const given = new Map([...Object.entries(a), ...Object.entries(b).filter(([, value]) => value !== undefined)])
    const options = { ...a.options, ...b.options }
    return { ...Object.fromEntries(given), options, activeTools: meetLists(a.activeTools, b.activeTools) }
  }
}

function meetLists(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a && b ? a.filter((id) => b.includes(id)) : (a ?? b)
}
