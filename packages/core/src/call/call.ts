import type { Decision, Reason } from '../decide/decision.ts'
import { messageFor } from '../decide/message.ts'
import type { Approval } from '../ports.ts'
import { type Admission, admit, admitStill, asksPeople } from './admit.ts'
import {
  type Attempt,
  type CallRequest,
  checkRequest,
  type CallPorts,
  namesOf,
  openAttempt,
  type CallView,
  startTrace,
  writeLast,
} from './attempt.ts'
import type { CallOutcome, CallRefused, CallWaiting } from './outcome.ts'
import { run } from './run.ts'

/**
 * Takes one call through the door: it is admitted, refused or left waiting (see `admit`), and what is admitted runs
 * (see `run`). Whatever becomes of it, it leaves one terminal record.
 */
export async function call(view: CallView, request: CallRequest, ports: CallPorts): Promise<CallOutcome> {
  const attempt = openAttempt(view, request, ports)
  const admitting = admit(attempt)
  let admission: Admission
  if (admitting instanceof Promise) {
    const still = admitStill(attempt, await admitting)
    admission = still instanceof Promise ? await still : still
  } else admission = admitting
  if (admission.kind === 'admitted') return run(attempt, admission.tool)
  return stop(attempt, admission)
}

/**
 * Asks a person for a call that policy lets run only with their word, and runs nothing: for hosts whose own loop
 * wants to know before. `undefined` where nobody has to be asked, or who was asked has said yes: then make the call,
 * which is decided anew.
 *
 * One that waits or is refused here was an attempt, with its terminal record.
 */
export async function requestApproval(
  view: CallView,
  request: CallRequest,
  ports: CallPorts,
): Promise<CallRefused | CallWaiting | undefined> {
  checkRequest(request)
  if (!asksPeople(view, request, ports)) return undefined
  const attempt = openAttempt(view, request, ports, { onlyAsks: true })
  const admission = await admitStill(attempt, await admit(attempt))
  if (admission.kind === 'refused' || admission.kind === 'waiting') {
    startTrace(attempt)
    return stop(attempt, admission)
  }
  // It was no attempt: the call is.
  ports.live.end()
  return undefined
}

function stop(attempt: Attempt, admission: Stopped): Promise<CallRefused | CallWaiting> {
  switch (admission.kind) {
    case 'refused':
      return refuse(attempt, admission.decision)
    case 'waiting':
      return waitFor(attempt, admission.approval, admission.decision)
    case 'cleared':
      throw new TypeError('only an attempt that asks is cleared')
  }
}

type Stopped = Exclude<Admission, { kind: 'admitted' }>

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
