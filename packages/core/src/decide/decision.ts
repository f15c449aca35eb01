import { type ClauseRef, clauseText } from '../policy/clause-ref.ts'
import type { FactRead } from '../ports/fact-read.ts'
import type { ApproverRule } from '../ports/ports.ts'

/** The outcomes of layers, strictest last. */
export const OUTCOMES = ['allow', 'ask', 'wait', 'deny'] as const
export type OutcomeWord = (typeof OUTCOMES)[number]

/** The layers of the decision before a call, in the order of their reasons. */
export const ASKED_LAYERS = [
  'catalog',
  'policy',
  'scopes',
  'app',
  'visibility',
  'step',
  'availability',
  'locks',
  'connections',
  'preferences',
  'pins',
  'halts',
] as const

/** The layers of the decision, and the checks of a call that can refuse. */
export const LAYER_ORDER = [...ASKED_LAYERS, 'input', 'hooks', 'limits', 'approval', 'door'] as const
export type Layer = (typeof LAYER_ORDER)[number]

/** The decision about one tool for one caller. */
export interface Decision {
  readonly outcome: OutcomeWord
  /** Every reason that holds, the deciding one first. Empty only for a plain allow. */
  readonly reasons: readonly Reason[]
}

const RANK: Readonly<Record<OutcomeWord, number>> = { allow: 0, ask: 1, wait: 2, deny: 3 }

/** Compares outcomes by strictness. Returns a negative number if `a` is stricter. */
export function compareStrictness(a: OutcomeWord, b: OutcomeWord): number {
  return RANK[b] - RANK[a]
}

/** Returns whether a tool with this outcome is visible and its call continues. */
export function mayGoOn(outcome: OutcomeWord): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

/**
 * Returns the strictest of several answers, with the reasons of all, the deciding ones first.
 *
 * The order does not matter, and adding an answer never loosens the result. Combine all layers of the gate with this
 * function only.
 *
 * @example
 * strictest([ask, deny]).outcome // 'deny'
 */
export function strictest(answers: Iterable<Decision>): Decision {
  let outcome: OutcomeWord = 'allow'
  const reasons: Reason[] = []
  for (const answer of answers) {
    if (compareStrictness(answer.outcome, outcome) < 0) outcome = answer.outcome
    reasons.push(...answer.reasons)
  }
  return { outcome, reasons: sortReasons(reasons) }
}

/** Orders reasons by strictness and then by the layers' own order, so that equal decisions read equally. */
export function sortReasons(reasons: readonly Reason[]): readonly Reason[] {
  return reasons.toSorted(
    (a, b) =>
      compareStrictness(a.outcome, b.outcome) ||
      LAYER_ORDER.indexOf(a.layer) - LAYER_ORDER.indexOf(b.layer) ||
      a.order - b.order,
  )
}

/** The form of the refusal text for this code. See `message.ts`. */
type MessageKind =
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
 * The table of all reasons: `code → its outcome, its message`.
 *
 * Codes are stable: audit rows, HTTP bodies and tests name them.
 */
export const REASONS = {
  tool_not_found: { outcome: 'deny', message: 'hidden' },
  policy_denied: { outcome: 'deny', message: 'hidden' },
  policy_not_allowed: { outcome: 'deny', message: 'hidden' },
  policy_tag_missing: { outcome: 'deny', message: 'hidden' },
  policy_error: { outcome: 'deny', message: 'hidden' },
  policy_ask: { outcome: 'ask', message: 'waiting' },
  scope_missing: { outcome: 'deny', message: 'hidden' },
  scope_step_up: { outcome: 'ask', message: 'unavailable' },
  scope_needed: { outcome: 'wait', message: 'unavailable' },
  app_hidden: { outcome: 'deny', message: 'hidden' },
  visibility_hidden: { outcome: 'deny', message: 'hidden' },
  visibility_error: { outcome: 'deny', message: 'hidden' },
  step_inactive: { outcome: 'wait', message: 'inactive' },
  group_unavailable: { outcome: 'wait', message: 'unavailable' },
  group_locked: { outcome: 'wait', message: 'locked' },
  nothing_to_open: { outcome: 'deny', message: 'hidden' },
  not_connected: { outcome: 'wait', message: 'unavailable' },
  switched_off: { outcome: 'wait', message: 'unavailable' },
  tool_suspended: { outcome: 'wait', message: 'suspended' },
  tool_quarantined: { outcome: 'deny', message: 'hidden' },
  halted: { outcome: 'wait', message: 'unavailable' },
  tool_not_executable: { outcome: 'wait', message: 'unavailable' },
  input_invalid: { outcome: 'deny', message: 'blocked' },
  input_denied: { outcome: 'deny', message: 'blocked' },
  history_unknown: { outcome: 'deny', message: 'blocked' },
  hook_denied: { outcome: 'deny', message: 'blocked' },
  hook_error: { outcome: 'deny', message: 'blocked' },
  rate_limited: { outcome: 'wait', message: 'limited' },
  history_full: { outcome: 'wait', message: 'busy' },
  cost_invalid: { outcome: 'deny', message: 'blocked' },
  too_busy: { outcome: 'wait', message: 'busy' },
  no_capacity: { outcome: 'wait', message: 'busy' },
  approval_required: { outcome: 'ask', message: 'waiting' },
  approvals_full: { outcome: 'wait', message: 'busy' },
  approval_used: { outcome: 'deny', message: 'blocked' },
  approval_rejected: { outcome: 'deny', message: 'blocked' },
  approval_revoked: { outcome: 'deny', message: 'blocked' },
  tool_changed: { outcome: 'deny', message: 'blocked' },
  caller_gone: { outcome: 'deny', message: 'blocked' },
  credential_ended: { outcome: 'deny', message: 'blocked' },
  replica_unsure: { outcome: 'wait', message: 'unavailable' },
  gate_closed: { outcome: 'deny', message: 'blocked' },
  store_failed: { outcome: 'deny', message: 'blocked' },
  audit_failed: { outcome: 'deny', message: 'blocked' },
} as const satisfies Record<string, { outcome: OutcomeWord; message: MessageKind }>

export type ReasonCode = keyof typeof REASONS

/** One layer's answer about one tool, in words for a support engineer. Never shown to the model but for `message`. */
export interface Reason {
  readonly layer: Layer
  readonly code: ReasonCode
  readonly outcome: OutcomeWord
  /** Position among the reasons of its layer: policies and clauses in the order they were written. */
  readonly order: number
  /** The policy, clause, group or rule, and why it decided so. For people. */
  readonly text: string
  /** The text for the caller: the author's message of a denial, or why a tool is unavailable. */
  readonly message?: string | undefined
  /** The message is that of a limit's author, and complete. */
  readonly authored?: true | undefined
  /** The name of the policy that gave it. */
  readonly policy?: string | undefined
  /**
   * The clause that gave the reason. Absent if the policy as a whole did: a function, an allowlist without a matching
   * clause, or a required tag.
   */
  readonly clause?: ClauseRef | undefined
  /** The place of that clause or policy in the configuration, such as `policy[0].deny[1]`. */
  readonly path?: string | undefined
  readonly group?: string | undefined
  readonly suggestion?: string | undefined
  /** The scopes that the caller lacks. */
  readonly scopes?: readonly string[] | undefined
  /** The rule about the approver, for a reason that asks. */
  readonly approver?: ApproverRule | undefined
  /** What counted against the call of what is known of its run. */
  readonly read?: readonly FactRead[] | undefined
  /** RFC 6901 pointer into the input. */
  readonly pointer?: string | undefined
  /** The limit, such as `20/60`: at most 20 calls in 60 seconds. With a unit: `500.00 EUR in 24 hours`. */
  readonly limit?: string | undefined
  /** When a limit lets the call through, in milliseconds from now. Absent for a call that it never lets through. */
  readonly resetMs?: number | undefined
  readonly since?: number | undefined
}

/**
 * What a call of a listed item can still depend on: its input, the history of its run, code of the host, or the current
 * state, such as a used-up limit.
 */
const DEPENDS_ON = ['input', 'run', 'code', 'now'] as const
export type DependsOn = (typeof DEPENDS_ON)[number]

/** A reason that is not against an item in a list, and that may be against a call of it. */
export interface MayStill extends Reason {
  readonly on: DependsOn
  /** An input that the rule would refuse. Searched for only if a single item is explained. */
  readonly example?: unknown
}

/** Returns a reason. Its outcome comes from the table. */
export function reason(
  layer: Layer,
  code: ReasonCode,
  text: string,
  more: Partial<Omit<Reason, 'layer' | 'code' | 'text'>> = {},
): Reason {
  return { layer, code, outcome: REASONS[code].outcome, order: 0, text, ...more }
}

/** Returns the clause or the policy that gave a reason, as text; `undefined` for other layers. */
export function ruleText({ clause, policy }: Pick<Reason, 'clause' | 'policy'>): string | undefined {
  return clause ? clauseText(clause) : policy
}

const LONGEST_S = 31 * 24 * 60 * 60

/**
 * Returns the value of a `Retry-After` header or a similar hint for a rate-limited call: whole seconds, rounded up, at
 * least 1 (RFC 9110 §10.2.3, delay-seconds). A client that waits this long is not too early.
 *
 * @example
 * response.writeHead(429, { 'retry-after': `${retryAfterSeconds(answer.resetMs)}` })
 */
export function retryAfterSeconds(resetMs: number): number {
  // A store's answer may be invalid; the client still gets a number of seconds.
  return resetMs > 0 ? Math.min(Math.ceil(resetMs / 1000), LONGEST_S) : 1
}
