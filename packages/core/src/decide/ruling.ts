import type { OutcomeWord } from '../decision/words.ts'
import type { Reason } from '../decision/reason.ts'
import type { Mark } from '../layers/mark.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits, noBits } from '../tools/bits.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'

/** The marks of every layer over one snapshot, and what they add up to. */
export interface Ruling {
  readonly snapshot: Toolset
  readonly marks: readonly Mark[]
  readonly deny: Bits
  readonly wait: Bits
  readonly ask: Bits
}

/** Adds up marks: in each set, the tools with at least one mark of that outcome. With no mark to add, `base` itself. */
export function rule(snapshot: Toolset, marks: readonly Mark[], base?: Ruling): Ruling {
  if (base && marks.length === 0) return base
  const empty = base ?? {
    deny: noBits(snapshot.size),
    wait: noBits(snapshot.size),
    ask: noBits(snapshot.size),
    marks: [],
  }
  const sets = { deny: empty.deny.slice(), wait: empty.wait.slice(), ask: empty.ask.slice() }
  for (const { outcome, bits } of marks) addBits(sets[outcome], bits)
  return { snapshot, marks: [...empty.marks, ...marks], ...sets }
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

/** Gives the indexes of the visible tools as a set: decided `allow` or `ask`. */
export function visibleBits({ deny, wait, snapshot }: Ruling): Bits {
  const hidden = noBits(snapshot.size)
  addBits(hidden, deny)
  addBits(hidden, wait)
  return invertBits(hidden, snapshot.size)
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
