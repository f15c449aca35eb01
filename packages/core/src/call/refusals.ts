import { type Decision, type Reason, reason } from '../decide/decision.ts'
import { isErrorOf, messageOf, ToolgateError } from '@toolgate/values'
import type { InputProblem } from '@toolgate/values/json'
import type { Approval, LimitAnswer, NoPlace, ReplicaLapse } from '../ports/ports.ts'
import type { CostError, LimitUseOf } from './costs.ts'
import { authorsText, costText } from './limit-words.ts'

/** Decisions made by the checks of a call. They stop a call that the layers allow. */

export function notExecutable(): Decision {
  return denial('door', 'tool_not_executable', 'it is described here and executed elsewhere')
}

/** Returns the refusal of a listed tool whose scopes the caller could get. */
export function scopeNeeded({ text, scopes = [] }: Reason): Decision {
  const message = `it needs the scope${scopes.length === 1 ? '' : 's'} ${scopes.join(', ')}`
  return denial('scopes', 'scope_needed', text, { message, scopes })
}

export function callerGone(why = 'the caller went away before the call'): Decision {
  return denial('door', 'caller_gone', why)
}

export function credentialEnded(): Decision {
  return denial('door', 'credential_ended', "the caller's key, token or login ended before the call", {
    message: 'your key, token or login is no longer valid',
  })
}

export function gateClosed(): Decision {
  return denial('door', 'gate_closed', 'the gate was closed before the call', { message: 'the gate was closed' })
}

export function replicaUnsure({ text, message }: ReplicaLapse): Decision {
  return denial('door', 'replica_unsure', text, { message })
}

export function toolChanged(): Decision {
  return denial('door', 'tool_changed', 'its definition changed while the call was on its way', {
    message: 'the tool has just changed; look at it again',
  })
}

export function storeFailed(error: unknown): Decision {
  return denial('door', 'store_failed', `a store or a validator failed: ${messageOf(error)}`, {
    message: 'the gate cannot decide now',
  })
}

export function auditFailed(error: unknown): Decision {
  const detail = isErrorOf(error, ToolgateError) && error.detail !== undefined ? ` ${error.detail}` : ''
  return denial('door', 'audit_failed', `the audit failed: ${messageOf(error)}${detail}`, {
    message: 'the call cannot be recorded now',
  })
}

export function invalidInput({ pointer, message }: InputProblem): Decision {
  return denial('input', 'input_invalid', `the input at "${pointer}" ${message}`, {
    pointer,
    message: `invalid input at "${pointer}": ${message}`,
  })
}

export function rateLimited(uses: readonly LimitUseOf[], { refused, remaining, resetMs }: LimitAnswer): Decision {
  const use = uses[refused] ?? uses[0]
  const { rule, label: limit, cost, max = 0, words } = use ?? {}
  // A call that costs more than the whole limit never fits.
  const fits = cost === undefined || cost <= max
  const amounts = { cost: cost ?? 1, left: remaining, max, resetMs: fits ? resetMs : undefined }
  const costs = cost === undefined ? undefined : costText(amounts, words)
  const message = words?.message === undefined ? costs : authorsText(words.message, amounts, words)
  const text = `the limit ${rule}:${limit}${costs === undefined ? ' is used up' : `: ${costs}`}`
  return denial('limits', 'rate_limited', text, {
    limit,
    ...(fits && { resetMs }),
    ...(message !== undefined && { message }),
    ...(words?.message !== undefined && { authored: true }),
  })
}

export function costInvalid({ use, message }: CostError): Decision {
  return denial('limits', 'cost_invalid', message, {
    limit: use.label,
    message: 'it is not known what this call would cost, or it costs more than one call may',
  })
}

export function noCapacity({ text, message }: NoPlace): Decision {
  return denial('limits', 'no_capacity', text, { message })
}

export function approvalRejected(approval: Approval): Decision {
  return saidNo(approval, 'approval_rejected', 'a person rejected this call')
}

export function approvalRevoked(approval: Approval): Decision {
  return saidNo(approval, 'approval_revoked', 'a person revoked the approval of this call')
}

function saidNo(
  { id, status, decidedBy, reason: why }: Approval,
  code: 'approval_rejected' | 'approval_revoked',
  text: string,
): Decision {
  return denial('approval', code, `approval ${id} was ${status} by ${decidedBy}${why ? `: ${why}` : ''}`, {
    message: `${text}${why ? `: ${why}` : '.'}`,
  })
}

export function approvalsFull(error: ToolgateError): Decision {
  return denial('approval', 'approvals_full', error.message, {
    message: 'too many approvals are waiting for a person',
  })
}

export function historyFull(error: ToolgateError): Decision {
  return denial('limits', 'history_full', error.detail ?? error.message, {
    message: 'too much has happened in your runs to keep track of more',
  })
}

export function approvalUsed(): Decision {
  return denial('approval', 'approval_used', 'the approval was used or revoked, or has expired, meanwhile', {
    message: 'its approval is no longer valid; call again to ask for one',
  })
}

export function approvalNeeded(): Decision {
  return denial('approval', 'approval_required', 'an approval came to be needed while the call was on its way', {
    outcome: 'deny',
    message: 'it has come to need an approval; call again to ask for one',
  })
}

export function approvalImpossible(purpose: string): Decision {
  return denial('approval', 'approval_required', `it needs an approval, which nobody can give to ${purpose} it`, {
    outcome: 'deny',
    message: 'it needs an approval for each call',
  })
}

function denial(layer: Reason['layer'], code: Reason['code'], text: string, more: Partial<Reason> = {}): Decision {
  const one = reason(layer, code, text, more)
  return { outcome: one.outcome, reasons: [one] }
}
