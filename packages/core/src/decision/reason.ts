import type { Layer, OutcomeWord } from './words.ts'

/** How a refusal with this code is told to the model; see `told.ts`. */
export type Telling =
  | 'hidden'
  | 'blocked'
  | 'unavailable'
  | 'locked'
  | 'suspended'
  | 'inactive'
  | 'limited'
  | 'busy'
  | 'waiting'

/**
 * The one table of reasons: `code → the outcome it gives, how it is told`.
 *
 * Codes are stable: audit rows, HTTP bodies and tests name them.
 */
export const REASONS = {
  tool_not_found: { outcome: 'deny', telling: 'hidden' },
  policy_denied: { outcome: 'deny', telling: 'hidden' },
  policy_not_allowed: { outcome: 'deny', telling: 'hidden' },
  policy_tag_missing: { outcome: 'deny', telling: 'hidden' },
  policy_error: { outcome: 'deny', telling: 'hidden' },
  policy_ask: { outcome: 'ask', telling: 'waiting' },
  scope_missing: { outcome: 'deny', telling: 'hidden' },
  app_hidden: { outcome: 'deny', telling: 'hidden' },
  visibility_hidden: { outcome: 'deny', telling: 'hidden' },
  visibility_error: { outcome: 'deny', telling: 'hidden' },
  step_inactive: { outcome: 'wait', telling: 'inactive' },
  group_unavailable: { outcome: 'wait', telling: 'unavailable' },
  group_locked: { outcome: 'wait', telling: 'locked' },
  nothing_to_open: { outcome: 'deny', telling: 'hidden' },
  switched_off: { outcome: 'wait', telling: 'unavailable' },
  tool_suspended: { outcome: 'wait', telling: 'suspended' },
  tool_quarantined: { outcome: 'deny', telling: 'hidden' },
  halted: { outcome: 'wait', telling: 'unavailable' },
  tool_not_executable: { outcome: 'wait', telling: 'unavailable' },
  input_invalid: { outcome: 'deny', telling: 'blocked' },
  input_denied: { outcome: 'deny', telling: 'blocked' },
  hook_denied: { outcome: 'deny', telling: 'blocked' },
  hook_error: { outcome: 'deny', telling: 'blocked' },
  rate_limited: { outcome: 'wait', telling: 'limited' },
  too_busy: { outcome: 'wait', telling: 'busy' },
  approval_required: { outcome: 'ask', telling: 'waiting' },
  approvals_full: { outcome: 'wait', telling: 'busy' },
  approval_used: { outcome: 'deny', telling: 'blocked' },
  approval_rejected: { outcome: 'deny', telling: 'blocked' },
  approval_revoked: { outcome: 'deny', telling: 'blocked' },
  tool_changed: { outcome: 'deny', telling: 'blocked' },
  caller_gone: { outcome: 'deny', telling: 'blocked' },
  gate_closed: { outcome: 'deny', telling: 'blocked' },
  store_failed: { outcome: 'deny', telling: 'blocked' },
  audit_failed: { outcome: 'deny', telling: 'blocked' },
} as const satisfies Record<string, { outcome: OutcomeWord; telling: Telling }>

export type ReasonCode = keyof typeof REASONS

/** One layer's answer about one tool, in words for a support engineer. Never shown to the model but for `message`. */
export interface Reason {
  readonly layer: Layer
  readonly code: ReasonCode
  readonly outcome: OutcomeWord
  /** Position among the reasons of its layer: policies and clauses in the order they were written. */
  readonly order: number
  /** For people: which policy, clause, group or rule said so, and why. */
  readonly text: string
  /** What the caller may know: of a denial, what its author says; of what is unavailable, why. */
  readonly message?: string | undefined
  readonly policy?: string | undefined
  readonly clause?: string | undefined
  readonly group?: string | undefined
  readonly suggestion?: string | undefined
  /** RFC 6901 pointer into the input. */
  readonly pointer?: string | undefined
  /** As `20/60`: at most 20 in 60 seconds. */
  readonly limit?: string | undefined
  readonly resetMs?: number | undefined
  readonly since?: number | undefined
}

/** Gives a reason; its outcome comes from the table. */
export function reason(
  layer: Layer,
  code: ReasonCode,
  text: string,
  more: Partial<Omit<Reason, 'layer' | 'code' | 'text'>> = {},
): Reason {
  return { layer, code, outcome: REASONS[code].outcome, order: 0, text, ...more }
}
