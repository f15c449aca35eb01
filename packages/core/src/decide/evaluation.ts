import { addBits, type Bits, bitsWhere, hasBit, noBits, invertBits, membersOf } from '../tools/bits.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { UnlockRule } from '../tools/groups.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { sha256Hex } from '@toolgate/values'
import type { OutcomeWord, Reason } from './decision.ts'
import { type TemplateIndex, templatesOf } from './templates.ts'

/** The effects of all layers over one snapshot, and their combined result. */
export interface Evaluation {
  readonly snapshot: Toolset
  readonly effects: readonly Effect[]
  /** For each outcome, the tools with at least one effect of that outcome. */
  readonly deny: Bits
  readonly wait: Bits
  readonly ask: Bits
  readonly visible: VisibleTools
}

/** Combines effects with those of `base`. Returns `base` itself if there are none to add. */
export function evaluate(snapshot: Toolset, given: readonly Effect[], base?: Evaluation): Evaluation {
  if (base && given.length === 0) return base
  const effects = spreadTemplates(snapshot, given)
  return { snapshot, effects: base ? [...base.effects, ...effects] : effects, ...addUp(snapshot, effects, base) }
}

/** A set that no effect changes is shared with the base. */
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

/** Returns every layer's reasons against the tool at an index, in the order of the layers. */
export function reasonsAt({ effects, snapshot }: Evaluation, index: number): Reason[] {
  return effects.filter(({ bits }) => hasBit(bits, index)).map((effect) => effect.reason(snapshot.tools[index] as Tool))
}

/** Returns the effects of an evaluation over another snapshot. Tools that are missing there have none. */
export function projectEffects(evaluation: Evaluation, onto: Toolset): readonly Effect[] {
  if (evaluation.snapshot === onto) return evaluation.effects
  const from = onto.ids.map((id) => evaluation.snapshot.indexOf(id))
  return evaluation.effects.map((effect) => ({
    ...effect,
    bits: bitsWhere(onto.size, (i) => from[i] !== -1 && hasBit(effect.bits, from[i] as number)),
    reason: (tool: Tool) => effect.reason(evaluation.snapshot.get(tool.id) ?? tool),
  }))
}

/**
 * The answer of one layer: a set of tools, with one outcome and reason for each of them.
 *
 * Decisions read the sets, explanations read the reasons of the same effects, so the two cannot differ. A layer has no
 * effect on tools that it lets pass, so adding a layer can only tighten.
 */
export interface Effect {
  readonly outcome: Exclude<OutcomeWord, 'allow'>
  readonly bits: Bits
  /** For a locked group: its name, and the rule that opens it. */
  readonly lock?: { readonly group: string; readonly unlock: UnlockRule }
  /** The effect applies to one step only. */
  readonly isOfStep?: true
  reason(tool: Tool): Reason
}

/**
 * Extends effects on a template to every resource that the template may match, because a read is decided by its URI and by
 * all these templates. Effects on no template stay the same objects.
 */
function spreadTemplates(snapshot: Toolset, effects: readonly Effect[]): readonly Effect[] {
  const templates = templatesOf(snapshot)
  return templates.length === 0 ? effects : effects.map((effect) => spread(effect, snapshot, templates))
}

const spreads = new WeakMap<Effect, Effect>()

function spread(effect: Effect, snapshot: Toolset, templates: readonly TemplateIndex[]): Effect {
  let wide = spreads.get(effect)
  if (!wide) spreads.set(effect, (wide = widen(effect, snapshot, templates)))
  return wide
}

function widen(effect: Effect, snapshot: Toolset, templates: readonly TemplateIndex[]): Effect {
  const held = templates.filter(({ at }) => hasBit(effect.bits, at))
  if (held.length === 0) return effect
  const bits = effect.bits.slice()
  for (const { matched } of held) addBits(bits, matched)
  const wide: Effect = {
    ...effect,
    bits,
    reason(tool) {
      const index = snapshot.indexOf(tool.id)
      const own = hasBit(effect.bits, index) ? undefined : held.find(({ matched }) => hasBit(matched, index))
      const template = own && snapshot.tools[own.at]
      if (!template) return effect.reason(tool)
      const why = effect.reason(template)
      return { ...why, text: `the template "${template.id}" may match it: ${why.text}` }
    },
  }
  spreads.set(wide, wide)
  return wide
}

/**
 * The visible tools of a snapshot. Callers who see the same tools share it.
 *
 * Each form is computed at first use. A class, because a literal with getters costs a hidden class each time.
 */
class VisibleTools {
  readonly #snapshot: Toolset
  readonly #deny: Bits
  readonly #wait: Bits
  #bits: Bits | undefined
  #tools: readonly Tool[] | undefined
  #ids: readonly string[] | undefined
  #fingerprint: string | undefined

  constructor(snapshot: Toolset, deny: Bits, wait: Bits) {
    this.#snapshot = snapshot
    this.#deny = deny
    this.#wait = wait
  }

  /** Do not change the result. */
  get bits(): Bits {
    return (this.#bits ??= visibleOf(this.#snapshot, this.#deny, this.#wait))
  }

  get tools(): readonly Tool[] {
    const { tools } = this.#snapshot
    return (this.#tools ??= Object.freeze(membersOf(this.bits).map((i) => tools[i] as Tool)))
  }

  get ids(): readonly string[] {
    return (this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id)))
  }

  /** The hash of the visible definitions, 32 hex digits. */
  get fingerprint(): string {
    return (this.#fingerprint ??= sha256Hex(this.tools.map(definitionHash).join('\n')).slice(0, 32))
  }
}

function visibleOf({ size }: Toolset, deny: Bits, wait: Bits): Bits {
  const hidden = noBits(size)
  addBits(hidden, deny)
  addBits(hidden, wait)
  return invertBits(hidden, size)
}
