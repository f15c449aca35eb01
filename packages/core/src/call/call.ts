import type { Decision, Reason } from '../decide/decision.ts'
import { messageFor } from '../decide/message.ts'
import { ToolgateError } from '../errors.ts'
import type { Approval, MaybePromise } from '../ports.ts'
import type { Tool } from '../tools/tool.ts'
import {
  type Attempt,
  type CallPorts,
  type CallRequest,
  type CallView,
  checkRequest,
  giveBack,
  namesOf,
  openAttempt,
  startTrace,
  writeLast,
} from './attempt.ts'
import { asksPeople, type Check, CHECKS, CHECKS_TO_ASK, type Stop } from './checks.ts'
import type { CallOutcome, CallRefused, CallWaiting } from './outcome.ts'
import { approvalsFull, storeFailed } from './refusals.ts'
import { run } from './run.ts'

/** Makes one call: it passes the checks and runs, or ends with the first that stops it. It leaves one terminal record. */
export function call(view: CallView, request: CallRequest, ports: CallPorts): Promise<CallOutcome> {
  return passChecks(view, request, ports, CALLING)
}

/**
 * Asks a person for a call that policy lets run only with their word, and runs nothing: for hosts whose own loop
 * must know before. `undefined` where nobody has to be asked, or the person has said yes: then make the call,
 * which is decided again.
 *
 * One that waits or is refused here was an attempt, with its terminal record.
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
  readonly checks: readonly Check[]
  /** What comes after the last check, in the same turn. */
  readonly next: (attempt: Attempt, tool: Tool) => MaybePromise<Passed>
}

const CALLING: Way<CallOutcome> = { onlyAsks: false, checks: CHECKS, next: run }
const ASKING: Way<undefined> = { onlyAsks: true, checks: CHECKS_TO_ASK, next: leaveNoTrace }

/** An attempt that finds nobody to ask was none: the call is. */
function leaveNoTrace({ ports }: Attempt): undefined {
  ports.live.end()
}

/** Where everything answers at once, all of it happens in one turn. */
async function passChecks<Passed>(
  view: CallView,
  request: CallRequest,
  ports: CallPorts,
  { onlyAsks, checks, next }: Way<Passed>,
): Promise<Passed | CallRefused | CallWaiting> {
  const attempt = openAttempt(view, request, ports, onlyAsks)
  const { tool } = attempt.decided
  if (tool === undefined) return end(attempt, { decision: view.explainDecided(attempt.decided) })
  let stop = nextStop(attempt, tool, checks)
  while (stop instanceof Promise) stop = (await stop) ?? nextStop(attempt, tool, checks)
  return stop === undefined ? next(attempt, tool) : end(attempt, stop)
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
  // The store works: it is the user who asks for too much.
  if (error instanceof ToolgateError && error.code === 'approval_too_many') return { decision: approvalsFull(error) }
  ports.onFault(error)
  return { decision: storeFailed(error) }
}

async function end(attempt: Attempt, { decision, approval }: Stop): Promise<CallRefused | CallWaiting> {
  await giveBack(attempt)
  if (attempt.onlyAsks) startTrace(attempt)
  return approval ? waitFor(attempt, approval, decision) : refuse(attempt, decision)
}

/** The names are the host's to give: where it fails, none is told. */
function told(attempt: Attempt, decision: Decision): string {
  const names = namesOf(attempt)
  try {
    return messageFor(decision, names)
  } catch (error) {
    attempt.ports.onFault(error)
    return messageFor(decision, { ...names, visible: () => [] })
  }
}

async function refuse(attempt: Attempt, decision: Decision): Promise<CallRefused> {
  const { code, text: detail, limit, resetMs } = decision.reasons[0] as Reason
  await writeLast(attempt, EVENTS.get(code) ?? 'tool_blocked', { reason: code, detail, limit, reset_ms: resetMs })
  attempt.trace?.end({ status: 'refused', code, input: attempt.input })
  return { status: 'refused', callId: attempt.callId, decision, text: told(attempt, decision) }
}

const EVENTS: ReadonlyMap<Reason['code'], 'tool_rate_limited' | 'tool_abandoned'> = new Map([
  ['rate_limited', 'tool_rate_limited'],
  ['caller_gone', 'tool_abandoned'],
  ['gate_closed', 'tool_abandoned'],
])

async function waitFor(attempt: Attempt, approval: Approval, decision: Decision): Promise<CallWaiting> {
  const detail = decision.reasons[0]?.text
  await writeLast(attempt, 'tool_approval_required', { reason: 'approval_required', detail, approval_id: approval.id })
  attempt.trace?.end({ status: 'waiting', code: 'approval_required', input: attempt.input })
  return { status: 'waiting', callId: attempt.callId, decision, approval, text: told(attempt, decision) }
}
