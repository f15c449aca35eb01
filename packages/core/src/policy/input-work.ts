import type { ASTNode } from '@marcbachmann/cel-js'
import { spend, type Work } from '../util/work.ts'

/** Steps that all conditions of one decision may take together, of some 5 ns each. */
const MAX_STEPS = 5_000_000

export function conditionWork(): Work {
  return { left: MAX_STEPS }
}

/** What a node of a condition costs for each item that a macro goes through, and what `in` costs for each item. */
const NODE_STEPS = 6
const IN_STEPS = 2

const MACROS: ReadonlySet<unknown> = new Set(['all', 'exists', 'exists_one', 'filter', 'map'])

export function isMacro(node: ASTNode): boolean {
  return node.op === 'rcall' && MACROS.has(node.args[0])
}

/** Gives the nodes directly below one, whatever its operator. */
export function childrenOf(node: ASTNode): ASTNode[] {
  const args: unknown[] = Array.isArray(node.args) ? node.args.flat(2) : [node.args]
  return args.filter((arg): arg is ASTNode => typeof arg === 'object' && arg !== null && 'op' in arg)
}

/** Gives how many steps a condition takes for each item of a list or object that it goes through. */
export function stepsOfEachItem(ast: ASTNode): number {
  const own = isMacro(ast) ? countNodes(ast) * NODE_STEPS : ast.op === 'in' ? IN_STEPS : 0
  return childrenOf(ast).reduce((total, child) => total + stepsOfEachItem(child), own)
}

function countNodes(ast: ASTNode): number {
  return childrenOf(ast).reduce((total, child) => total + countNodes(child), 1)
}

/** Known once for each input: several conditions ask, and inputs are frozen. */
const lengths = new WeakMap<object, number>()

/**
 * Counts what a condition takes that goes through the items of an input.
 *
 * @throws {WorkSpentError} before it is done: no condition may keep the process from its other callers
 */
export function spendOnItems(work: Work, input: unknown, stepsEach: number): void {
  if (stepsEach === 0 || typeof input !== 'object' || input === null) return
  let items = lengths.get(input)
  if (items === undefined) lengths.set(input, (items = longestOf(input)))
  spend(work, items * stepsEach)
}

/** Gives the number of items of the longest list or object within a value, itself among them. */
function longestOf(value: object): number {
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  let longest = items.length
  for (const item of items) if (typeof item === 'object' && item !== null) longest = Math.max(longest, longestOf(item))
  return longest
}
