import type { OutcomeWord } from '../decision/words.ts'
import type { Reason } from '../decision/reason.ts'
import type { Bits } from '../tools/bits.ts'
import type { UnlockRule } from '../tools/groups.ts'
import type { Tool } from '../tools/tool.ts'

/**
 * What every layer gives: a set of tools, and the outcome and reason it has for each of them.
 *
 * Deciding reads the sets, explaining the reasons, of the same effects: the two cannot differ.
 * A layer has no effect for what it lets pass, so adding a layer can only tighten.
 */
export interface Effect {
  readonly outcome: Exclude<OutcomeWord, 'allow'>
  readonly bits: Bits
  /** Of a locked group: which one, and what opens it. */
  readonly lock?: { readonly group: string; readonly unlock: UnlockRule }
  /** It holds for one step only. */
  readonly isOfStep?: true
  reason(tool: Tool): Reason
}
