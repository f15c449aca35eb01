import type { OutcomeWord } from '../decision/words.ts'
import type { Reason } from '../decision/reason.ts'
import type { Mark } from '../layers/mark.ts'
import { addBits, type Bits, bitsWhere, hasBit, noBits } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { Listing } from './listing.ts'

/** The marks of every layer over one snapshot, and what they add up to. */
export interface Ruling {
  readonly snapshot: Toolset
  readonly marks: readonly Mark[]
  /** In each set, the tools with at least one mark of that outcome. */
  readonly deny: Bits
  readonly wait: Bits
  readonly ask: Bits
  readonly listing: Listing
}

/** Adds marks up, to those of `base`. With no mark to add, `base` itself. */
export function rule(snapshot: Toolset, marks: readonly Mark[], base?: Ruling): Ruling {
  if (base && marks.length === 0) return base
  return { snapshot, marks: base ? [...base.marks, ...marks] : marks, ...addUp(snapshot, marks, base) }
}

/** A set that no mark touches is the base's own. */
function addUp(
  snapshot: Toolset,
  marks: readonly Mark[],
  base?: Ruling,
): Pick<Ruling, 'deny' | 'wait' | 'ask' | 'listing'> {
  const sumOf = (outcome: 'deny' | 'wait' | 'ask'): Bits => {
    const before = base?.[outcome] ?? noBits(snapshot.size)
    if (!marks.some((mark) => mark.outcome === outcome)) return before
    const bits = before.slice()
    for (const mark of marks) if (mark.outcome === outcome) addBits(bits, mark.bits)
    return bits
  }
  const [deny, wait, ask] = [sumOf('deny'), sumOf('wait'), sumOf('ask')]
  return { deny, wait, ask, listing: new Listing(snapshot, deny, wait) }
}

/** Gives the strictest outcome that any layer has for the tool at an index. */
export function outcomeAt({ deny, wait, ask }: Ruling, index: number): OutcomeWord {
  if (hasBit(deny, index)) return 'deny'
  if (hasBit(wait, index)) return 'wait'
  return hasBit(ask, index) ? 'ask' : 'allow'
}

/** Gives every reason that layers have against the tool at an index, in the order of the layers. */
export function reasonsAt({ marks, snapshot }: Ruling, index: number): Reason[] {
  return marks.filter(({ bits }) => hasBit(bits, index)).map((mark) => mark.reason(snapshot.tools[index] as Tool))
}

/** Gives the marks of a ruling over another snapshot; a tool that is gone there has none. */
export function projectMarks(ruling: Ruling, onto: Toolset): readonly Mark[] {
  if (ruling.snapshot === onto) return ruling.marks
  const from = onto.ids.map((id) => ruling.snapshot.indexOf(id))
  return ruling.marks.map((mark) => ({
    ...mark,
    bits: bitsWhere(onto.size, (i) => from[i] !== -1 && hasBit(mark.bits, from[i] as number)),
    reason: (tool: Tool) => mark.reason(ruling.snapshot.get(tool.id) ?? tool),
  }))
}
