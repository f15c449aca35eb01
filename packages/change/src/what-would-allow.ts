import {
  callerEffects,
  decide,
  type Decided,
  decideWithInput,
  evaluate,
  type Evaluation,
  fixedEffects,
  hasBit,
  indexPolicy,
  mayGoOn,
  type PolicyIndex,
  type PolicySnapshot,
  reasonsAt,
} from '@toolgate/core/decide'
import type { Caller, Reason, View } from '@toolgate/core'
import { toCallView } from '@toolgate/core/call'
import { joined, type ParsedPolicy } from '@toolgate/core/policy'
import { applyChanges, type Changed } from './applied-changes.ts'
import type { AskedCall, NeededChange } from './needed-change.ts'
import { changesAgainst, stateOf } from './needed-changes.ts'

const MAX_WAYS = 5
/** The most ways that are tried, because each is decided again in a large catalog. */
const MAX_TRIED = 40

/**
 * Returns the smallest changes that make an item visible or, with a call, let the call pass: at most five ways, the
 * smallest first. Each way was decided again and passes. Empty if no change is needed.
 */
export function whatWouldAllow(view: View, id: string, call?: AskedCall): readonly (readonly NeededChange[])[] {
  const decided = toCallView(view).decide(id)
  if (!decided.tool) return []
  const against = reasonsOf(decided, call)
  if (against.length === 0) return []
  const options = against.map((reason) => changesAgainst(reason, decided, call !== undefined))
  const ways = joined(options, MAX_TRIED * 4).map((way) => distinct(way))
  const found: (readonly NeededChange[])[] = []
  const tried = ways
    .filter((way) => way.length > 0)
    .toSorted((a, b) => a.length - b.length || rankOf(a) - rankOf(b))
    .slice(0, MAX_TRIED)
  for (const way of tried) {
    if (found.length >= MAX_WAYS) break
    if (found.some((less) => less.every((change) => way.some((one) => one.text === change.text)))) continue
    const changed = applyChanges(way, decided, call)
    if (changed && passes(decided, changed)) found.push(way)
  }
  return found
}

const RANKS = ['input', 'caller', 'state', 'policy'] as const

function rankOf(way: readonly NeededChange[]): number {
  return Math.max(...way.map(({ on, does }) => RANKS.indexOf(on) + (does === 'remove' && on === 'policy' ? 1 : 0)))
}

function distinct(way: readonly NeededChange[]): readonly NeededChange[] {
  return [...new Map(way.map((change) => [change.text, change])).values()]
}

/** Returns the reasons that stop an item or a call. */
function reasonsOf(decided: Decided, call: AskedCall | undefined): readonly Reason[] {
  const { bounds, today, atFirst, now } = decided
  const current = today.evaluation(bounds.caller)
  const first = current === bounds.evaluation ? [] : reasonsAt(bounds.evaluation, atFirst)
  const reasons = [...first, ...reasonsAt(current, now)]
  // An input that the tool rejects has its own reasons. A change may make it valid.
  const input = call && (acceptedOf(call)?.value ?? call.input)
  const atCall = call ? decideWithInput(decided, input, call.facts).reasons : []
  const against = [...reasons, ...atCall].filter(({ outcome }) => !mayGoOn(outcome))
  return [...new Map(against.map((one) => [stateOf(one), one])).values()]
}

/** Decides again with the changes. Returns whether it passes. */
function passes(decided: Decided, { caller, policies, released, call }: Changed): boolean {
  const { bounds, today, tool, atFirst, now } = decided
  if (!tool) return false
  const indexes = indexesOf(today, policies)
  const current = today.evaluation(bounds.caller)
  const isHeld = (one: Reason) => !(one.layer === 'policy' && one.policy !== undefined) && !released.has(stateOf(one))
  const others = ({ effects, snapshot }: Evaluation, at: number) =>
    effects.filter((effect) => !hasBit(effect.bits, at) || isHeld(effect.reason(snapshot.tools[at] ?? tool)))
  const evaluationOf = (one: Caller) =>
    evaluate(today.snapshot, [
      ...others(today.evaluation(one), now),
      ...indexes.flatMap((index) => [...fixedEffects(index), ...callerEffects(index, one)]),
    ])
  const evaluation = evaluationOf(caller)
  // The run's own narrowing stays.
  const known = new Set(reasonsAt(current, now).map(({ text }) => text))
  const narrowed =
    current === bounds.evaluation
      ? []
      : reasonsAt(bounds.evaluation, atFirst).filter(
          (one) => !known.has(one.text) && !mayGoOn(one.outcome) && !released.has(stateOf(one)),
        )
  if (narrowed.length > 0) return false
  const snapshot: PolicySnapshot = { ...today, policies: indexes, evaluation: evaluationOf }
  const again = decide({ caller, evaluation, policies: indexes }, snapshot, tool.id)
  if (!mayGoOn(again.outcome)) return false
  if (!call) return true
  const accepted = acceptedOf(call)
  return accepted !== undefined && mayGoOn(decideWithInput(again, accepted.value, call.facts).outcome)
}

function acceptedOf({ input, accept }: AskedCall): { readonly value: unknown } | undefined {
  return accept ? accept(input) : { value: input }
}

/** An unchanged policy keeps its index. */
function indexesOf({ policies, snapshot }: PolicySnapshot, changed: readonly ParsedPolicy[]): readonly PolicyIndex[] {
  return policies.map((index, i) => {
    const policy = changed[i] ?? index.whole
    return policy === index.whole ? index : indexPolicy(policy, index.position, snapshot)
  })
}
