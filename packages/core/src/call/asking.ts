import { type Reason, strictest } from '../decide/decision.ts'
import type { Approval, ApprovalAbout, ApprovalBinding, ApprovalTrail } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { chain, sizeOf } from '@toolgate/values'
import { type ApprovalDemand, coversDemand, demandOf, whyAsked, whyTold, withoutEdit } from './approval-demand.ts'
import { findLive, keyOf, shownInput } from './approvals.ts'
import {
  type ApprovalOfCall,
  type Attempt,
  type CallRequest,
  type CallView,
  type CheckResult,
  giveBackSpent,
  type Stop,
  storeInTime,
} from './attempt.ts'
import { comparedValues } from './compared-values.ts'
import { decideNow, newAskingReasons } from './deciding.ts'
import { editCall } from './editing.ts'
import { findGranted, hashesOf, takeSpent } from './granted.ts'
import { approvalImpossible, approvalNeeded, approvalRejected, approvalRevoked, approvalUsed } from './refusals.ts'
import { bindingOf, continuedBy } from './rounds.ts'
import { isYes, peekLimits, takenInTime } from './take-limits.ts'
import { trailOf } from './trail.ts'

/** Checks the limits before a person is asked, so that nobody approves a call that cannot run. */
export function peekBeforeAsking(attempt: Attempt, tool: Tool): CheckResult {
  const takes = attempt.uses.length > 0 && continuedBy(attempt, tool) === undefined
  return takes && needsApproval(attempt, tool) ? peekLimits(attempt, tool) : undefined
}

function needsApproval(attempt: Attempt, tool: Tool): boolean {
  if (!attempt.asksPerson) return false
  const before = continuedBy(attempt, tool)
  // An approval of an earlier round counts if the current demand is no stricter than the one it was given under.
  return before?.approvalId === undefined || !coversDemand(before, wantedBy(attempt))
}

/** Gives a later round of a changed call the changed input. */
function continueEdited(attempt: Attempt, tool: Tool): CheckResult {
  const before = continuedBy(attempt, tool)
  if (!before?.edit || attempt.edited) return undefined
  const askAgain = () => (coversDemand(before, wantedBy(attempt)) ? undefined : { decision: approvalNeeded() })
  return editCall(attempt, tool, { edit: before.edit, asking: newAskingReasons(attempt), askAgain })
}

/** Returns the combined rules of the `ask` clauses about the approver. */
function wantedBy(attempt: Attempt): ApprovalDemand {
  return demandOf(newAskingReasons(attempt), attempt.request)
}

/** Stops the call until a person has approved it. Lets it pass if no approval is needed any longer. */
export function askPeople(attempt: Attempt, tool: Tool): CheckResult {
  if (!needsApproval(attempt, tool)) return continueEdited(attempt, tool)
  const { as, spends } = attempt.request
  if (as) return { decision: approvalImpossible(as.kind) }
  if (typeof spends === 'string') return findApproval(attempt, tool, spends)
  return chain(findGranted(attempt, tool), (granted) => {
    attempt.approval = granted
    return granted ? undefined : requestApproval(attempt, tool)
  })
}

/** Finds the one approval that the call may spend. No new approval is requested. */
async function findApproval(attempt: Attempt, tool: Tool, id: string): Promise<Stop | undefined> {
  const { ports } = attempt
  const approval = await storeInTime(ports, ports.approvals.get(id, ports.clock.wallMs()))
  if (!approval || keyOf(bindingOf(attempt, tool, approval)) !== keyOf(approval)) return { decision: approvalUsed() }
  if (approval.status === 'rejected') return { decision: approvalRejected(approval) }
  if (approval.status === 'revoked') return { decision: approvalRevoked(approval) }
  if (approval.status !== 'approved') return { decision: approvalUsed() }
  if (!coversDemand(approval, wantedBy(attempt))) return { decision: approvalNeeded() }
  return useApproval(attempt, tool, approval, () => ({ decision: approvalNeeded() }))
}

/** Uses an approval, with the input that its approvers chose. */
function useApproval(attempt: Attempt, tool: Tool, approval: Approval, askAgain: () => CheckResult): CheckResult {
  const asking = newAskingReasons(attempt)
  attempt.approval = { approval, spend: undefined, before: attempt.approval }
  const { edit } = approval
  return edit && editCall(attempt, tool, { edit, asking, askAgain })
}

async function requestApproval(attempt: Attempt, tool: Tool): Promise<Stop | undefined> {
  const { view, ports, decided, withInput } = attempt
  const asking = newAskingReasons(attempt)
  const demand = demandOf(asking, attempt.request)
  // A changed input is not changed again.
  const approver = attempt.edited ? withoutEdit(demand.approver) : demand.approver
  const binding = bindingOf(attempt, tool, { ...demand, approver })
  await turnOf(attempt)
  const shown = shownOnce(attempt)
  const why = asking.map((one) => whyAsked(one, comparedBy(attempt, one, shown))).join('; ')
  const told = asking.map((one) => whyTold(one, comparedBy(attempt, one, shown, { withoutTexts: true }))).join(' ')
  await turnOf(attempt)
  const spends = attempt.request.spends === true
  const clauses = hashesOf(asking)
  const about = (trail: ApprovalTrail | undefined) => ({ why, told, trail, clauses })
  const asked = () => chain(trailOf(attempt, tool), (trail) => ask(attempt, binding, shown, about(trail)))
  const approval = await storeInTime(ports, spends ? findLive(ports, binding) : asked())
  if (spends && !approval) return { decision: approvalUsed() }
  switch (approval?.status) {
    case 'approved':
      return useApproval(attempt, tool, approval, () => requestApproval(attempt, tool))
    case 'rejected':
      return { decision: approvalRejected(approval) }
    case 'revoked':
      return { decision: approvalRevoked(approval) }
    case 'pending':
      break
    default:
      throw new TypeError('the store of approvals answered nonsense')
  }
  const stopped = decideNow(attempt, tool, { mayAsk: true })
  if (stopped) return { decision: stopped }
  ports.onApproval(approval)
  const byView = decided.outcome === 'ask' ? [view.explainDecided(decided)] : []
  return { decision: strictest(withInput ? [...byView, withInput] : byView), approval }
}

/** Beyond this size, hashing, masking and storing an input take milliseconds each. */
const LARGE_CHARS = 64 * 1024

/** Lets other callers run first if the input is large. */
async function turnOf({ input }: Attempt): Promise<void> {
  if (sizeOf(input, LARGE_CHARS) > LARGE_CHARS) await new Promise((resolve) => setImmediate(resolve))
}

/** Returns a function that masks the input at its first call. */
function shownOnce({ input, ports }: Attempt): () => unknown {
  let shown: { readonly input: unknown } | undefined
  return () => (shown ??= { input: shownInput(input, ports.redactor, ports.onFault) }).input
}

/** Returns the input values that the clause of a reason compares, redacted for people. */
function comparedBy(
  { hits }: Attempt,
  { path }: Reason,
  shown: () => unknown,
  options?: Parameters<typeof comparedValues>[2],
): string {
  const clause = hits?.find((one) => one.path === path)
  return clause?.input ? comparedValues(clause.input, shown(), options) : ''
}

async function ask(
  attempt: Attempt,
  binding: ApprovalBinding,
  shown: () => unknown,
  about: Pick<ApprovalAbout, 'why' | 'told' | 'trail' | 'clauses'>,
): Promise<Approval> {
  const { view, request, ports } = attempt
  const input = shown()
  await turnOf(attempt)
  return ports.approvals.request(binding, input, ports.clock.wallMs(), {
    chat: view.caller.chat?.id,
    asker: askerOf(view, request),
    ...about,
  })
}

function askerOf({ app, caller: { session } }: CallView, { asker: id }: CallRequest): ApprovalAbout['asker'] {
  return id === undefined
    ? undefined
    : { id, ...(app !== undefined && { app }), ...(session !== undefined && { session }) }
}

/** Consumes the approval, and the one whose change made another necessary. */
export function takeApproval(attempt: Attempt): CheckResult {
  const { approval } = attempt
  if (!approval) return undefined
  if (!approval.before) return consume(attempt, approval)
  return consume(attempt, approval.before).then((stop) => stop ?? consume(attempt, approval))
}

async function consume(attempt: Attempt, used: ApprovalOfCall): Promise<Stop | undefined> {
  const { ports } = attempt
  const spend = ports.newCallId()
  const consuming = takeSpent(attempt, used, spend)
  const back = (consumed: boolean) => (isYes(consumed) ? giveBackSpent(ports, used, spend) : undefined)
  const consumed = consuming instanceof Promise ? await takenInTime(ports, consuming, back) : consuming
  if (!isYes(consumed)) return { decision: approvalUsed() }
  used.spend = spend
  return undefined
}
