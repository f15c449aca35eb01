import { describeApprover } from '../../policy/approver.ts'
import type { Caller } from '../../ports/caller.ts'
import { messageOf } from '../../util/errors.ts'
import { conditionWork, type CountedContext, type ParsedCondition } from '../../policy/condition.ts'
import { askFunction, type FunctionAnswer, type ParsedClause, type ParsedPolicy } from '../../policy/parse.ts'
import {
  addBits,
  type Bits,
  bitsWhere,
  firstOf,
  hasBit,
  invertBits,
  isEmpty,
  membersOf,
  noBits,
  setBit,
} from '../../tools/bits.ts'
import { matchesSelector, type Selector } from '../../tools/selector.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { type Decision, strictest, type Reason, reason, type ReasonCode } from '../decision.ts'
import type { Effect } from '../evaluation.ts'
import { templatesOf } from '../templates.ts'

/** A policy over one snapshot: which tools each clause is about, once for all callers. */
export interface PolicyIndex {
  readonly policy: ParsedPolicy
  readonly position: number
  readonly snapshot: Toolset
  readonly allow: readonly ClauseIndex[] | undefined
  readonly deny: readonly ClauseIndex[]
  readonly ask: readonly ClauseIndex[]
  /** Tools that lack a required tag, for each tag. */
  readonly untagged: readonly { readonly tag: string; readonly bits: Bits }[]
  /** Tools with a clause about the input. */
  readonly wantsInput: Bits
  /** The empty set, which is not to be changed. */
  readonly none: Bits
}

interface ClauseIndex {
  readonly clause: ParsedClause
  readonly bits: Bits
}

export function indexPolicy(policy: ParsedPolicy, position: number, snapshot: Toolset): PolicyIndex {
  const index = (clauses: readonly ParsedClause[]) =>
    clauses.map((clause) => ({ clause, bits: bitsOf(clause, snapshot) }))
  // An absent allowlist means `*`, which names tools only.
  const allow = policy.allow ? index(policy.allow) : policy.decide || isOfTools(snapshot) ? undefined : []
  const deny = index(policy.deny)
  const ask = index(policy.ask)
  const wantsInput = noBits(snapshot.size)
  for (const { clause, bits } of [...(allow ?? []), ...deny, ...ask]) if (clause.input) addBits(wantsInput, bits)
  const [untagged, none] = [indexTags(policy, snapshot), noBits(snapshot.size)]
  return { policy, position, snapshot, allow, deny, ask, untagged, wantsInput, none }
}

/** A snapshot has tools only, or other kinds only. */
function isOfTools({ tools }: Toolset): boolean {
  return (tools[0]?.kind ?? 'tool') === 'tool'
}

/** Returns the effects of a policy on every caller: those of the clauses without conditions. */
export function fixedEffects(index: PolicyIndex): readonly Effect[] {
  const effects: Effect[] = []
  for (const { clause, bits } of unconditional(index.deny)) {
    addEffect(effects, 'deny', bits, () => clauseReason(index, clause, 'policy_denied'))
  }
  if (index.allow && !index.allow.some(isConditional))
    addEffect(
      effects,
      'deny',
      notAllowed(
        index,
        index.allow.map(({ bits }) => bits),
      ),
      (tool) => notAllowedReason(index, tool),
    )
  for (const { tag, bits } of index.untagged) addEffect(effects, 'deny', bits, () => untaggedReason(index, tag))
  for (const { clause, bits } of unconditional(index.ask)) {
    addEffect(effects, 'ask', bits, () => clauseReason(index, clause, 'policy_ask'))
  }
  return effects
}

/** Returns the effects of a policy on one caller: those of the clauses with conditions. */
export function callerEffects(index: PolicyIndex, caller: Caller): readonly Effect[] {
  if (index.policy.decide) return functionEffects(index, index.policy.decide, caller)
  const effects: Effect[] = []
  const judge = (indexed: ClauseIndex, outcome: 'deny' | 'ask', code: ReasonCode) => {
    const { clause } = indexed
    const { holds, errors } = evaluate(indexed, index, caller)
    const reasonOf = () => clauseReason(index, clause, code)
    if (holds === indexed.bits) effects.push(wholeEffect(indexed, outcome, reasonOf))
    else addEffect(effects, outcome, holds, reasonOf)
    addEffect(effects, 'deny', errors, (tool) => errorReason(index, clause, { caller, tool }))
  }
  for (const indexed of conditional(index.deny)) judge(indexed, 'deny', 'policy_denied')
  if (index.allow?.some(isConditional)) {
    const allowed = index.allow.map((indexed) => evaluate(indexed, index, caller).holds)
    addEffect(effects, 'deny', notAllowed(index, allowed), (tool) => notAllowedReason(index, tool))
  }
  for (const indexed of conditional(index.ask)) judge(indexed, 'ask', 'policy_ask')
  if (!isOfTools(index.snapshot) && !isEmpty(index.wantsInput)) effects.push(...uriEffects(index, caller))
  return effects
}

/** Returns the effects of the clauses with `input` on resources: their input is their URI, which is known. */
function uriEffects(index: PolicyIndex, caller: Caller): readonly Effect[] {
  const { snapshot } = index
  const decisions = snapshot.tools.map((tool, at) => (tool.kind === 'resource' ? decideUri(index, at, caller) : ALLOWS))
  const reasonOf = ({ id }: Tool): Reason => {
    const found = decisions[snapshot.indexOf(id)]?.reasons[0] as Reason
    // A hidden resource reads like one that does not exist. The caller gave no input that could be refused.
    return { ...found, layer: 'policy', code: found.code === 'input_denied' ? 'policy_denied' : found.code }
  }
  const effects: Effect[] = []
  for (const outcome of ['deny', 'ask'] as const)
    addEffect(
      effects,
      outcome,
      bitsWhere(snapshot.size, (at) => decisions[at]?.outcome === outcome),
      reasonOf,
    )
  return effects
}

/** As the resource at `at`, and as every template that may match it. */
function decideUri(index: PolicyIndex, at: number, caller: Caller): Decision {
  const { snapshot, wantsInput } = index
  const places = [at, ...templatesOf(snapshot).flatMap((one) => (hasBit(one.matched, at) ? [one.at] : []))]
  if (!places.some((place) => hasBit(wantsInput, place))) return ALLOWS
  const input = { uri: snapshot.tools[at]?.uri }
  const work = conditionWork()
  return strictest(
    places.map((place) => decideInput(index, place, { caller, tool: snapshot.tools[place] as Tool, input, work })),
  )
}

const wholeEffects = new WeakMap<ClauseIndex, Effect>()

/** The effect of a clause that holds for all that it is about: the same object for every caller for whom it does. */
function wholeEffect(indexed: ClauseIndex, outcome: Effect['outcome'], reasonOf: () => Reason): Effect {
  let effect = wholeEffects.get(indexed)
  if (!effect) wholeEffects.set(indexed, (effect = { outcome, bits: indexed.bits, reason: reasonOf }))
  return effect
}

/** Asks a function about each tool of the snapshot. */
function functionEffects(
  index: PolicyIndex,
  decide: NonNullable<ParsedPolicy['decide']>,
  caller: Caller,
): readonly Effect[] {
  const { snapshot } = index
  const { kinds } = index.policy
  const answers = snapshot.tools.map((tool) =>
    tool.kind === 'tool' || kinds.includes(tool.kind) ? askFunction(decide, tool, caller) : UNDECIDED,
  )
  const reasonOf = (tool: Tool) => functionReason(index, answers[snapshot.indexOf(tool.id)] as FunctionAnswer)
  const effects: Effect[] = []
  for (const outcome of ['deny', 'ask'] as const) {
    const bits = bitsWhere(snapshot.size, (i) => answers[i]?.outcome === outcome)
    addEffect(effects, outcome, bits, reasonOf)
  }
  return effects
}

const UNDECIDED: FunctionAnswer = { outcome: 'deny', message: undefined, failure: undefined }

/** Returns the decision of the clauses with `input` about the tool at `at`. */
export function decideInput(index: PolicyIndex, at: number, context: CountedContext & { input: unknown }): Decision {
  if (!hasBit(index.wantsInput, at)) return ALLOWS
  const found: Reason[] = []
  const about = (clauses: readonly ClauseIndex[]) =>
    clauses.filter(({ clause, bits }) => clause.input && hasBit(bits, at))
  for (const { clause } of about(index.deny)) {
    const answer = answerOf(clause, context)
    if (answer === true) found.push({ ...clauseReason(index, clause, 'input_denied'), layer: 'input' })
    if (answer instanceof Failure) found.push({ ...errorReason(index, clause, context), layer: 'input' })
  }
  for (const { clause } of about(index.ask)) {
    const answer = answerOf(clause, context)
    if (answer === true) found.push({ ...clauseReason(index, clause, 'policy_ask'), layer: 'input' })
    if (answer instanceof Failure) found.push({ ...errorReason(index, clause, context), layer: 'input' })
  }
  const candidates = index.allow?.filter(({ bits }) => hasBit(bits, at))
  if (candidates && !candidates.some(({ clause }) => answerOf(clause, context) === true)) {
    found.push(
      reason('input', 'input_denied', `${nameOf(index)}: with this input, no allow clause holds`, {
        policy: index.policy.name,
        order: index.position * STRIDE,
      }),
    )
  }
  return found.length === 0 ? ALLOWS : strictest(found.map((one) => ({ outcome: one.outcome, reasons: [one] })))
}

const ALLOWS: Decision = { outcome: 'allow', reasons: [] }

/** Positions of clauses within a policy stay below this, so that reasons sort by policy and then by clause. */
const STRIDE = 100_000

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

function isConditional({ clause }: ClauseIndex): boolean {
  return clause.when !== undefined || clause.unless !== undefined
}

function conditional(clauses: readonly ClauseIndex[]): readonly ClauseIndex[] {
  return clauses.filter((indexed) => isConditional(indexed) && !indexed.clause.input)
}

function unconditional(clauses: readonly ClauseIndex[]): readonly ClauseIndex[] {
  return clauses.filter((indexed) => !isConditional(indexed) && !indexed.clause.input)
}

function notAllowed({ snapshot }: PolicyIndex, allowed: readonly Bits[]): Bits {
  const all = noBits(snapshot.size)
  for (const bits of allowed) addBits(all, bits)
  return invertBits(all, snapshot.size)
}

/** A clause over its tools for one caller: where it holds, and where it could not be decided. */
function evaluate(
  { clause, bits }: ClauseIndex,
  { snapshot, none }: PolicyIndex,
  caller: Caller,
): { holds: Bits; errors: Bits } {
  const first = firstOf(bits)
  if (first === undefined || (!clause.when && !clause.unless)) return { holds: bits, errors: none }
  if (!clause.when?.perTool && !clause.unless?.perTool) {
    const answer = answerOf(clause, { caller, tool: snapshot.tools[first] as Tool })
    return { holds: answer === true ? bits : none, errors: answer instanceof Failure ? bits : none }
  }
  const holds = noBits(snapshot.size)
  const errors = noBits(snapshot.size)
  for (const at of membersOf(bits)) {
    const answer = answerOf(clause, { caller, tool: snapshot.tools[at] as Tool })
    if (answer === true) setBit(holds, at)
    else if (answer instanceof Failure) setBit(errors, at)
  }
  return { holds, errors }
}

/** Why a condition could not be decided. */
class Failure {
  readonly text: string
  constructor(condition: ParsedCondition, error: unknown) {
    this.text = `"${condition.text}" failed: ${messageOf(error).split('\n')[0]}`
  }
}

/**
 * Answers whether a clause holds.
 *
 * A condition that fails decides against the call: in `deny` and `ask` it is a Failure,
 * which denies; in `allow` it does not hold; a failing `unless` exempts nobody.
 */
function answerOf(clause: ParsedClause, context: CountedContext): boolean | Failure {
  const failed = (failure: Failure) => (clause.kind === 'allow' ? false : failure)
  const when = clause.when === undefined || test(clause.when, context)
  if (when instanceof Failure) return failed(when)
  if (!when) return false
  const exempt = clause.unless !== undefined && test(clause.unless, context)
  if (exempt === true) return false
  if (exempt instanceof Failure && clause.kind === 'allow') return false
  if (!clause.input || !('input' in context)) return true
  const input = test(clause.input, context)
  return input instanceof Failure ? failed(input) : input
}

function test(condition: ParsedCondition, context: CountedContext): boolean | Failure {
  try {
    return condition.test(context)
  } catch (error) {
    return new Failure(condition, error)
  }
}

function addEffect(effects: Effect[], outcome: Effect['outcome'], bits: Bits, why: (tool: Tool) => Reason): void {
  if (!isEmpty(bits)) effects.push({ outcome, bits, reason: why })
}

function clauseReason(index: PolicyIndex, clause: ParsedClause, code: ReasonCode): Reason {
  const verb = clause.kind === 'ask' ? 'asks for approval of' : 'denies'
  const conditions = [
    clause.when && `when ${clause.when.text}`,
    clause.unless && `unless ${clause.unless.text}`,
    clause.input && `where ${clause.input.text}`,
    // Reasons with equal texts are one reason, so the demands are part of the text.
    clause.approver && describeApprover(clause.approver),
  ]
  const text = [
    `${nameOf(index)} ${verb} ${clause.label}`,
    ...conditions.filter((condition) => condition !== undefined),
  ].join(', ')
  return reason('policy', code, text, {
    ...placeOf(index, clause),
    message: clause.kind === 'deny' ? clause.message : undefined,
    ...(clause.approver && { approver: clause.approver }),
  })
}

function functionReason(index: PolicyIndex, { outcome, message, failure }: FunctionAnswer): Reason {
  const place = { policy: index.policy.name, order: index.position * STRIDE }
  if (failure !== undefined) return reason('policy', 'policy_error', `${nameOf(index)}: ${failure}`, place)
  if (outcome === 'ask') return reason('policy', 'policy_ask', `${nameOf(index)} asks for approval of it`, place)
  return reason('policy', 'policy_denied', `${nameOf(index)} denies it`, { ...place, message })
}

function errorReason(index: PolicyIndex, clause: ParsedClause, context: CountedContext): Reason {
  const answer = answerOf(clause, context)
  const failure = answer instanceof Failure ? answer.text : 'a condition failed'
  return reason(
    'policy',
    'policy_error',
    `${nameOf(index)}, ${clause.kind} ${clause.label}: ${failure}`,
    placeOf(index, clause),
  )
}

function notAllowedReason(index: PolicyIndex, tool: Tool): Reason {
  const at = index.snapshot.indexOf(tool.id)
  const near = (index.allow ?? [])
    .filter(({ bits }) => hasBit(bits, at))
    .map(({ clause }) => `${clause.label}${clause.when ? ` when ${clause.when.text}` : ''}`)
  const why = near.length > 0 ? `no allow rule matched: ${near.join('; ')}` : `no allow rule mentions this ${tool.kind}`
  return reason('policy', 'policy_not_allowed', `${nameOf(index)}: ${why}`, {
    policy: index.policy.name,
    order: index.position * STRIDE + STRIDE / 2,
  })
}

function untaggedReason(index: PolicyIndex, tag: string): Reason {
  return reason('policy', 'policy_tag_missing', `${nameOf(index)} requires the tag ${tag}`, {
    policy: index.policy.name,
    order: index.position * STRIDE + STRIDE / 2,
  })
}

function placeOf(index: PolicyIndex, clause: ParsedClause): Partial<Reason> {
  return { policy: index.policy.name, clause: clause.label, order: index.position * STRIDE + clause.index }
}

function nameOf(index: PolicyIndex): string {
  return `policy "${index.policy.name}"`
}
