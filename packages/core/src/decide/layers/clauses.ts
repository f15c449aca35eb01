import { type RunFacts, strictestFacts } from '../../history/facts.ts'
import { describeApprover } from '../../policy/approver.ts'
import type { CountedContext, ParsedCondition } from '../../policy/condition.ts'
import { toClauseRef } from '../../policy/clause-ref.ts'
import { UnclearError } from '../../policy/functions.ts'
import { clausesOf } from '../../policy/history-use.ts'
import type { ParsedClause, ParsedPolicy } from '../../policy/parse.ts'
import { unknownRead } from '../../policy/uncertain.ts'
import { partsOf } from '../../policy/shadow.ts'
import { addBits, type Bits, bitsWhere, hasBit, noBits, setBit } from '../../tools/bits.ts'
import { matchesSelector, type Selector } from '../../tools/selector.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { messageOf } from '@toolgate/values'
import { type Reason, reason, type ReasonCode } from '../decision.ts'
import { templatesOf } from '../templates.ts'

/** A policy over one snapshot: the tools that each clause matches, computed once for all callers. */
export interface PolicyIndex {
  /** The enforced part of the policy; in a shadow, the part that is not enforced. */
  readonly policy: ParsedPolicy
  /** The whole policy. */
  readonly whole: ParsedPolicy
  /** The clauses that are not enforced. */
  readonly shadow: PolicyIndex | undefined
  readonly position: number
  readonly snapshot: Toolset
  readonly allow: readonly ClauseIndex[] | undefined
  readonly deny: readonly ClauseIndex[]
  readonly ask: readonly ClauseIndex[]
  /** The clauses that deny or ask and read the input or the run. */
  readonly askedAtCall: readonly ClauseIndex[]
  /** For each required tag, the tools that lack it. */
  readonly untagged: readonly { readonly tag: string; readonly bits: Bits }[]
  /** The tools with a clause about the input or the run. */
  readonly atCall: Bits
  /** The tools with a clause about the run. */
  readonly ofRun: Bits
  /** Whether any clause about the run needs no input. */
  readonly hasStepClauses: boolean
  /** The facts of a run with an unknown history. */
  readonly strictest: RunFacts
  /** The empty set. Do not change it. */
  readonly none: Bits
}

export interface ClauseIndex {
  readonly clause: ParsedClause
  readonly bits: Bits
}

export function indexPolicy(whole: ParsedPolicy, position: number, snapshot: Toolset): PolicyIndex {
  const { enforced, shadow } = partsOf(whole)
  const index = indexPart(enforced, whole, position, snapshot)
  return shadow ? { ...index, shadow: indexPart(shadow, whole, position, snapshot) } : index
}

function indexPart(policy: ParsedPolicy, whole: ParsedPolicy, position: number, snapshot: Toolset): PolicyIndex {
  const index = (clauses: readonly ParsedClause[]) =>
    clauses.map((clause) => ({ clause, bits: bitsOf(clause, snapshot) }))
  // An absent allowlist means `*`, which matches tools only.
  const allow = policy.allow
    ? index(policy.allow)
    : policy.decide || policy.isPart || isOfTools(snapshot)
      ? undefined
      : []
  const deny = index(policy.deny)
  const ask = index(policy.ask)
  const all = [...(allow ?? []), ...deny, ...ask]
  const ofRun = withMatched(
    sumOf(
      all.filter(({ clause }) => clause.run),
      snapshot,
    ),
    snapshot,
  )
  const atCall = sumOf(all.filter(isAtCall), snapshot)
  addBits(atCall, ofRun)
  const strictest = strictestFacts(clausesOf(policy).flatMap(({ run }) => run?.labels ?? []))
  const [untagged, none] = [indexTags(policy, snapshot), noBits(snapshot.size)]
  const hasStepClauses = [...deny, ...(allow ?? [])].some(({ clause }) => isOfStep(clause))
  const lists = { allow, deny, ask, askedAtCall: [...deny, ...ask].filter(isAtCall), untagged, atCall, ofRun }
  return { policy, whole, shadow: undefined, position, snapshot, ...lists, hasStepClauses, strictest, none }
}

/** Returns whether a snapshot holds tools. It holds either only tools or only other kinds. */
export function isOfTools({ tools }: Toolset): boolean {
  return (tools[0]?.kind ?? 'tool') === 'tool'
}

/** Returns whether a clause can be decided only when a tool is called. */
export function isAtCall({ clause }: Pick<ClauseIndex, 'clause'>): boolean {
  return clause.input !== undefined || clause.run !== undefined
}

/** Returns whether a clause about the run needs no input. */
export function isOfStep({ run, when, unless, input }: ParsedClause): boolean {
  return run !== undefined && ![when?.run && when, unless?.run && unless, input].some((one) => one?.readsInput)
}

function sumOf(clauses: readonly ClauseIndex[], { size }: Toolset): Bits {
  const sum = noBits(size)
  for (const { bits } of clauses) addBits(sum, bits)
  return sum
}

/** Adds the resources that templates among the items may match, because these templates decide them, too. */
function withMatched(bits: Bits, snapshot: Toolset): Bits {
  const wide = bits.slice()
  for (const { at, matched } of templatesOf(snapshot)) if (hasBit(bits, at)) addBits(wide, matched)
  return wide
}

/** A policy has fewer clauses than this, so that reasons sort by policy and then by clause. */
export const STRIDE = 100_000

function bitsOf(clause: ParsedClause, snapshot: Toolset): Bits {
  const reading = clause.kind === 'allow' ? 'certain' : 'possible'
  const bits = noBits(snapshot.size)
  for (const selector of clause.selectors) addBits(bits, selectorBits(selector, snapshot, reading))
  return bits
}

function selectorBits(selector: Selector, snapshot: Toolset, reading: 'certain' | 'possible'): Bits {
  if (selector.kind !== 'id')
    return bitsWhere(snapshot.size, (i) => matchesSelector(selector, snapshot.tools[i] as Tool, reading))
  const bits = noBits(snapshot.size)
  const { text, target } = selector
  for (const id of target === undefined ? [text] : reading === 'possible' ? [target, text] : [target]) {
    const at = snapshot.indexOf(id)
    if (at !== -1) setBit(bits, at)
  }
  return bits
}

function indexTags({ requireTags }: ParsedPolicy, snapshot: Toolset): PolicyIndex['untagged'] {
  return requireTags.map((tag) => ({
    tag,
    bits: bitsWhere(snapshot.size, (i) => !(snapshot.tools[i] as Tool).tags.includes(tag)),
  }))
}

/** Why a condition could not be decided. */
export class Failure {
  readonly text: string
  /** Part of the condition is uncertain, because servers may read a text differently. */
  readonly isUnclear: boolean
  constructor(condition: ParsedCondition, error: unknown) {
    this.isUnclear = error instanceof UnclearError
    this.text = `"${condition.text}" failed: ${messageOf(error).split('\n')[0]}`
  }
}

/**
 * Returns whether a clause holds. In a list, conditions about the input or the run are left out; at a call, all count.
 *
 * A condition that fails decides against the call: in `deny` and `ask` it is a Failure, which denies; in `allow` it does
 * not hold; a failing `unless` exempts nobody. An unknown value counts for or against the call, as the value itself says.
 */
export function answerOf(clause: ParsedClause, context: CountedContext): boolean | Failure {
  const atCall = 'input' in context
  const loosens = clause.kind === 'allow'
  const { when, unless, input } = clause
  if (when && (atCall || !when.run)) {
    const holds = test(when, context, loosens)
    if (holds !== true) return loosens ? false : holds
  }
  if (unless && (atCall || !unless.run)) {
    const exempts = test(unless, context, !loosens)
    if (exempts === true || (exempts instanceof Failure && loosens)) return false
  }
  if (!input || !atCall) return true
  const holds = test(input, context, loosens)
  return holds instanceof Failure && loosens ? false : holds
}

/** Evaluates a condition. `lax`: the answer that favours the call. */
function test(condition: ParsedCondition, context: CountedContext, lax: boolean): boolean | Failure {
  let answer: boolean | Failure
  // An earlier read does not belong to this answer.
  unknownRead.leaning = undefined
  try {
    answer = condition.test(context)
  } catch (error) {
    answer = new Failure(condition, error)
  }
  const { leaning } = unknownRead
  if (leaning === undefined) return answer
  unknownRead.leaning = undefined
  return leaning === 'lax' ? lax : new Failure(condition, NOT_RECORDED)
}

const NOT_RECORDED = new Error('what it reads was not recorded')

export function clauseReason(index: PolicyIndex, clause: ParsedClause, code: ReasonCode): Reason {
  const verb = clause.kind === 'ask' ? 'asks for approval of' : 'denies'
  const conditions = [
    clause.when && `when ${clause.when.text}`,
    clause.unless && `unless ${clause.unless.text}`,
    clause.input && `where ${clause.input.text}`,
    // Reasons with equal texts count as one, so the text includes the demands.
    clause.approver && describeApprover(clause.approver),
  ]
  const text = [
    `${nameOf(index)} ${verb} ${clause.label}`,
    ...conditions.filter((condition) => condition !== undefined),
  ].join(', ')
  return reason('policy', code, text, {
    ...placeOf(index, clause),
    message: clause.message,
    ...(clause.approver && { approver: clause.approver }),
  })
}

export function errorReason(index: PolicyIndex, clause: ParsedClause, context: CountedContext): Reason {
  const answer = answerOf(clause, context)
  const failure = answer instanceof Failure ? answer.text : 'a condition failed'
  return reason(
    'policy',
    'policy_error',
    `${nameOf(index)}, ${clause.kind} ${clause.label}: ${failure}`,
    placeOf(index, clause),
  )
}

/** Returns where a clause is written, and its position among the reasons. */
export function placeOf(index: PolicyIndex, clause: ParsedClause): Partial<Reason> {
  const { name } = index.policy
  return {
    policy: name,
    clause: toClauseRef(name, clause),
    path: clause.path,
    order: index.position * STRIDE + clause.index,
  }
}

export function nameOf(index: PolicyIndex): string {
  return `policy "${index.policy.name}"`
}
