import type { ApprovalBinding } from '../ports/ports.ts'
import { approvalKeys } from '../memory/approval-rules.ts'
import { behindOf } from '../memory/four-eyes.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { Tool } from '../tools/tool.ts'
import { sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'
import type { Attempt } from './attempt.ts'
import type { Continuation } from './outcome.ts'

type RoundAttempt = Pick<Attempt, 'view' | 'request' | 'input'>

/** Returns the fields that an approval of the call is bound to. */
export function bindingOf(
  { view, request, input }: RoundAttempt,
  tool: Tool,
  { approver, asked }: Pick<ApprovalBinding, 'approver' | 'asked'> = {},
): ApprovalBinding {
  const { tenant, user } = view.caller
  const run = request.run?.bindsApprovals === false ? undefined : request.run?.id
  const inputHash = sha256Hex(canonicalize(input))
  const bound = { tenant, user, tool: tool.id, definitionHash: definitionHash(tool), inputHash, run }
  return {
    ...bound,
    ...behindOf(view.caller),
    ...(approver !== undefined && { approver }),
    ...(asked !== undefined && { asked }),
  }
}

/**
 * Returns the earlier rounds that this attempt continues. If the caller, definition or input differs, the attempt continues
 * nothing: it is a new call, with its own limit and approval. Known once the input is known.
 */
export function continuedBy(attempt: RoundAttempt & Pick<Attempt, 'continues'>, tool: Tool): Continuation | undefined {
  const { continues } = attempt.request
  if (continues === undefined) return undefined
  attempt.continues ??= continues.binding === hashOf(bindingOf(attempt, tool)) ? continues : undefined
  return attempt.continues
}

/** Returns the continuation that the next round of the call must pass. */
export function nextRound(attempt: Attempt, tool: Tool, inner?: Continuation): Continuation {
  const before = continuedBy(attempt, tool)
  const history = attempt.history?.entered ?? attempt.history?.shadow
  const { edited } = attempt
  // The client repeats the original input.
  const asked = edited ? { ...attempt, input: edited.original } : attempt
  const binding = before?.binding ?? hashOf(bindingOf(asked, tool))
  const edit = edited?.edit ?? before?.edit
  const spent = attempt.approval?.spend === undefined ? undefined : attempt.approval.approval
  const approvalId = spent?.id ?? before?.approvalId
  const { approver, asked: clauses } = spent ?? before ?? {}
  return {
    callId: before?.callId ?? attempt.callId,
    round: (before?.round ?? 0) + 1,
    binding,
    ...(history && { event: history.event }),
    ...(approvalId !== undefined && { approvalId }),
    ...(approver !== undefined && { approver }),
    ...(clauses !== undefined && { asked: clauses }),
    ...(edit !== undefined && { edit }),
    ...(inner !== undefined && { inner }),
  }
}

/** Leaves out the clauses that asked and the approver's rule, because a later round may have stricter ones. */
function hashOf({ approver: _, asked: __, ...binding }: ApprovalBinding): string {
  return sha256Hex(approvalKeys(binding).binding)
}
