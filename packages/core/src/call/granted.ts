import { chain, sha256Hex } from '@toolgate/values'
import type { Reason } from '../decide/decision.ts'
import type { ParsedGrantRules } from '../memory/grant-rules.ts'
import { coversInput } from '../memory/granted-input.ts'
import type { Grant } from '../ports/grants.ts'
import type { ApprovalBinding, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { askingReasons, coversDemand, demandOf } from './approval-demand.ts'
import { keyOf } from './approvals.ts'
import { type ApprovalOfCall, type Attempt, storeInTime } from './attempt.ts'
import { bindingOf } from './rounds.ts'

/**
 * Returns the grant or the approval that lets a call through which policy asks about; `undefined` if a person must decide.
 *
 * The approved call itself uses the approval that made the grant.
 */
export function findGranted(attempt: Attempt, tool: Tool): MaybePromise<ApprovalOfCall | undefined> {
  return chain(findGrant(attempt, tool), (grant) => grant && approvalOrGrant(attempt, tool, grant))
}

/** Returns the live grant that covers a call, if grants are switched on. */
export function findGrant(attempt: Attempt, tool: Tool): MaybePromise<Grant | undefined> {
  const { ports, view } = attempt
  const { tenant, user } = view.caller
  const rules = ports.grants.rules()
  if (!rules || user === undefined) return undefined
  const known = ports.grants.store.find({ tenant, user, tool: tool.id }, ports.clock.wallMs())
  return chain(storeInTime(ports, known), (live) => (live.length === 0 ? undefined : pick(attempt, tool, live, rules)))
}

function pick(attempt: Attempt, tool: Tool, live: readonly Grant[], rules: ParsedGrantRules): Grant | undefined {
  const { view, decided, withInput, input, ports } = attempt
  const asking = askingReasons(view, decided, withInput)
  const binding = bindingOf(attempt, tool)
  const nowMs = ports.clock.wallMs()
  return live.find(
    (grant) =>
      grant.status === 'live' &&
      isWithinRules(grant, rules, nowMs) &&
      isBoundTo(grant, binding) &&
      coversAsking(grant, asking) &&
      coversInput(grant, input),
  )
}

/** Returns whether the current bounds still allow a grant, as they may have become stricter since it was made. */
function isWithinRules(grant: Grant, { maxMs, maxUses, by }: ParsedGrantRules, nowMs: number): boolean {
  return nowMs < grant.grantedAt + maxMs && grant.used < maxUses && (by === undefined || grant.byOther === true)
}

/** Returns whether a call is by the same people, in the same run, of the same definition. */
function isBoundTo(grant: Grant, binding: ApprovalBinding): boolean {
  const isOfRun = grant.anyRun === true || grant.run === binding.run
  return isOfRun && partsOf(grant) === partsOf(binding)
}

function partsOf(bound: Omit<ApprovalBinding, 'inputHash'>): string {
  const { tenant, user, tool, definitionHash, keyMadeBy, behind, aliases } = bound
  const who = [tenant ?? null, user ?? null, keyMadeBy ?? null, behind ?? null, aliases ?? null]
  return JSON.stringify([...who, tool, definitionHash])
}

/** Returns whether a grant answers these reasons: its approver saw each rule that asks, and all the facts or worse ones. */
export function coversAsking(grant: Pick<Grant, 'clauses' | 'approver' | 'asked'>, asking: readonly Reason[]): boolean {
  const seen = new Set(grant.clauses)
  return asking.every((one) => seen.has(hashOfReason(one))) && coversDemand(grant, demandOf(asking))
}

/** Returns what identifies the rules that ask, so that a grant or a changed call can be bound to them. */
export function hashesOf(asking: readonly Reason[]): readonly string[] {
  return [...new Set(asking.map(hashOfReason))].toSorted()
}

/** The text of a reason names the policy, the clause, its conditions and its demands, and not where it stands. */
function hashOfReason({ code, text }: Reason): string {
  return sha256Hex(JSON.stringify([code, text]))
}

function approvalOrGrant(attempt: Attempt, tool: Tool, grant: Grant): MaybePromise<ApprovalOfCall> {
  const { ports, view, decided, withInput } = attempt
  const { id, grantedBy, approver, asked } = grant
  const byGrant = { approval: { id, decidedBy: grantedBy, approver, asked }, spend: undefined, grant }
  const wanted = demandOf(askingReasons(view, decided, withInput), attempt.request)
  return chain(storeInTime(ports, ports.approvals.get(id, ports.clock.wallMs())), (approval) =>
    approval?.status === 'approved' && keyOf(approval) === keyOf(bindingOf(attempt, tool, wanted))
      ? { approval, spend: undefined }
      : byGrant,
  )
}

/** Takes what a call spends: one use of a grant, or an approval. */
export function takeSpent({ ports }: Attempt, { approval, grant }: ApprovalOfCall, spend: string) {
  const nowMs = ports.clock.wallMs()
  if (!grant) return ports.approvals.consume(approval.id, nowMs, spend)
  return ports.grants.rules() ? ports.grants.store.take(grant.id, nowMs, spend) : false
}
