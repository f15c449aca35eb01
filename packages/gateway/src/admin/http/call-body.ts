import { isObject } from '@toolgate/values/json'
import { type Approval, type CallDone, type CallOutcome, type CallRefused, retryAfterSeconds } from '@toolgate/core'
import { isMcpResult } from '@toolgate/mcp'
import type { AgentCallBody, AgentRefusal } from '../../model/rows.ts'

/** Returns the outcome of a call for agents. */
export function toBody(outcome: CallOutcome, approvalUrl: (approval: Approval) => string | undefined): AgentCallBody {
  const { callId, text } = outcome
  switch (outcome.status) {
    case 'done':
      return { status: 'done', callId, isError: outcome.isError, result: outcome.output, text: textOf(outcome) }
    case 'refused':
      return { status: 'refused', callId, ...toRefusal(outcome) }
    case 'waiting': {
      const { id, expiresAt } = outcome.approval
      const url = approvalUrl(outcome.approval)
      return { status: 'waiting', callId, text, approval: { id, expiresAt, ...(url === undefined ? {} : { url }) } }
    }
    case 'failed':
      return { status: 'failed', callId, reason: outcome.code, text }
    case 'input_required':
      return { status: 'failed', callId, reason: 'input_required', text }
  }
}

/** Returns the texts of a server's result. If it contains anything else, returns the whole result as JSON. */
function textOf({ output, text }: CallDone): string {
  const content = isMcpResult(output) ? (output.content ?? []) : []
  const texts = content.flatMap((block) =>
    isObject(block) && typeof block['text'] === 'string' ? [block['text']] : [],
  )
  return texts.length > 0 && texts.length === content.length ? texts.join('\n') : text
}

/**
 * Returns a refusal. For a limit, it states when to try again, as the text does. The reasons of other refusals are left
 * out.
 */
export function toRefusal({ decision, text }: Pick<CallRefused, 'decision' | 'text'>): AgentRefusal {
  const [deciding] = decision.reasons
  const outcome = decision.outcome === 'wait' ? 'wait' : 'deny'
  if (deciding?.code !== 'rate_limited' || deciding.resetMs === undefined) return { outcome, text }
  return { outcome, text, retryAfterSeconds: retryAfterSeconds(deciding.resetMs) }
}
