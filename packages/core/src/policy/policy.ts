import type { Caller } from '../ports/caller.ts'
import type { ItemKind } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'

/** A condition: CEL text, or a pure synchronous function. */
export type Condition = string | ((context: { caller: Caller; tool: Tool; input?: unknown }) => boolean)

/**
 * A selector as text. If the tool names are a type, other texts must be a glob, a group, a tag, a category or a hint.
 * Otherwise any text is accepted, and is checked when it is parsed.
 */
type SelectorText<Name extends string = string> =
  | Name
  | `${string}*${string}`
  | `${'group' | 'tag' | 'category' | 'hint' | 'resource' | 'prompt' | 'server'}:${string}`

export interface Clause<Name extends string = string> {
  readonly id?: string
  /** One or more selectors. The clause applies to every tool that one of them matches. */
  readonly match: SelectorText<Name> | readonly SelectorText<Name>[]
  /** The clause applies only if this is true for caller and tool. */
  readonly when?: Condition
  /** The clause does not apply if this is true: the opposite of `when`. */
  readonly unless?: Condition
  /** The clause applies only if this is true for input, caller and tool. Evaluated at each call. */
  readonly input?: Condition
  /** The text for the caller of a denied tool. Without it, the tool is refused as if it did not exist. */
  readonly message?: string
  /** For `ask`: `other` requires an approver other than the person who asks. */
  readonly by?: 'other'
  /** For `ask`: the longest time since the approver's login, such as `30s`, `5m` or `1h`. */
  readonly login?: string
  /**
   * For `ask`: how many different people must approve, as a number, or as a number for each role, such as
   * `{ finance: 1, security: 1 }`. Roles take the place of the role `approver`. Two or more imply `by: other`.
   */
  readonly approvers?: number | Readonly<Record<string, number>>
  /** For `ask`: whether an approver may change the input. Default: no. Every clause that asks must allow it. */
  readonly edit?: boolean
  /** For `deny` and `ask`: `shadow` only records what the clause would do. */
  readonly mode?: 'shadow'
}

/** A selector alone, or with conditions. */
type Rule<Name extends string> = SelectorText<Name> | Clause<Name>

/** A policy as data. Policies are combined: none overrides another. See `combinePolicies`. */
export interface Policy<Name extends string = string> {
  readonly name?: string
  /**
   * Only matching items are allowed. `[]` allows nothing. Default `['*']`, which matches every tool but no resources or
   * prompts: each policy must name those, as in `resource:files:*`.
   */
  readonly allow?: readonly Rule<Name>[]
  readonly deny?: readonly Rule<Name>[]
  readonly ask?: readonly Rule<Name>[]
  readonly requireTags?: readonly string[]
  /** `shadow`: calls are decided as if the policy were absent, and their records say what it would do. */
  readonly mode?: 'shadow'
}

export type PolicyAnswer = 'allow' | 'ask' | 'deny'

/**
 * A policy as a pure, synchronous function of tool and caller. It runs once for each tool and caller until something
 * changes.
 *
 * An exception, a promise and any other result deny with `policy_error`. The message of a denial is disclosed to the
 * caller.
 */
export interface FunctionPolicy {
  readonly name?: string
  /** The kinds that the function decides in addition to tools. It denies the others. Default: none. */
  readonly kinds?: readonly Exclude<ItemKind, 'tool'>[]
  /** `shadow`: calls are decided as if the policy were absent, and their records say what it would do. */
  readonly mode?: 'shadow'
  decide(tool: Tool, caller: Caller): PolicyAnswer | { readonly outcome: PolicyAnswer; readonly message?: string }
}

/**
 * The policies of a gate: data, functions, or several of both. All of them apply.
 *
 * No member of the union is an array for the compiler, so that its error for a misspelt name points at the name.
 */
export type Policies<Name extends string = string> =
  | Policy<Name>
  | FunctionPolicy
  | ArrayLike<Policy<Name> | FunctionPolicy>
  | CombinedPolicies

declare const met: unique symbol

/** The result of `combinePolicies`. Names in it are checked when it is parsed, not by the compiler. */
interface CombinedPolicies {
  readonly [met]: true
}

/** Returns policies as a list. */
export function listPolicies(policies: Policies | undefined): readonly (Policy | FunctionPolicy)[] {
  if (policies === undefined) return []
  const given: unknown = policies
  return Array.isArray(given) ? (given as readonly (Policy | FunctionPolicy)[]) : [policies as Policy | FunctionPolicy]
}

/**
 * Combines policies. The strictest answer decides: denies, asks and required tags add up, allowlists intersect, and the
 * order does not matter.
 *
 * @example
 * createGate({ tools, policy: combinePolicies(baseline, policyFromEnv(process.env), { deny: ['tag:payments'] }) })
 */
export function combinePolicies(...policies: readonly (Policies | undefined)[]): CombinedPolicies {
  return policies.flatMap(listPolicies) as unknown as CombinedPolicies
}
