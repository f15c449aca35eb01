import { parseLimits } from '@toolgate/core/call'
import { parseGroups } from '@toolgate/core/groups'
import { parsePolicies } from '@toolgate/core/policy'
import { type CelNode, childrenOf } from '@toolgate/values/cel'
import type { GatewayConfig } from './config.ts'

type RulesWithRoles = Pick<GatewayConfig, 'policy' | 'apps' | 'groups' | 'aliases' | 'limits'>

/**
 * Returns the roles of callers that rules name, each with the path of the first rule that does: those that conditions and
 * costs compare with `caller.roles`, directly or in a macro.
 */
export function namedRoles({
  policy,
  apps = [],
  groups,
  aliases = {},
  limits,
}: RulesWithRoles): ReadonlyMap<string, string> {
  const definitions = new Map(groups.map(({ name, tools }) => [name, { tools }]))
  const { selectors } = parseGroups(definitions, new Map(Object.entries(aliases)))
  const policies = [
    ...parsePolicies(policy, selectors),
    ...apps.flatMap(({ name, policy: own }) => parsePolicies(own, selectors, `apps.${name}.policy`)),
  ]
  const trees = policies.flatMap(({ allow = [], deny, ask }) =>
    [...allow, ...deny, ...ask].flatMap(({ path, when, unless, input }) =>
      [when, unless, input].map((condition) => ({ path, tree: condition?.tree })),
    ),
  )
  const costs = parseLimits(limits, selectors).map(({ path, costing }) => ({ path, tree: costing?.cost.tree }))
  const named = new Map<string, string>()
  for (const { path, tree } of [...trees, ...costs])
    for (const role of tree ? rolesIn(tree, []) : []) if (!named.has(role)) named.set(role, path)
  return named
}

/** Returns the texts that a tree compares with roles. `variables`: those of macros whose value is a role. */
function rolesIn(node: CelNode, variables: readonly string[]): readonly string[] {
  const below = (scope: readonly string[]) => childrenOf(node).flatMap((child) => rolesIn(child, scope))
  const hasRoles = (one: CelNode) => isRoles(one) || (one.op === 'id' && variables.includes(one.args))
  if (node.op === '==' || node.op === '!=' || node.op === 'in') {
    const [left, right] = node.args
    return [...(hasRoles(right) ? textsIn(left) : hasRoles(left) ? textsIn(right) : []), ...below(variables)]
  }
  if (node.op !== 'rcall') return below(variables)
  const [, of, [variable, ...bodies]] = node.args
  if (variable?.op !== 'id') return below(variables)
  if (isRoles(of)) return below([...variables, variable.args])
  // A list whose items are looked for in the roles.
  return [...(bodies.some((body) => looksFor(body, variable.args)) ? textsIn(of) : []), ...below(variables)]
}

function looksFor(node: CelNode, variable: string): boolean {
  if (node.op === 'in' && node.args[0].op === 'id' && node.args[0].args === variable && isRoles(node.args[1]))
    return true
  return childrenOf(node).some((child) => looksFor(child, variable))
}

/** Whether an expression is `caller.roles`, or a part of it. */
function isRoles(node: CelNode): boolean {
  if (node.op === 'rcall' && node.args[0] === 'filter') return isRoles(node.args[1])
  if (node.op !== '.' && node.op !== '[]') return false
  const [of, key] = node.args
  const name: unknown = typeof key === 'string' ? key : key.args
  return of.op === 'id' && of.args === 'caller' && name === 'roles'
}

/** Returns the texts of a literal, or of a list of literals. */
function textsIn(node: CelNode): readonly string[] {
  if (node.op === 'list') return node.args.flatMap(textsIn)
  return node.op === 'value' && typeof node.args === 'string' ? [node.args] : []
}
