import { because } from '../decide/because.ts'
import type { Decided } from '../decide/decide.ts'
import { type Decision, type Reason, ruleText } from '../decide/decision.ts'
import { type FactRead, ORIGINS } from '../ports/fact-read.ts'
import { coversApprover, strictestApprover } from '../policy/approver.ts'
import type { ApprovalBinding, ApproverRule } from '../ports/ports.ts'
import type { CallRequest, CallView } from './attempt.ts'

/** The rules of `ask` clauses about the approver. If a clause reads the run, also the clauses and what they read. */
export type ApprovalDemand = Pick<ApprovalBinding, 'approver' | 'asked'>

/** Returns the reasons that require an approval. */
export function askingReasons(view: CallView, decided: Decided, withInput: Decision | undefined): readonly Reason[] {
  const byView = decided.outcome === 'ask' ? view.explainDecided(decided).reasons : []
  return [...byView, ...(withInput?.reasons ?? [])].filter(({ outcome }) => outcome === 'ask')
}

/** Returns what an approval must meet. Without `edits`, the program that calls takes no changed input. */
export function demandOf(asking: readonly Reason[], { edits }: Pick<CallRequest, 'edits'> = {}): ApprovalDemand {
  const rule = strictestApprover(asking.map((one) => one.approver))
  const approver = edits === true ? rule : withoutEdit(rule)
  if (asking.every(({ read, code }) => read === undefined && code !== 'history_unknown')) return { approver }
  const asked = asking.flatMap((one) => [toClause(one), ...(one.read ?? []).map(toFact), ...ifUnknown(one)])
  return { approver, asked: [...new Set(asked)].toSorted() }
}

/** Returns a rule under which the input may not be changed. */
export function withoutEdit(rule: ApproverRule | undefined): ApproverRule | undefined {
  if (rule?.edit !== true) return rule
  const { edit: _, ...rest } = rule
  return Object.keys(rest).length === 0 ? undefined : rest
}

/** Leaves out the position, because a clause that moves is the same clause. */
function toClause({ policy, clause }: Reason): string {
  return `clause ${policy}, ${clause?.id ?? clause?.match}`
}

function toFact({ kind, of, fields = [], origin }: FactRead): string {
  return [kind, of, ...fields, ...(origin === undefined ? [] : [origin])].join(' ')
}

function ifUnknown({ code }: Reason): readonly string[] {
  return code === 'history_unknown' ? ['unknown'] : []
}

/**
 * Returns whether an approval under one demand satisfies another: the approver met as strict a rule, and saw all the facts
 * or worse ones.
 */
export function coversDemand(given: ApprovalDemand | undefined, wanted: ApprovalDemand): boolean {
  if (!coversApprover(given?.approver, wanted.approver)) return false
  const seen = new Set(given?.asked)
  return (wanted.asked ?? []).every((fact) => asBad(fact).some((one) => seen.has(one)))
}

/** Returns a fact, and its variants with a worse origin. */
function asBad(fact: string): readonly string[] {
  const origin = ORIGINS.find((one) => fact.startsWith('origin ') && fact.endsWith(` ${one}`))
  if (origin === undefined) return [fact]
  const rest = fact.slice(0, -origin.length)
  return ORIGINS.slice(0, ORIGINS.indexOf(origin) + 1).map((one) => rest + one)
}

/** Facts about the run and the input. Facts about earlier calls reveal the rule. */
const OF_THE_CALL: ReadonlySet<FactRead['kind']> = new Set(['label', 'origin'])

/**
 * Returns why an approval is needed, for people who may not read the text of rules: the message, what counted of the run, the
 * values that the clause compares, and the name of the clause.
 */
export function whyTold(asked: Reason, compared = ''): string {
  const { message, read = [] } = asked
  const facts = read.filter(({ kind }) => OF_THE_CALL.has(kind))
  const name = ruleText(asked)
  return [
    message ?? 'A rule asks for approval of it.',
    because(facts, (id) => id),
    compared,
    name !== undefined && `(rule ${name})`,
  ]
    .filter(Boolean)
    .join(' ')
}

/**
 * Returns why an approval is needed, for people: the message, the history of the run, the values that the clause compares,
 * and the clause.
 */
export function whyAsked({ text, message, read = [] }: Reason, compared = ''): string {
  return [message, because(read, (id) => id), compared, text].filter(Boolean).join(' ')
}
