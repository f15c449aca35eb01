import { type OutcomeWord, REASONS, type ReasonCode } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'

/**
 * The decision of the rules about a call, as far as its record shows. `other`: the call ended for another reason, such as
 * an invalid input, a hook, or a server that was down.
 */
export interface RecordedEnd {
  readonly outcome: OutcomeWord | 'limited' | 'other'
  readonly reason: string | undefined
}

/** The reasons by which rules refuse a call. All other reasons are about the state at that time. */
const BY_RULES: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'policy_denied',
  'policy_not_allowed',
  'policy_tag_missing',
  'policy_error',
  'scope_missing',
  'scope_needed',
  'app_hidden',
  'input_denied',
  'history_unknown',
])

/** Returns the decision in the first record of an attempt; `undefined` for any other record. */
export function endOf(record: AuditRecord): RecordedEnd | undefined {
  const { reason } = record
  switch (record.event) {
    case 'tool_call':
      return { outcome: record.approval_id === undefined ? 'allow' : 'ask', reason }
    case 'tool_approval_required':
      return { outcome: 'ask', reason }
    case 'tool_rate_limited':
      return { outcome: 'limited', reason }
    case 'tool_blocked': {
      const known = isReason(reason) && BY_RULES.has(reason) ? reason : undefined
      return { outcome: known === undefined ? 'other' : REASONS[known].outcome, reason }
    }
    default:
      return undefined
  }
}

function isReason(reason: string | undefined): reason is ReasonCode {
  return reason !== undefined && Object.hasOwn(REASONS, reason)
}
