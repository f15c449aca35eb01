import type { Caller } from '../../ports/caller.ts'
import { conditionWork } from '../../policy/condition.ts'
import type { Work } from '@toolgate/values'
import { askFunction, type FunctionAnswer, type ParsedPolicy } from '../../policy/parse.ts'
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
import type { Tool } from '../../tools/tool.ts'
import { type Reason, reason, type ReasonCode } from '../decision.ts'
import type { Effect } from '../evaluation.ts'
import { decideInList } from './at-call.ts'
import {
  answerOf,
  type ClauseIndex,
  clauseReason,
  errorReason,
  Failure,
  isAtCall,
  isOfTools,
  nameOf,
  type PolicyIndex,
  STRIDE,
} from './clauses.ts'

/** Returns the effects of a policy on every caller, from the clauses without conditions. */
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

/** Returns the effects of a policy on one caller, from the clauses with conditions. */
export function callerEffects(index: PolicyIndex, caller: Caller): readonly Effect[] {
  if (index.policy.decide) return functionEffects(index, index.policy.decide, caller)
  const effects: Effect[] = []
  const work = conditionWork()
  const judge = (indexed: ClauseIndex, outcome: 'deny' | 'ask', code: ReasonCode) => {
    const { clause } = indexed
    const { holds, errors } = evaluateClause(indexed, index, caller, work)
    const reasonOf = () => clauseReason(index, clause, code)
    if (holds === indexed.bits) effects.push(wholeEffect(indexed, outcome, reasonOf))
    else addEffect(effects, outcome, holds, reasonOf)
    addEffect(effects, 'deny', errors, (tool) => errorReason(index, clause, { caller, tool }))
  }
  for (const indexed of conditional(index.deny)) judge(indexed, 'deny', 'policy_denied')
  if (index.allow?.some(isConditional)) {
    const allowed = index.allow.map((indexed) => evaluateClause(indexed, index, caller, work).holds)
    addEffect(effects, 'deny', notAllowed(index, allowed), (tool) => notAllowedReason(index, tool))
  }
  for (const indexed of conditional(index.ask)) judge(indexed, 'ask', 'policy_ask')
  if (!isOfTools(index.snapshot) && !isEmpty(index.atCall)) effects.push(...uriEffects(index, caller))
  return effects
}

/** Returns the effects of clauses with `input` on resources, whose input is their URI and so is known. */
function uriEffects(index: PolicyIndex, caller: Caller): readonly Effect[] {
  const { snapshot } = index
  const decisions = snapshot.tools.map((tool, at) =>
    tool.kind === 'resource'
      ? decideInList(index, at, { caller, tool, input: { uri: tool.uri }, work: conditionWork() })
      : undefined,
  )
  const reasonOf = ({ id }: Tool): Reason => {
    const found = decisions[snapshot.indexOf(id)]?.reasons[0] as Reason
    // A hidden resource reads like an unknown one. The caller gave no input that could be refused.
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

const wholeEffects = new WeakMap<ClauseIndex, Effect>()

/** Returns the effect of a clause that holds for all tools that it matches: the same object for every caller. */
function wholeEffect(indexed: ClauseIndex, outcome: Effect['outcome'], reasonOf: () => Reason): Effect {
  let effect = wholeEffects.get(indexed)
  if (!effect) wholeEffects.set(indexed, (effect = { outcome, bits: indexed.bits, reason: reasonOf }))
  return effect
}

/** Calls a function policy with each tool of the snapshot. */
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

/** Returns whether the result of a clause, in a list, depends on the caller. */
function isConditional({ clause: { when, unless } }: ClauseIndex): boolean {
  return (when !== undefined && !when.run) || (unless !== undefined && !unless.run)
}

function conditional(clauses: readonly ClauseIndex[]): readonly ClauseIndex[] {
  return clauses.filter((indexed) => isConditional(indexed) && !isAtCall(indexed))
}

function unconditional(clauses: readonly ClauseIndex[]): readonly ClauseIndex[] {
  return clauses.filter((indexed) => !isConditional(indexed) && !isAtCall(indexed))
}

function notAllowed({ snapshot }: PolicyIndex, allowed: readonly Bits[]): Bits {
  const all = noBits(snapshot.size)
  for (const bits of allowed) addBits(all, bits)
  return invertBits(all, snapshot.size)
}

/** The steps that each tool adds to the shared budget of a policy's conditions. A simple condition takes fewer. */
const STEPS_OF_TOOL = 200

/**
 * Returns the tools for which a clause holds for a caller, leaving out conditions about input and run, and the tools for
 * which it fails.
 */
export function evaluateClause(
  indexed: ClauseIndex,
  { snapshot, none }: PolicyIndex,
  caller: Caller,
  work: Work = conditionWork(),
): { holds: Bits; errors: Bits } {
  const { clause, bits } = indexed
  const first = firstOf(bits)
  if (first === undefined || !isConditional(indexed)) return { holds: bits, errors: none }
  if (!clause.when?.perTool && !clause.unless?.perTool) {
    const answer = answerOf(clause, { caller, tool: snapshot.tools[first] as Tool, work })
    return { holds: answer === true ? bits : none, errors: answer instanceof Failure ? bits : none }
  }
  const holds = noBits(snapshot.size)
  const errors = noBits(snapshot.size)
  for (const at of membersOf(bits)) {
    work.left += STEPS_OF_TOOL
    const answer = answerOf(clause, { caller, tool: snapshot.tools[at] as Tool, work })
    if (answer === true) setBit(holds, at)
    else if (answer instanceof Failure) setBit(errors, at)
  }
  return { holds, errors }
}

function addEffect(effects: Effect[], outcome: Effect['outcome'], bits: Bits, why: (tool: Tool) => Reason): void {
  if (!isEmpty(bits)) effects.push({ outcome, bits, reason: why })
}

function functionReason(index: PolicyIndex, { outcome, message, failure }: FunctionAnswer): Reason {
  const { name, path } = index.policy
  const place = { policy: name, path, order: index.position * STRIDE }
  if (failure !== undefined) return reason('policy', 'policy_error', `${nameOf(index)}: ${failure}`, place)
  if (outcome === 'ask') return reason('policy', 'policy_ask', `${nameOf(index)} asks for approval of it`, place)
  return reason('policy', 'policy_denied', `${nameOf(index)} denies it`, { ...place, message })
}

function notAllowedReason(index: PolicyIndex, tool: Tool): Reason {
  const at = index.snapshot.indexOf(tool.id)
  const near = (index.allow ?? [])
    .filter(({ bits }) => hasBit(bits, at))
    .map(({ clause }) => `${clause.label}${clause.when ? ` when ${clause.when.text}` : ''}`)
  const why = near.length > 0 ? `no allow rule matched: ${near.join('; ')}` : `no allow rule mentions this ${tool.kind}`
  return reason('policy', 'policy_not_allowed', `${nameOf(index)}: ${why}`, {
    policy: index.policy.name,
    path: `${index.policy.path}.allow`,
    order: index.position * STRIDE + STRIDE / 2,
  })
}

function untaggedReason(index: PolicyIndex, tag: string): Reason {
  return reason('policy', 'policy_tag_missing', `${nameOf(index)} requires the tag ${tag}`, {
    policy: index.policy.name,
    path: `${index.policy.path}.requireTags[${index.policy.requireTags.indexOf(tag)}]`,
    order: index.position * STRIDE + STRIDE / 2,
  })
}
