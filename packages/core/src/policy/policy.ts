import type { Caller } from '../caller.ts'
import type { Tool } from '../tools/tool.ts'

/** A condition: CEL text, or a pure synchronous function. */
export type Condition = string | ((context: { caller: Caller; tool: Tool; input?: unknown }) => boolean)

export interface Clause {
  readonly id?: string
  /** One selector or several; the clause is about every tool that one of them names. */
  readonly match: string | readonly string[]
  /** Holds only where this is true of caller and tool. */
  readonly when?: Condition
  /** Does not hold where this is true: the opposite of `when`. */
  readonly unless?: Condition
  /** Holds only where this is true of input, caller and tool; known only when called. */
  readonly input?: Condition
  /** On a denial: disclosed to the caller. Without it the tool is as if it did not exist. */
  readonly message?: string
}

/** Policies are combined by meeting, never by overriding; see `meetPolicies`. */
export interface Policy {
  readonly name?: string
  /** Present: a tool is allowed only where one of these holds. `[]` allows nothing. */
  readonly allow?: readonly (string | Clause)[]
  readonly deny?: readonly (string | Clause)[]
  readonly ask?: readonly (string | Clause)[]
  readonly requireTags?: readonly string[]
}
