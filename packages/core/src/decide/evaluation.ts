import type { OutcomeWord } from '../decision/words.ts'
import type { Reason } from '../decision/reason.ts'
import type { Effect } from '../layers/effect.ts'
import { addBits, type Bits, bitsWhere, hasBit, noBits } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { VisibleTools } from './visible-tools.ts'

/** The effects of every layer over one snapshot, and what they add up to. */
export interface Evaluation {
  readonly snapshot: Toolset
  readonly effects: readonly Effect[]
  /** In each set, the tools with at least one effect of that outcome. */
  readonly deny: Bits
  readonly wait: Bits
  readonly ask: Bits
  readonly visible: VisibleTools
}

/** Adds effects up, to those of `base`. With no effect to add, `base` itself. */
export function evaluate(snapshot: Toolset, effects: readonly Effect[], base?: Evaluation): Evaluation {
  if (base && effects.length === 0) return base
  return { snapshot, effects: base ? [...base.effects, ...effects] : effects, ...addUp(snapshot, effects, base) }
}

/** A set that no effect touches is the base's own. */
function addUp(
  snapshot: Toolset,
  effects: readonly Effect[],
  base?: Evaluation,
): Pick<Evaluation, 'deny' | 'wait' | 'ask' | 'visible'> {
  const sumOf = (outcome: 'deny' | 'wait' | 'ask'): Bits => {
    const before = base?.[outcome] ?? noBits(snapshot.size)
    if (!effects.some((effect) => effect.outcome === outcome)) return before
    const bits = before.slice()
    for (const effect of effects) if (effect.outcome === outcome) addBits(bits, effect.bits)
    return bits
  }
  const [deny, wait, ask] = [sumOf('deny'), sumOf('wait'), sumOf('ask')]
  return { deny, wait, ask, visible: new VisibleTools(snapshot, deny, wait) }
}

/** Gives the strictest outcome that any layer has for the tool at an index. */
export function outcomeAt({ deny, wait, ask }: Evaluation, index: number): OutcomeWord {
  if (hasBit(deny, index)) return 'deny'
  if (hasBit(wait, index)) return 'wait'
  return hasBit(ask, index) ? 'ask' : 'allow'
}

/** Gives every reason that layers have against the tool at an index, in the order of the layers. */
export function reasonsAt({ effects, snapshot }: Evaluation, index: number): Reason[] {
  return effects.filter(({ bits }) => hasBit(bits, index)).map((effect) => effect.reason(snapshot.tools[index] as Tool))
}

/** Gives the effects of a evaluation over another snapshot; a tool that is gone there has none. */
export function projectEffects(evaluation: Evaluation, onto: Toolset): readonly Effect[] {
  if (evaluation.snapshot === onto) return evaluation.effects
  const from = onto.ids.map((id) => evaluation.snapshot.indexOf(id))
  return evaluation.effects.map((effect) => ({
    ...effect,
    bits: bitsWhere(onto.size, (i) => from[i] !== -1 && hasBit(effect.bits, from[i] as number)),
    reason: (tool: Tool) => effect.reason(evaluation.snapshot.get(tool.id) ?? tool),
  }))
}
