import type { CallView } from '@toolgate/core/call'
import {
  answerOf,
  type ClauseIndex,
  compareStrictness,
  Failure,
  hasBit,
  isAtCall,
  templatesOf,
} from '@toolgate/core/decide'
import type { Caller, Decision, OutcomeWord, Reason, Tool } from '@toolgate/core'
import {
  coversApprover,
  type ParsedClause,
  type ParsedCondition,
  strictestApprover,
  toCelTool,
} from '@toolgate/core/policy'
import type { ApproverRule } from '@toolgate/core/stores'
import type { Toolset } from '@toolgate/core/toolset'
import { canonicalize, readOwnJson, toJsonText } from '@toolgate/values/json'
import { FUNCTION } from './plain-policies.ts'

/** The restrictions that rules put on one tool for one caller, for every input and run. */
export interface Restrictions {
  /** The laxest possible decision: that of the clauses without input and run. */
  readonly listed: Decision
  /** Conditions over input and run that deny a call. */
  readonly deny: ReadonlySet<string>
  readonly ask: readonly { readonly text: string; readonly approver: ApproverRule | undefined }[]
  /**
   * For each policy whose allowlist depends on the input or the run, its conditions. At least one of them must hold.
   */
  readonly allow: readonly ReadonlySet<string>[]
}

/** The lax and the strict variant of a caller. Unknown parts count for calls in one, and against calls in the other. */
interface Bounds {
  readonly view: CallView
  readonly strict: Caller
  /** Whether the callers' scopes are known. */
  readonly hasKnownScopes: boolean
  /** Scopes that callers may still get. */
  readonly stepUp: readonly string[]
}

/** Returns the restrictions of a view on an item. `ground` is the text of the other inputs of conditions about runs. */
export function restrictionsOn(
  { view, strict, hasKnownScopes, stepUp }: Bounds,
  id: string,
  ground: string,
): Restrictions {
  const decided = view.decide(id)
  const { today, now, tool } = decided
  const found = { deny: new Set<string>(), ask: [] as Restrictions['ask'][number][], allow: [] as Set<string>[] }
  let listed = afterStepUp(view.explainDecided(decided))
  if (!tool) return { listed, ...found }
  for (const scope of hasKnownScopes ? [] : scopesOf(today.snapshot, now)) {
    // A refusal is stricter than waiting for the scope.
    found.deny.add(JSON.stringify(['step up', scope]))
    if (!stepUp.includes(scope)) found.deny.add(JSON.stringify(['scope', scope]))
  }
  for (const index of today.policies)
    for (const at of placesOf(index.snapshot, now)) {
      const item = index.snapshot.tools[at] as Tool
      const about = (clauses: readonly ClauseIndex[]) =>
        clauses.flatMap(({ bits, clause }) =>
          hasBit(bits, at) ? [judge(clause, view.caller, strict, item, ground)] : [],
        )
      for (const { clause, answer, isOpen, text } of [...about(index.deny), ...about(index.ask)]) {
        if (answer instanceof Failure && !isOpen) listed = { outcome: 'deny', reasons: listed.reasons }
        else if (answer === false && !isOpen) continue
        else if (!isOpen && !isAtCall({ clause })) continue
        else if (clause.kind === 'deny') found.deny.add(text)
        else found.ask.push({ text, approver: clause.approver })
      }
      const candidates = index.allow && about(index.allow).filter(({ answer }) => answer === true)
      if (candidates?.every(({ clause, isOpen }) => isOpen || isAtCall({ clause })))
        found.allow.push(new Set(candidates.map(({ text }) => text)))
    }
  return { listed, ...found }
}

/**
 * Evaluates a clause about an item. `answer`: the one in the caller's favour. `isOpen`: it depends on unknown parts of the
 * caller.
 */
function judge(clause: ParsedClause, lax: Caller, strict: Caller, tool: Tool, ground: string) {
  const answer = answerOf(clause, { caller: lax, tool })
  const other = lax === strict ? answer : answerOf(clause, { caller: strict, tool })
  const isOpen = answer !== other && !(answer instanceof Failure && other instanceof Failure)
  return { clause, answer, isOpen, text: pendingText(clause, tool, ground, isOpen) }
}

/** A tool whose missing scope the caller may still get is listed, and its calls wait for the scope. */
function afterStepUp(listed: Decision): Decision {
  const isStepUp = listed.outcome === 'ask' && listed.reasons.some(({ code }) => code === 'scope_step_up')
  return isStepUp ? { outcome: 'wait', reasons: listed.reasons } : listed
}

/** Returns the conditions that decide who sees an item, and its required scopes. */
export function groundsOf(
  view: CallView,
  id: string,
): { readonly conditions: readonly ParsedCondition[]; readonly scopes: readonly string[] } {
  const { today, now, tool } = view.decide(id)
  if (!tool) return { conditions: [], scopes: [] }
  const places = today.policies.flatMap((index) => placesOf(index.snapshot, now).map((at) => ({ index, at })))
  const clauses = places.flatMap(({ index: { allow = [], deny, ask }, at }) =>
    [...allow, ...deny, ...ask].flatMap(({ clause, bits }) => (hasBit(bits, at) ? [clause] : [])),
  )
  return {
    // The input of a resource is its URI, so it is known.
    conditions: clauses.flatMap(({ when, unless, input }) =>
      [when, unless, tool.kind === 'resource' ? input : undefined].filter((one) => one !== undefined),
    ),
    scopes: scopesOf(today.snapshot, now),
  }
}

function scopesOf(snapshot: Toolset, at: number): readonly string[] {
  return placesOf(snapshot, at).flatMap((place) => snapshot.tools[place]?.requiredScopes ?? [])
}

/** Every template that may match an item also decides it. */
function placesOf(snapshot: Toolset, at: number): readonly number[] {
  return [at, ...templatesOf(snapshot).flatMap((template) => (hasBit(template.matched, at) ? [template.at] : []))]
}

/**
 * Returns the conditions of a clause that depend on the call or the caller, and what they read besides, as text. Equal
 * texts decide equally.
 */
function pendingText({ when, unless, input, run }: ParsedClause, tool: Tool, ground: string, isOpen: boolean): string {
  const pending = [(isOpen || when?.run) && when, (isOpen || unless?.run) && unless, input]
  const asked = pending.filter((condition) => typeof condition === 'object')
  const toolRead = asked.some(({ text }) => text.includes(FUNCTION))
    ? readOwnJson(toJsonText(tool), 'exact')
    : asked.some(({ perTool }) => perTool) && toCelTool(tool)
  return canonicalize([
    ...pending.map((condition) => (condition ? textOf(condition) : null)),
    { tool: toolRead || null, run: run ? ground : null },
  ])
}

/** Functions cannot be compared, so each counts as a separate condition. */
function textOf({ text, functionName }: ParsedCondition): string {
  return functionName === undefined ? text : `function ${++functions}`
}

let functions = 0

/** Returns whether the decision on calls of a tool by a caller depends on the call. */
function dependsOnCall({ listed, deny, ask, allow }: Restrictions): boolean {
  return listed.outcome !== 'deny' && deny.size + ask.length + allow.length > 0
}

/** Returns the strictest possible decision: a condition that asks denies if it fails. */
function strictestOf(restrictions: Restrictions): OutcomeWord {
  return dependsOnCall(restrictions) ? 'deny' : restrictions.listed.outcome
}

/**
 * Returns whether `after` grants no more than `before` for every input and run: `yes`; `no` if it grants more for all of
 * them; `approval` if only the demands on approvers are weaker; otherwise `unknown`.
 */
export function grantsNoMore(before: Restrictions, after: Restrictions): 'yes' | 'no' | 'approval' | 'unknown' {
  if (compareStrictness(strictestOf(after), before.listed.outcome) > 0) return 'no'
  if (after.listed.outcome === 'deny') return 'yes'
  const isLaxer = compareStrictness(after.listed.outcome, before.listed.outcome) > 0
  if (!isLaxer && isCovered(before, after)) return isApproverCovered(before, after) ? 'yes' : 'approval'
  return 'unknown'
}

/** Returns whether each restriction before is at least as strict after. */
function isCovered(before: Restrictions, after: Restrictions): boolean {
  // A failing condition denies, so an `ask` for every input is weaker than an `ask` for some inputs.
  const asks = (text: string, approver: ApproverRule | undefined) =>
    after.deny.has(text) || after.ask.some((one) => one.text === text && coversApprover(one.approver, approver))
  return (
    [...before.deny].every((text) => after.deny.has(text)) &&
    before.ask.every(({ text, approver }) => asks(text, approver)) &&
    before.allow.every((list) => after.allow.some((other) => other.isSubsetOf(list)))
  )
}

/** Returns whether the change adds no approver. */
function isApproverCovered(before: Restrictions, after: Restrictions): boolean {
  if (before.listed.outcome !== 'ask' || after.listed.outcome !== 'ask') return true
  return coversApprover(approverOf(after), approverOf(before))
}

function approverOf({ listed }: Restrictions): ApproverRule | undefined {
  return strictestApprover(listed.reasons.filter(isAsk).map(({ approver }) => approver))
}

function isAsk({ outcome }: Reason): boolean {
  return outcome === 'ask'
}
