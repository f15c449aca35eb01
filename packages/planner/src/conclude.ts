import { randomUUID } from 'node:crypto'
import type { View } from '@toolgate/core'
import type { Meter } from './budgets.ts'
import { toolsOf } from './ceiling.ts'
import type { Teller } from './events.ts'
import { identityOf } from './identity.ts'
import type { Leg } from './leg.ts'
import type { PlannerParts } from './parts.ts'
import { type LevelState, openCallsOf, type PauseState, toStorable } from './pause.ts'
import type { FailureReason, RunReport, RunResult } from './result.ts'
import type { LevelEnd } from './scope.ts'
import type { Stopping } from './stopping.ts'
import { untilAborted } from './until-aborted.ts'

/** A leg whose conversation has ended, or stands still. */
export interface Ended {
  readonly end: LevelEnd['end']
  readonly level: LevelState
  readonly view: View
  readonly meter: Meter
  readonly report: RunReport
  readonly teller: Teller
}

/** Gives the result of a leg; one that pauses is stored first. */
export async function conclude(parts: PlannerParts, leg: Leg, ended: Ended): Promise<RunResult> {
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
  // Whole, as the token writes it so.
  const expiresAt = Math.floor(parts.clock.wallMs()) + parts.pauseMs
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
  const { signal } = leg.stopping
  const put = () => parts.pauses.put(state, expiresAt)
  // One that was given up while its last call ran is kept all the same: what waits is the host's to answer, or not.
  const id = await (signal.aborted ? put() : untilAborted(signal, put))
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

function failureOf({ reason, error }: Extract<LevelEnd['end'], { kind: 'failed' }>, stopping: Stopping): FailureReason {
  if (stopping.isLate) return 'budget_time'
  return stopping.signal.aborted && error === stopping.signal.reason ? 'aborted' : reason
}
