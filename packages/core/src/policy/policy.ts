import type { Caller } from '../caller.ts'
import type { Tool } from '../tools/tool.ts'

/** A condition: CEL text, or a pure synchronous function. */
export type Condition = string | ((context: { caller: Caller; tool: Tool; input?: unknown }) => boolean)

/**
 * A selector as text. Where the names of the tools are a type, a text that is not one of them must be a glob, a group, a
 * tag, a category or a hint; else any text, which is checked when it is read.
 */
export type SelectorText<Name extends string = string> =
  | Name
  | `${string}*${string}`
  | `${'group' | 'tag' | 'category' | 'hint'}:${string}`

export interface Clause<Name extends string = string> {
  readonly id?: string
  /** One selector or several; the clause is about every tool that one of them names. */
  readonly match: SelectorText<Name> | readonly SelectorText<Name>[]
  /** Holds only where this is true of caller and tool. */
  readonly when?: Condition
  /** Does not hold where this is true: the opposite of `when`. */
  readonly unless?: Condition
  /** Holds only where this is true of input, caller and tool; known only when called. */
  readonly input?: Condition
  /** On a denial: disclosed to the caller. Without it the tool is as if it did not exist. */
  readonly message?: string
}

/** Policies are combined by meeting, never by overriding; see `combinePolicies`. */
export interface Policy<Name extends string = string> {
  readonly name?: string
  /** Present: a tool is allowed only where one of these holds. `[]` allows nothing. */
  readonly allow?: readonly (SelectorText<Name> | Clause<Name>)[]
  readonly deny?: readonly (SelectorText<Name> | Clause<Name>)[]
  readonly ask?: readonly (SelectorText<Name> | Clause<Name>)[]
  readonly requireTags?: readonly string[]
}

export type PolicyAnswer = 'allow' | 'ask' | 'deny'

/**
 * A policy as a pure, synchronous function of tool and caller, asked once for each tool and caller while nothing changes.
 *
 * A throw, a promise and any other answer deny with `policy_error`. The message of a denial is disclosed to the caller.
 */
export interface FunctionPolicy {
  readonly name?: string
  decide(tool: Tool, caller: Caller): PolicyAnswer | { readonly outcome: PolicyAnswer; readonly message?: string }
}

/** What a gate takes for its policy: data, functions, or several of both. All are met. */
export type Policies<Name extends string = string> =
  | Policy<Name>
  | FunctionPolicy
  | readonly (Policy<Name> | FunctionPolicy)[]
  | CombinedPolicies

declare const met: unique symbol

/** Policies that `combinePolicies` combined: the names in them are checked when they are read, not by the compiler. */
export type CombinedPolicies = readonly (Policy | FunctionPolicy)[] & { readonly [met]: true }

/**
 * Combines policies in the open: the result is a list in which each still answers for itself,
 * and a tool is decided by the strictest of the answers. Denies, asks and required tags add
 * up, allowlists intersect, the order does not matter.
 *
 * @example
 * createGate({ tools, policy: combinePolicies(baseline, policyFromEnv(process.env), { deny: ['tag:payments'] }) })
 */
export function combinePolicies(...policies: readonly (Policies | undefined)[]): CombinedPolicies {
  return policies.flatMap((policy) => policy ?? []) as readonly unknown[] as CombinedPolicies
}
