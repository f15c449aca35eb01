import { type Decision, type Reason, ruleText } from '../decide/decision.ts'
import { messageFor } from '../decide/message.ts'
import type { Approval, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { ToolgateError } from '@toolgate/values'
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
  type Stop,
} from './attempt.ts'
import { asksPeople } from './deciding.ts'
import { editNote } from './editing.ts'
import type { CallOutcome, CallRefused, CallWaiting } from './outcome.ts'
import { countedIn, writeLast } from './records.ts'
import { approvalsFull, callerGone, historyFull, storeFailed } from './refusals.ts'
import { run } from './run.ts'

/** Makes one call: it passes the checks and runs, or ends at the first check that stops it. Leaves one terminal record. */
export function call(view: CallView, request: CallRequest, ports: CallPorts): Promise<CallOutcome> {
  return passChecks(view, request, ports, CALLING)
}

/**
 * Requests an approval if policy requires one, and runs nothing. Use it for hosts whose own loop must know before the call.
 * `undefined`: no approval is needed, or a person has approved. Then make the call, which is decided again.
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
interface CallWay<Passed> {
  /** Stops at the approval. */
  readonly onlyAsks: boolean
  /** Runs synchronously after the last check. */
  readonly next: (attempt: Attempt, tool: Tool) => MaybePromise<Passed>
}

const CALLING: CallWay<CallOutcome> = { onlyAsks: false, next: run }
const ASKING: CallWay<undefined> = { onlyAsks: true, next: leaveNoTrace }

/** An attempt that needs no approval leaves no record, because the call that follows leaves one. */
function leaveNoTrace({ ports }: Attempt): undefined {
  ports.live.end()
}

/** Runs the checks in order, synchronously if every answer is synchronous. */
async function passChecks<Passed>(
  view: CallView,
  request: CallRequest,
  ports: CallPorts,
  { onlyAsks, next }: CallWay<Passed>,
): Promise<Passed | CallRefused | CallWaiting> {
  const attempt = openAttempt(view, request, ports, onlyAsks)
  const { hooks } = attempt
  const { tool } = attempt.decided
  const { as } = request
  if (as?.kind === 'abandoned') return endStopped(attempt, { decision: callerGone(as.why) })
  if (tool === undefined) return endStopped(attempt, { decision: view.explainDecided(attempt.decided) })
  const checks = ports.current.checks[onlyAsks ? 'approval' : (as?.kind ?? 'call')]
  try {
    for (const check of checks) {
      if (
        (check.of === 'person' && !attempt.asksPerson) ||
        (check.of === 'hooks' && hooks.length === 0) ||
        (check.of === 'place' && ports.admission?.isNeeded === false)
      )
        continue
      const answer = check.run(attempt, tool)
      const stop = answer instanceof Promise ? await answer : answer
      if (stop !== undefined) return endStopped(attempt, stop)
    }
  } catch (error) {
    return endStopped(attempt, failure(attempt, error))
  }
  return next(attempt, tool)
}

/** Turns an error of a store, validator or condition into a refusal. No other place does. */
function failure({ ports }: Attempt, error: unknown): Stop {
  // The store works but is full.
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

/** Returns the text for the model. Lists no names if the host's `nameOf` throws. */
export function textFor(attempt: Attempt, decision: Decision): string {
  const names = namesOf(attempt)
  try {
    return messageFor(decision, names)
  } catch (error) {
    attempt.ports.onFault(error)
    return messageFor(decision, { ...names, nameOf: () => undefined, visible: () => [] })
  }
}

/** Tells the model first what an approver changed. */
function withNote(attempt: Attempt, text: string): string {
  const note = editNote(attempt, false)
  return note === undefined ? text : `${note} ${text}`
}

async function refuse(attempt: Attempt, decision: Decision): Promise<CallRefused> {
  const first = decision.reasons[0] as Reason
  const { code, text: detail, limit, resetMs } = first
  const fields = { reason: code, detail, clause: ruleText(first), limit, reset_ms: resetMs, read: countedIn(decision) }
  await writeLast(attempt, EVENTS.get(code) ?? 'tool_blocked', fields)
  attempt.trace?.end({ status: 'refused', code, input: attempt.input })
  return { status: 'refused', callId: attempt.callId, decision, text: withNote(attempt, textFor(attempt, decision)) }
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
  const waiting = [textFor(attempt, decision), whoDecides(attempt, approval)].filter(Boolean).join(' ')
  const text = withNote(attempt, waiting)
  return { status: 'waiting', callId: attempt.callId, decision, approval, text }
}

/** Returns the host's sentence about who decides. An error of the host does not change the outcome. */
function whoDecides({ ports }: Attempt, approval: Approval): string | undefined {
  try {
    return ports.whoDecides?.(approval)
  } catch (error) {
    ports.onFault(error)
    return undefined
  }
}
