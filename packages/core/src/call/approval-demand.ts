import { because } from '../decide/because.ts'
import type { Decided } from '../decide/decide.ts'
import type { Decision, Reason } from '../decide/decision.ts'
import { type FactRead, ORIGINS } from '../ports/fact-read.ts'
import { coversApprover, strictestApprover } from '../policy/approver.ts'
import type { ApprovalBinding } from '../ports/ports.ts'
import type { CallView } from './attempt.ts'

/** What clauses that ask demand of the approver; and, where one of them reads the run, which they are and what they read. */
export type ApprovalDemand = Pick<ApprovalBinding, 'approver' | 'asked'>

/** Returns the reasons that ask for a person. */
export function askingReasons(view: CallView, decided: Decided, withInput: Decision | undefined): readonly Reason[] {
  const byView = decided.outcome === 'ask' ? view.explainDecided(decided).reasons : []
  return [...byView, ...(withInput?.reasons ?? [])].filter(({ outcome }) => outcome === 'ask')
}

export function demandOf(asking: readonly Reason[]): ApprovalDemand {
  const approver = strictestApprover(asking.map((one) => one.approver))
  if (asking.every(({ read, code }) => read === undefined && code !== 'history_unknown')) return { approver }
  const asked = asking.flatMap((one) => [toClause(one), ...(one.read ?? []).map(toFact), ...ifUnknown(one)])
  return { approver, asked: [...new Set(asked)].toSorted() }
}

/** Without its position: a clause that moves is the same. */
function toClause({ policy, clause }: Reason): string {
  return `clause ${policy}, ${clause?.id ?? clause?.match}`
}

function toFact({ kind, of, fields = [], origin }: FactRead): string {
  return [kind, of, ...fields, ...(origin === undefined ? [] : [origin])].join(' ')
}

function ifUnknown({ code }: Reason): readonly string[] {
  return code === 'history_unknown' ? ['unknown'] : []
}

/** Whether an approval under one demand is as good as one under another: by as good an approver, who saw all of it or worse. */
export function coversDemand(given: ApprovalDemand | undefined, wanted: ApprovalDemand): boolean {
  if (!coversApprover(given?.approver, wanted.approver)) return false
  const seen = new Set(given?.asked)
  return (wanted.asked ?? []).every((fact) => asBad(fact).some((one) => seen.has(one)))
}

/** Returns a fact, and the same with each worse origin. */
function asBad(fact: string): readonly string[] {
  const origin = ORIGINS.find((one) => fact.startsWith('origin ') && fact.endsWith(` ${one}`))
  if (origin === undefined) return [fact]
  const rest = fact.slice(0, -origin.length)
  return ORIGINS.slice(0, ORIGINS.indexOf(origin) + 1).map((one) => rest + one)
}

/** Returns why a person is asked, for people: the message, what the run has done, the values that the clause compares, and the clause. */
export function whyAsked({ text, message, read = [] }: Reason, compared = ''): string {
  return [message, because(read, (id) => id), compared, text].filter(Boolean).join(' ')
}
