import { type CelNode, childrenOf } from './cel-tree.ts'

/** How a condition uses a path of the input. `equality`: only compares it with texts, so a hash of it is enough. */
type OperandUse = 'equality' | 'value'

/**
 * What a condition reads of a call: input paths such as `order.id`, caller attributes, and the texts that it compares them
 * with.
 */
export interface Operands {
  readonly input: ReadonlyMap<string, OperandUse>
  readonly attributes: readonly string[]
  /** The texts that the condition compares input paths with. */
  readonly texts: readonly string[]
}

export const NO_OPERANDS: Operands = { input: new Map(), attributes: [], texts: [] }

/** Returns the input paths, caller attributes and texts that a condition reads. */
export function operandsOf(tree: CelNode): Operands {
  const found: FoundOperands = { input: new Map(), attributes: new Set(), texts: new Set() }
  visit(tree, found)
  return { input: found.input, attributes: [...found.attributes], texts: [...found.texts] }
}

/** Returns the combined operands of several conditions. */
export function joinOperands(all: readonly Operands[]): Operands {
  const input = new Map<string, OperandUse>()
  for (const one of all)
    for (const [path, use] of one.input) if (use === 'value' || !input.has(path)) input.set(path, use)
  return {
    input,
    attributes: [...new Set(all.flatMap((one) => one.attributes))],
    texts: [...new Set(all.flatMap((one) => one.texts))],
  }
}

interface FoundOperands {
  readonly input: Map<string, OperandUse>
  readonly attributes: Set<string>
  readonly texts: Set<string>
}

function visit(node: CelNode, found: FoundOperands): void {
  if (node.op === '==' || node.op === '!=' || node.op === 'in') return visitComparison(node.args, found)
  const path = pathIn(node, 'input')
  if (path !== undefined) return void found.input.set(path, 'value')
  const attribute = pathIn(node, 'caller')
  if (attribute?.startsWith('attributes.')) found.attributes.add(attribute.slice('attributes.'.length))
  if (attribute !== undefined) return
  for (const child of childrenOf(node)) visit(child, found)
}

function visitComparison([left, right]: readonly CelNode[], found: FoundOperands): void {
  if (!left || !right) return
  const [path, other] = [pathIn(left, 'input'), pathIn(right, 'input')]
  const texts = textsIn(path === undefined ? left : right)
  const compared = path ?? other
  if (compared === undefined || compared === '' || texts === undefined) {
    visit(left, found)
    visit(right, found)
    return
  }
  for (const text of texts) found.texts.add(text)
  if (!found.input.has(compared)) found.input.set(compared, 'equality')
}

/** Returns the texts of a literal, or of a list of literals; `undefined` for anything else. */
function textsIn(node: CelNode): readonly string[] | undefined {
  if (node.op === 'value') return typeof node.args === 'string' ? [node.args] : undefined
  if (node.op !== 'list') return undefined
  const texts = node.args.map((item: CelNode) => textsIn(item))
  return texts.some((one) => one === undefined) ? undefined : texts.flatMap((one) => one ?? [])
}

/** Returns the path below a variable: '' for the variable itself, `undefined` for anything else. */
function pathIn(node: CelNode, variable: string): string | undefined {
  if (node.op === 'id') return node.args === variable ? '' : undefined
  if (node.op !== '.') return undefined
  const [of, name] = node.args
  const before = pathIn(of, variable)
  return before === undefined ? undefined : before === '' ? name : `${before}.${name}`
}
