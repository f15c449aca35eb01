import { createNode, type Node, type NodeMap } from '../node.ts'

export const SCALARS = ['string', 'number', 'boolean', 'null'] as const

export function anyNode(nodes: readonly Node[]): Node {
  const [first] = nodes as [Node, ...Node[]]
  return nodes.length === 1 ? first : createNode(first.pointer, new Map([['anyOf', nodes]]))
}

export function sortedMap(map: ReadonlyMap<string, Node>): NodeMap {
  return new Map([...map].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
