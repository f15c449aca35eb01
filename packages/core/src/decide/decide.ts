import type { Caller } from '../ports/caller.ts'
import type { SchemaWarning } from '@toolgate/values/json-schema'
import { decideAtCall } from './layers/at-call.ts'
import type { PolicyIndex } from './layers/clauses.ts'
import { callerEffects, fixedEffects } from './layers/policy.ts'
import { conditionWork } from '../policy/condition.ts'
import { hasBit, addBits, type Bits, bitsWhere, invertBits } from '../tools/bits.ts'
import { schemaWarningsOf } from '../tools/schema-warnings.ts'
import type { RunFacts } from '../history/facts.ts'
import type { ParsedClause } from '../policy/parse.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import {
  compareStrictness,
  type Decision,
  sortReasons,
  type MayStill,
  type OutcomeWord,
  type Reason,
  reason,
  ASKED_LAYERS,
  strictest,
  type Layer,
} from './decision.ts'
import { reasonsAt, type Evaluation, type Effect, evaluate } from './evaluation.ts'
import type { PolicySnapshot } from './policy-snapshot.ts'
import type { FoundTable } from './tallies.ts'

/** The bounds of a run, fixed when its view was made. */
export interface RunBounds {
  readonly caller: Caller
  readonly evaluation: Evaluation
  /** The policies when the view was made, for clauses that read the input. */
  readonly policies: readonly PolicyIndex[]
  /** The counts of its calls. `Coverage` keeps them here, because each call needs them. */
  tallies?: FoundTable | undefined
}

/**
 * The one decision: the stricter of the view's answer and today's.
 *
 * Listing, calling, resuming and explaining all use it. `tool` is today's tool, present only if both the view and today's
 * catalog have the id.
 */
export interface Decided {
  /** The view's bounds that were used. */
  readonly bounds: RunBounds
  readonly outcome: OutcomeWord
  readonly tool: Tool | undefined
  /** Today's snapshot that was used. A snapshot never changes, so the decision is valid while the snapshot is current. */
  readonly today: PolicySnapshot
  /** The index of the tool in the view's snapshot, and in today's. */
  readonly atFirst: number
  readonly now: number
}

export function decide(bounds: RunBounds, today: PolicySnapshot, id: string | undefined): Decided {
  if (id === undefined) return notFound(bounds, today)
  const { evaluation, caller } = bounds
  const atFirst = evaluation.snapshot.indexOf(id)
  const now = today.snapshot === evaluation.snapshot ? atFirst : today.snapshot.indexOf(id)
  if (atFirst === -1 || now === -1) return notFound(bounds, today)
  const current = today.evaluation(caller)
  const outcome = outcomeAt(evaluation, atFirst)
  return {
    bounds,
    outcome: current === evaluation ? outcome : stricter(outcome, outcomeAt(current, now)),
    tool: today.snapshot.tools[now],
    today,
    atFirst,
    now,
  }
}

/** Returns the strictest outcome that any layer has for the tool at an index. */
export function outcomeAt({ deny, wait, ask }: Evaluation, index: number): OutcomeWord {
  if (hasBit(deny, index)) return 'deny'
  if (hasBit(wait, index)) return 'wait'
  return hasBit(ask, index) ? 'ask' : 'allow'
}

/** Returns the reasons of a decision, from the same effects that decided it. */
export function explain(decided: Decided): Decision {
  if (decided.tool === undefined) return UNKNOWN
  const { bounds } = decided
  const current = decided.today.evaluation(bounds.caller)
  const reasons = reasonsAt(bounds.evaluation, decided.atFirst)
  const all = current === bounds.evaluation ? reasons : [...reasons, ...reasonsAt(current, decided.now)]
  return { outcome: decided.outcome, reasons: sortReasons(withoutRepeats(all)) }
}

/**
 * Returns the decision of the clauses that read the input or the run, from the view and from today. Pass `facts` if clauses
 * read the run. Adds the clauses that hold to `hits`.
 */
export function decideWithInput(decided: Decided, input: unknown, facts?: RunFacts, hits?: ParsedClause[]): Decision {
  const { bounds, tool, today, atFirst, now } = decided
  if (tool === undefined) return UNKNOWN
  const context = { caller: bounds.caller, tool, input, facts, hits, work: conditionWork() }
  const answers: Decision[] = []
  for (const policy of bounds.policies)
    if (hasBit(policy.atCall, atFirst)) answers.push(decideAtCall(policy, atFirst, context))
  if (today.policies !== bounds.policies)
    for (const policy of today.policies)
      if (hasBit(policy.atCall, now)) answers.push(decideAtCall(policy, now, context))
  if (answers.length === 0) return ALLOWED
  const reasons = answers.flatMap((answer) => answer.reasons)
  if (reasons.length === 0) return ALLOWED
  return {
    outcome: answers.reduce<OutcomeWord>((word, answer) => stricter(word, answer.outcome), 'allow'),
    reasons: sortReasons(withoutRepeats(reasons)),
  }
}

/** Returns whether clauses about the tool read the input or the run. */
export function readsCall({ bounds, today, atFirst, now }: Decided): boolean {
  if (isDecidedAtCall(bounds.policies, atFirst)) return true
  return today.policies !== bounds.policies && isDecidedAtCall(today.policies, now)
}

/** Returns whether the decision with the input depends on the history of the run. */
export function readsRun({ bounds, today, atFirst, now }: Decided): boolean {
  return (
    bounds.policies.some(({ ofRun }) => hasBit(ofRun, atFirst)) ||
    (today.policies !== bounds.policies && today.policies.some(({ ofRun }) => hasBit(ofRun, now)))
  )
}

/** The facts of a call that are known once its input is. */
export interface CallFacts {
  readonly input: unknown
  readonly facts: RunFacts | undefined
  /** Receives the clauses that hold, and marks of clauses that cannot be judged. */
  readonly hits: ParsedClause[]
}

/**
 * Returns what shadow policies would decide if they were enforced; `undefined` if there are none. Without a call, includes
 * only clauses that read neither the input nor the run.
 */
export function decideShadows({ bounds, tool, today, atFirst, now }: Decided, call?: CallFacts): Decision | undefined {
  if (tool === undefined) return undefined
  const first = shadowsOf(bounds.policies)
  const current = today.policies === bounds.policies ? NONE : shadowsOf(today.policies)
  if (first.length + current.length === 0) return undefined
  const { caller } = bounds
  // Shadows have a step budget of their own, so that they cannot use up the budget of enforced conditions.
  const context = call && { caller, tool, ...call, isShadow: true, work: conditionWork() }
  const against: Decision[] = []
  const judge = (index: PolicyIndex, at: number) => {
    const evaluation = evaluationOf(index, caller)
    const outcome = outcomeAt(evaluation, at)
    if (outcome !== 'allow') against.push({ outcome, reasons: reasonsAt(evaluation, at) })
    const answer = context ? decideAtCall(index, at, context) : ALLOWED
    if (answer.outcome !== 'allow') against.push(answer)
  }
  for (const index of first) judge(index, atFirst)
  for (const index of current) judge(index, now)
  if (against.length === 0) return ALLOWED
  const { outcome, reasons } = strictest(against)
  return { outcome, reasons: withoutRepeats(reasons) }
}

/** Returns whether the decision of shadows depends on the history of the run. */
export function shadowsReadRun({ bounds, today, atFirst, now }: Decided): boolean {
  return (
    shadowsOf(bounds.policies).some(({ ofRun }) => hasBit(ofRun, atFirst)) ||
    shadowsOf(today.policies).some(({ ofRun }) => hasBit(ofRun, now))
  )
}

const NONE: readonly PolicyIndex[] = []
const shadows = new WeakMap<readonly PolicyIndex[], readonly PolicyIndex[]>()

function shadowsOf(policies: readonly PolicyIndex[]): readonly PolicyIndex[] {
  let found = shadows.get(policies)
  if (!found) shadows.set(policies, (found = policies.flatMap(({ shadow }) => shadow ?? [])))
  return found
}

const shadowEvaluations = new WeakMap<PolicyIndex, WeakMap<Caller, Evaluation>>()

function evaluationOf(shadow: PolicyIndex, caller: Caller): Evaluation {
  let known = shadowEvaluations.get(shadow)
  if (!known) shadowEvaluations.set(shadow, (known = new WeakMap()))
  let found = known.get(caller)
  if (!found)
    known.set(caller, (found = evaluate(shadow.snapshot, [...fixedEffects(shadow), ...callerEffects(shadow, caller)])))
  return found
}

/** Returns the decision about an unknown id. */
export function notFound(bounds: RunBounds, today: PolicySnapshot): Decided {
  return { bounds, outcome: 'deny', tool: undefined, today, atFirst: -1, now: -1 }
}

function isDecidedAtCall(policies: readonly PolicyIndex[], at: number): boolean {
  return policies.some(({ atCall }) => hasBit(atCall, at))
}

const ALLOWED: Decision = { outcome: 'allow', reasons: [] }
const UNKNOWN: Decision = { outcome: 'deny', reasons: [reason('catalog', 'tool_not_found', 'no tool has this id')] }

function stricter(a: OutcomeWord, b: OutcomeWord): OutcomeWord {
  return compareStrictness(a, b) < 0 ? a : b
}

function withoutRepeats(reasons: readonly Reason[]): readonly Reason[] {
  const seen = new Set<string>()
  return reasons.filter((one) => {
    const key = `${one.layer}\0${one.code}\0${one.text}\0${one.message}`
    return !seen.has(key) && seen.add(key)
  })
}

/** The decision of one layer alone about a tool. */
export interface LayerAnswer {
  readonly layer: Layer
  readonly outcome: OutcomeWord
}

/** A decision for people, with the answer of every layer. */
export interface Explanation extends Decision {
  /** The deciding layer first, then the others in the order of the layers. */
  readonly answers: readonly LayerAnswer[]
  /**
   * The reasons that may still refuse a call of a listed item: rules about its input and run, hooks, limits. If empty,
   * every call with a valid input has this outcome.
   */
  readonly mayStill: readonly MayStill[]
  /** The decisions of the shadow policies. Absent without shadow policies. */
  readonly shadow?: Decision
  /** The keywords of the tool's input schema that are not checked, if any. */
  readonly schemaWarnings?: readonly SchemaWarning[]
}

export function toExplanation(
  decided: Decided,
  { outcome, reasons }: Decision,
  mayStill: () => readonly MayStill[],
): Explanation {
  const { tool } = decided
  const shadow = decideShadows(decided)
  const schemaWarnings = tool ? schemaWarningsOf(tool) : []
  return {
    outcome,
    reasons,
    // Computed on demand, because lists of a whole catalog do not read it.
    get answers() {
      return answersOf(ASKED_LAYERS, reasons)
    },
    get mayStill() {
      return mayStill()
    },
    ...(shadow ? { shadow } : {}),
    ...(schemaWarnings.length > 0 ? { schemaWarnings } : {}),
  }
}

/** Returns each layer's answer from a list of reasons, the strictest first. */
export function answersOf(layers: readonly Layer[], reasons: Decision['reasons']): readonly LayerAnswer[] {
  return layers
    .map((layer) => ({ layer, outcome: strictestOf(layer, reasons) }))
    .toSorted((a, b) => compareStrictness(a.outcome, b.outcome))
}

function strictestOf(layer: Layer, reasons: Decision['reasons']): OutcomeWord {
  const own = reasons.filter((one) => one.layer === layer).map(({ outcome }) => outcome)
  return own.toSorted(compareStrictness)[0] ?? 'allow'
}

/** A set of visible tools in a snapshot. */
export interface Visible {
  readonly snapshot: Toolset
  readonly bits: Bits
}

/** Returns the tools that are visible both in a view and today: `decide` for all tools at once. */
export function visibleToday({ evaluation, caller }: RunBounds, today: PolicySnapshot): Visible {
  return { snapshot: evaluation.snapshot, bits: visibleInBoth(evaluation, today.evaluation(caller)) }
}

/** Returns the visible tools and those that only need a search to find them. */
export function findableToday({ evaluation, caller }: RunBounds, today: PolicySnapshot): Visible {
  const first = withoutSearchLocks(evaluation)
  const current = withoutSearchLocks(today.evaluation(caller))
  return { snapshot: evaluation.snapshot, bits: visibleInBoth(first, current) }
}

function visibleInBoth(first: Evaluation, current: Evaluation): Bits {
  const { snapshot } = first
  const { bits: visible } = first.visible
  if (current === first) return visible
  if (current.snapshot === snapshot) return intersect(visible, current.visible.bits, snapshot.size)
  const visibleNow = current.visible.bits
  return bitsWhere(
    snapshot.size,
    (i) => {
      const now = current.snapshot.indexOf(snapshot.ids[i] as string)
      return now !== -1 && hasBit(visibleNow, now)
    },
    visible,
  )
}

function intersect(a: Bits, b: Bits, size: number): Bits {
  const outside = invertBits(a, size)
  addBits(outside, invertBits(b, size))
  return invertBits(outside, size)
}

function withoutSearchLocks(evaluation: Evaluation): Evaluation {
  const { snapshot, effects } = evaluation
  const others = effects.filter((effect) => !isSearchLock(effect))
  return others.length === effects.length ? evaluation : evaluate(snapshot, others)
}

function isSearchLock(effect: Effect): boolean {
  return effect.lock?.unlock === 'search'
}
