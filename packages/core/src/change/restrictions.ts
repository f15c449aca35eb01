import type { CallView } from '../call/attempt.ts'
import { compareStrictness, type Decision, type OutcomeWord, type Reason } from '../decide/decision.ts'
import { answerOf, type ClauseIndex, Failure, isAtCall, type PolicyIndex } from '../decide/layers/clauses.ts'
import { templatesOf } from '../decide/templates.ts'
import { coversApprover, strictestApprover } from '../policy/approver.ts'
import { type ParsedCondition, toCelTool } from '../policy/condition.ts'
import type { ParsedClause } from '../policy/parse.ts'
import type { ApproverRule } from '../ports/ports.ts'
import { hasBit } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import { canonicalize } from '../util/json.ts'

/** What rules say of one tool for one caller, whatever the input and the run are. */
export interface Restrictions {
  /** The laxest that a call can come to: what holds without input and run. */
  readonly listed: Decision
  /** Conditions over input and run under which a call is denied. */
  readonly deny: ReadonlySet<string>
  readonly ask: readonly { readonly text: string; readonly approver: ApproverRule | undefined }[]
  /** For each policy whose allow list depends on input or run: the conditions of which one must hold. */
  readonly allow: readonly ReadonlySet<string>[]
}

/**
 * Returns what the rules of a view say of a tool, or of another item. `ground`: what conditions about runs read beside the run,
 * as a text.
 */
export function restrictionsOn(view: CallView, id: string, ground: string): Restrictions {
  const decided = view.decide(id)
  const { today, now, tool } = decided
  const found = { deny: new Set<string>(), ask: [] as Restrictions['ask'][number][], allow: [] as Set<string>[] }
  let listed = view.explainDecided(decided)
  if (!tool) return { listed, ...found }
  for (const index of today.policies)
    for (const at of placesOf(index, now)) {
      const of = { caller: view.caller, tool: index.snapshot.tools[at] as Tool }
      const textOfClause = (clause: ParsedClause) => pendingText(clause, of.tool, ground)
      const about = (clauses: readonly ClauseIndex[]) => clauses.filter(({ bits }) => hasBit(bits, at))
      for (const { clause } of [...about(index.deny), ...about(index.ask)].filter(isAtCall)) {
        const holds = answerOf(clause, of)
        if (holds instanceof Failure) listed = { outcome: 'deny', reasons: listed.reasons }
        else if (holds && clause.kind === 'deny') found.deny.add(textOfClause(clause))
        else if (holds) found.ask.push({ text: textOfClause(clause), approver: clause.approver })
      }
      const candidates = index.allow && about(index.allow).filter(({ clause }) => answerOf(clause, of) === true)
      if (candidates?.every(isAtCall)) found.allow.push(new Set(candidates.map(({ clause }) => textOfClause(clause))))
    }
  return { listed, ...found }
}

/** An item is decided as every template that may match it, too. */
function placesOf({ snapshot }: PolicyIndex, at: number): readonly number[] {
  return [at, ...templatesOf(snapshot).flatMap((template) => (hasBit(template.matched, at) ? [template.at] : []))]
}

/** Returns the conditions of a clause that only a call decides, and what they read beside it. Equal texts decide equally. */
function pendingText({ when, unless, input, run }: ParsedClause, tool: Tool, ground: string): string {
  const pending = [when?.run && when, unless?.run && unless, input]
  return canonicalize([
    ...pending.map((condition) => (condition ? textOf(condition) : null)),
    { tool: pending.some((condition) => condition?.perTool) ? toCelTool(tool) : null, run: run ? ground : null },
  ])
}

/** Nobody can compare functions: each counts as a condition of its own. */
function textOf({ text, functionName }: ParsedCondition): string {
  return functionName === undefined ? text : `function ${++functions}`
}

let functions = 0

/** Whether rules can answer calls of one tool by one caller differently. */
function dependsOnCall({ listed, deny, ask, allow }: Restrictions): boolean {
  return listed.outcome !== 'deny' && deny.size + ask.length + allow.length > 0
}

/** Returns the strictest that a call may come to: a condition that asks denies where it fails. */
function strictestOf(restrictions: Restrictions): OutcomeWord {
  return dependsOnCall(restrictions) ? 'deny' : restrictions.listed.outcome
}

/**
 * Returns whether `after` grants no more than `before` for every input and run: `yes`; `no` if it grants more for all of them, or
 * `approval` if a weaker approval is enough; and else `unknown`.
 */
export function grantsNoMore(before: Restrictions, after: Restrictions): 'yes' | 'no' | 'approval' | 'unknown' {
  if (compareStrictness(strictestOf(after), before.listed.outcome) > 0) return 'no'
  if (after.listed.outcome === 'deny') return 'yes'
  const isLaxer = compareStrictness(after.listed.outcome, before.listed.outcome) > 0
  if (!isLaxer && isCovered(before, after)) return isApproverCovered(before, after) ? 'yes' : 'approval'
  return 'unknown'
}

/** Whether each condition that restricts calls before restricts them as much after. */
function isCovered(before: Restrictions, after: Restrictions): boolean {
  // A condition that fails denies, so a question for every input is less than one about some inputs.
  const asks = (text: string, approver: ApproverRule | undefined) =>
    after.deny.has(text) || after.ask.some((one) => one.text === text && coversApprover(one.approver, approver))
  return (
    [...before.deny].every((text) => after.deny.has(text)) &&
    before.ask.every(({ text, approver }) => asks(text, approver)) &&
    before.allow.every((list) => after.allow.some((other) => other.isSubsetOf(list)))
  )
}

/** Whether people who may approve after could have approved before. */
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
