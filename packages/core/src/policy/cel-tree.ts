import { type CelNode, childrenOf } from '@toolgate/values/cel'

export { type CelNode, childrenOf, isMacro, textOf } from '@toolgate/values/cel'

/** Returns whether a variable of this name occurs in a tree. */
export function mentions(tree: CelNode, name: string): boolean {
  return someNode(tree, (node) => node.op === 'id' && node.args === name)
}

export function someNode(tree: CelNode, holds: (node: CelNode) => boolean): boolean {
  return holds(tree) || childrenOf(tree).some((child) => someNode(child, holds))
}
