import type { Uint } from './values.ts'

/** Operators with two operands. */
export type BinaryOp = '&&' | '||' | '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | '+' | '-' | '*' | '/' | '%'

interface TextRange {
  /** The offsets of the node in the text. */
  readonly start: number
  readonly end: number
  /** The offset to show for a problem of the node: for a field, the offset of its name. */
  readonly pos: number
  /** The whole text. */
  readonly input: string
}

interface TreeNode<Op extends string, Args> extends TextRange {
  readonly op: Op
  readonly args: Args
}

/** A node of a parsed text. Brackets do not belong to nodes. */
export type CelNode =
  | TreeNode<'value', null | boolean | number | bigint | string | Uint | Uint8Array>
  | TreeNode<'id', string>
  | TreeNode<'.', readonly [of: CelNode, field: string]>
  | TreeNode<'[]', readonly [of: CelNode, key: CelNode]>
  | TreeNode<'call', readonly [name: string, args: readonly CelNode[]]>
  | TreeNode<'rcall', readonly [name: string, receiver: CelNode, args: readonly CelNode[]]>
  | TreeNode<'list', readonly CelNode[]>
  | TreeNode<'map', readonly (readonly [key: CelNode, value: CelNode])[]>
  | TreeNode<'?:', readonly [asked: CelNode, then: CelNode, otherwise: CelNode]>
  | TreeNode<'!_' | '-_', CelNode>
  | TreeNode<BinaryOp, readonly [left: CelNode, right: CelNode]>

const MACROS: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map'])

/** Returns whether a node evaluates a part of itself for each item of a list or object. */
export function isMacro(node: CelNode): boolean {
  return node.op === 'rcall' && MACROS.has(node.args[0])
}

/** Returns the children of a node. */
export function childrenOf(node: CelNode): CelNode[] {
  const args: unknown[] = Array.isArray(node.args) ? node.args.flat(2) : [node.args]
  return args.filter((arg): arg is CelNode => typeof arg === 'object' && arg !== null && 'op' in arg)
}

export function countNodes(tree: CelNode): number {
  return childrenOf(tree).reduce((total, child) => total + countNodes(child), 1)
}

/** A text that is not valid CEL, or can never be evaluated. */
export class CelProblem extends Error {
  override readonly name = 'CelProblem'
  /** The offset in the text. */
  readonly offset: number | undefined

  constructor(problem: string, offset?: number) {
    super(problem)
    this.offset = offset
  }
}

/** Returns a node as it was written. */
export function textOf({ input, start, end }: CelNode): string {
  return input.slice(start, end)
}
