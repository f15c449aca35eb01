import type { Clause, FunctionPolicy, Policies, Policy } from '@toolgate/core'
import { type Condition, listPolicies } from '@toolgate/core/policy'

/** Selectors that match everything in a catalog. */
const EVERYTHING = ['*', 'resource:*:*', 'prompt:*:*'] as const

const numbers = new WeakMap<object, number>()
let count = 0

/**
 * Replaces each function policy by a rule on an unknown attribute, because a function may answer anything. The same
 * function gets the same text, so policies that contain it on both sides compare as equal.
 */
export function withoutFunctions(policies: Policies | undefined): readonly Policy[] {
  return listPolicies(policies).map((policy) => ('decide' in policy ? ofFunction(policy) : ofClauses(policy)))
}

function ofFunction(policy: FunctionPolicy): Policy {
  const { name, kinds = [], mode } = policy
  const others = [
    ...(kinds.includes('resource') || kinds.includes('template') ? [EVERYTHING[1]] : []),
    ...(kinds.includes('prompt') ? [EVERYTHING[2]] : []),
  ]
  return {
    ...(name !== undefined && { name }),
    ...(mode && { mode }),
    allow: [EVERYTHING[0], ...others],
    deny: [{ match: EVERYTHING, when: textOf(policy) }],
  }
}

function ofClauses({ allow, deny, ask, ...policy }: Policy): Policy {
  return {
    ...policy,
    ...(allow && { allow: allow.map(ofClause) }),
    ...(deny && { deny: deny.map(ofClause) }),
    ...(ask && { ask: ask.map(ofClause) }),
  }
}

function ofClause(clause: string | Clause): string | Clause {
  if (typeof clause === 'string') return clause
  const { when, unless, input, ...rest } = clause
  return {
    ...rest,
    ...(when !== undefined && { when: ofCondition(when) }),
    ...(unless !== undefined && { unless: ofCondition(unless) }),
    ...(input !== undefined && { input: ofCondition(input) }),
  }
}

function ofCondition(condition: Condition): Condition {
  return typeof condition === 'function' ? textOf(condition) : condition
}

/** The prefix of names that stand for functions. */
export const FUNCTION = '\u{f8ff}function'

/** The attribute is compared with a list, so that it is not taken for one with two values. */
function textOf(of: object): string {
  let number = numbers.get(of)
  if (number === undefined) numbers.set(of, (number = ++count))
  return `[caller.attributes["${FUNCTION} ${number}"]] == [true] && tool.id != ""`
}
