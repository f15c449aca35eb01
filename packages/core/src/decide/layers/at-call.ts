import type { FactRead } from '../../ports/fact-read.ts'
import type { CountedContext } from '../../policy/condition.ts'
import type { ParsedClause } from '../../policy/parse.ts'
import { hasBit } from '../../tools/bits.ts'
import type { Tool } from '../../tools/tool.ts'
import { type Decision, type Reason, reason, strictest } from '../decision.ts'
import { readsOf } from '../reads-of.ts'
import { templatesOf } from '../templates.ts'
import {
  answerOf,
  type ClauseIndex,
  clauseReason,
  errorReason,
  Failure,
  isAtCall,
  isOfStep,
  nameOf,
  type PolicyIndex,
  STRIDE,
} from './clauses.ts'

export type ClauseContext = CountedContext & {
  readonly input: unknown
  /** Receives the clauses that match. Of an allowlist it receives only the first. */
  readonly hits?: ParsedClause[] | undefined
  /** For shadows: a clause whose result depends only on the unknown run has not decided anything. See {@link unjudged}. */
  readonly isShadow?: boolean
}

/**
 * Returns the decision of the clauses about the input and the run on the tool at `at`.
 *
 * Without `context.facts`, the run is unknown: clauses that deny or ask because of it hold, and clauses that allow because
 * of it do not.
 */
export function decideAtCall(index: PolicyIndex, at: number, context: ClauseContext): Decision {
  if (!hasBit(index.atCall, at)) return ALLOWS
  if (!hasBit(index.ofRun, at)) return decideAt(index, at, context)
  const places = placesOf(index, at)
  if (places.length === 1) return decideAt(index, at, context)
  const { snapshot } = index
  return strictest(places.map((place) => decideAt(index, place, { ...context, tool: snapshot.tools[place] as Tool })))
}

const marks = new WeakMap<ParsedClause, ParsedClause>()

/** Returns the mark of a shadow's clause that cannot be judged because the history of the run is unknown. */
export function unjudged(clause: ParsedClause): ParsedClause {
  let mark = marks.get(clause)
  if (!mark) marks.set(clause, (mark = { ...clause }))
  return mark
}

/** Returns the decision of the clauses about the input on a listed item with a known input. Lists have no run. */
export function decideInList(index: PolicyIndex, at: number, context: ClauseContext): Decision {
  const places = placesOf(index, at)
  if (!places.some((place) => hasBit(index.atCall, place))) return ALLOWS
  return strictest(
    places.map((place) =>
      decideAt(index, place, { ...context, tool: index.snapshot.tools[place] as Tool }, ({ run }) => !run),
    ),
  )
}

/** Returns the decision of the clauses that read the run but not the input, before a call is made. */
export function decideAtStep(index: PolicyIndex, at: number, context: ClauseContext): Decision {
  return decideAt(index, at, context, (clause) => !isAtCall({ clause }) || isOfStep(clause))
}

const ALLOWS: Decision = { outcome: 'allow', reasons: [] }

/** Returns the positions of an item, and of every template that may match it. */
export function placesOf({ snapshot }: PolicyIndex, at: number): readonly number[] {
  return [at, ...templatesOf(snapshot).flatMap((template) => (hasBit(template.matched, at) ? [template.at] : []))]
}

/**
 * `isKnown`: whether everything that a clause reads is known. Until then, a clause that denies or asks does not hold, and a
 * clause that allows holds if the rest of it does.
 */
function decideAt(
  index: PolicyIndex,
  at: number,
  context: ClauseContext,
  isKnown?: (clause: ParsedClause) => boolean,
): Decision {
  const found: Reason[] = []
  for (const { clause, bits } of index.askedAtCall)
    if (hasBit(bits, at) && (isKnown === undefined || isKnown(clause))) found.push(...judge(index, clause, context))
  const candidates = index.allow?.filter(({ bits }) => hasBit(bits, at))
  const refused = candidates && judgeAllow(index, candidates, context, isKnown)
  if (refused) found.push(refused)
  return found.length === 0 ? ALLOWS : strictest(found.map((one) => ({ outcome: one.outcome, reasons: [one] })))
}

/** Returns the reason of a clause, if it denies or asks. */
function judge(index: PolicyIndex, clause: ParsedClause, context: ClauseContext): readonly Reason[] {
  const asked = clause.run ? ofRun(index, context) : context
  const answer = answerOf(clause, asked)
  if (answer === false) return []
  const isUnknown = clause.run !== undefined && isUnknownRun(context)
  context.hits?.push(isUnknown && context.isShadow ? unjudged(clause) : clause)
  // An unclear clause holds, so that its message explains how to write the input.
  const isUnclear = answer instanceof Failure && answer.isUnclear
  if (answer instanceof Failure && !isUnclear) return [{ ...errorReason(index, clause, asked), layer: 'input' }]
  const certain = clauseReason(index, clause, clause.kind === 'deny' ? 'input_denied' : 'policy_ask')
  const plain = isUnclear ? { ...certain, text: `${certain.text}. ${answer.text}` } : certain
  const read = readsOf(index.snapshot, clause.run, asked)
  return [
    {
      ...plain,
      layer: 'input',
      ...(isUnknown && {
        code: 'history_unknown',
        text: `${plain.text}. ${UNKNOWN}`,
        message: plain.message ?? UNKNOWN,
      }),
      ...(read && { read }),
    },
  ]
}

function isUnknownRun({ facts }: ClauseContext): boolean {
  return facts === undefined || facts.isUnknown === true
}

const UNKNOWN = 'It is unknown what this run has done so far.'

/** Returns the context of a clause that reads the run: the known facts, and a list that collects what the clause reads. */
function ofRun(index: PolicyIndex, context: ClauseContext): ClauseContext {
  return { ...context, facts: context.facts ?? index.strictest, reads: [] }
}

function judgeAllow(
  index: PolicyIndex,
  candidates: readonly ClauseIndex[],
  context: ClauseContext,
  isKnown: ((clause: ParsedClause) => boolean) | undefined,
): Reason | undefined {
  const read: FactRead[] = []
  let isUnknown = false
  for (const { clause } of candidates) {
    const asked = clause.run ? ofRun(index, context) : context
    const answer = answerOf(clause, isKnown?.(clause) === false ? withoutInput(context) : asked)
    if (answer === true) {
      context.hits?.push(clause)
      return undefined
    }
    read.push(...(readsOf(index.snapshot, clause.run, asked) ?? []))
    if (clause.run === undefined || !isUnknownRun(context)) continue
    isUnknown = true
    if (context.isShadow) context.hits?.push(unjudged(clause))
  }
  const text = `${nameOf(index)}: with this input, no allow clause holds`
  return reason('input', isUnknown ? 'history_unknown' : 'input_denied', isUnknown ? `${text}. ${UNKNOWN}` : text, {
    policy: index.policy.name,
    path: `${index.policy.path}.allow`,
    order: index.position * STRIDE,
    ...(isUnknown && { message: UNKNOWN }),
    ...(read.length > 0 && { read }),
  })
}

function withoutInput({ input: _, ...context }: ClauseContext): CountedContext {
  return context
}
