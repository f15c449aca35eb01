import type { Decision } from '../decision/outcome.ts'
import { type Reason, reason } from '../decision/reason.ts'
import { messageOf, type ToolgateError } from '../errors.ts'
import type { Approval, InputProblem, LimitAnswer } from '../ports.ts'
import type { LimitUseOf } from './limits.ts'

/** The decisions that the door itself makes: what stops a call that the layers let pass. */

export function notExecutable(): Decision {
  return denial('door', 'tool_not_executable', 'it is described here and executed elsewhere')
}

export function callerGone(): Decision {
  return denial('door', 'caller_gone', 'the caller went away before the call')
}

export function gateClosed(): Decision {
  return denial('door', 'gate_closed', 'the gate was closed before the call', { message: 'the gate was closed' })
}

export function toolChanged(): Decision {
  return denial('door', 'tool_changed', 'its definition changed while the call was on its way', {
    message: 'the tool has just changed; look at it again',
  })
}

export function storeFailed(error: unknown): Decision {
  return denial('door', 'store_failed', `a store failed: ${messageOf(error)}`, {
    message: 'the gate cannot decide now',
  })
}

export function auditFailed(error: unknown): Decision {
  return denial('door', 'audit_failed', `the audit failed: ${messageOf(error)}`, {
    message: 'the call cannot be recorded now',
  })
}

export function invalidInput({ pointer, message }: InputProblem): Decision {
  return denial('input', 'input_invalid', `the input at "${pointer}" ${message}`, {
    pointer,
    message: `invalid input at "${pointer}": ${message}`,
  })
}

export function rateLimited(uses: readonly LimitUseOf[], { refused, resetMs }: LimitAnswer): Decision {
  const use = uses[refused] ?? uses[0]
  return denial('limits', 'rate_limited', `the limit ${use?.rule}:${use?.label} is used up`, {
    limit: use?.label,
    resetMs,
  })
}

export function approvalRejected({ decidedBy, reason: why, id }: Approval): Decision {
  return denial(
    'approval',
    'approval_rejected',
    `approval ${id} was rejected by ${decidedBy}${why ? `: ${why}` : ''}`,
    {
      message: `a person rejected this call${why ? `: ${why}` : '.'}`,
    },
  )
}

export function approvalsFull(error: ToolgateError): Decision {
  return denial('approval', 'approvals_full', error.message, {
    message: 'too many approvals are waiting for a person',
  })
}

export function approvalUsed(): Decision {
  return denial('approval', 'approval_used', 'the approval was used or expired meanwhile', {
    message: 'its approval was already used; call again to ask anew',
  })
}

export function approvalNeeded(): Decision {
  return denial('approval', 'approval_required', 'an approval came to be needed while the call was on its way', {
    outcome: 'deny',
    message: 'it has come to need an approval; call again to ask for one',
  })
}

function denial(layer: Reason['layer'], code: Reason['code'], text: string, more: Partial<Reason> = {}): Decision {
  const one = reason(layer, code, text, more)
  return { outcome: one.outcome, reasons: [one] }
}
