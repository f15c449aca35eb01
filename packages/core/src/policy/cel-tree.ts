import type { ASTNode } from '@marcbachmann/cel-js'

export type { ASTNode } from '@marcbachmann/cel-js'

const MACROS: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

export function isMacro(node: ASTNode): boolean {
  return node.op === 'rcall' && MACROS.has(node.args[0])
}

/** Returns the children of a node. */
export function childrenOf(node: ASTNode): ASTNode[] {
  const args: unknown[] = Array.isArray(node.args) ? node.args.flat(2) : [node.args]
  return args.filter((arg): arg is ASTNode => typeof arg === 'object' && arg !== null && 'op' in arg)
}

/** Whether a variable of this name occurs in a tree. */
export function mentions(tree: ASTNode, name: string): boolean {
  return someNode(tree, (node) => node.op === 'id' && node.args === name)
}

export function someNode(tree: ASTNode, holds: (node: ASTNode) => boolean): boolean {
  return holds(tree) || childrenOf(tree).some((child) => someNode(child, holds))
}

export function countNodes(tree: ASTNode): number {
  return childrenOf(tree).reduce((total, child) => total + countNodes(child), 1)
}

/** Returns a node as it was written. */
export function textOf({ input, start, end }: ASTNode): string {
  return input.slice(start, end)
}
