import type { Step } from '@toolgate/values/json-schema'
import { type CelNode, childrenOf, isMacro, textOf } from './cel-tree.ts'

/** A field of an input or an output that a condition reads. */
export interface FieldRead {
  readonly of: 'input' | 'output'
  readonly path: readonly Step[]
  /** The text of the condition that reads it. */
  readonly text: string
  /** The type of the value that the field is compared with. */
  readonly wants?: string | undefined
  /** For `'x' in input.y`: `x` is a field of an object or an item of a list. */
  readonly isMember?: true
}

type FieldPlace = Pick<FieldRead, 'of' | 'path'>
/** The variables of macros. `undefined`: the variable's place is unknown. */
type MacroScope = ReadonlyMap<string, FieldPlace | undefined>

const kept = new WeakMap<CelNode, readonly FieldRead[]>()

/** Returns the fields that a condition or an amount reads. */
export function fieldReadsOf(tree: CelNode): readonly FieldRead[] {
  let reads = kept.get(tree)
  if (!reads) {
    const found: FieldRead[] = []
    visit(tree, undefined, new Map(), found)
    kept.set(tree, (reads = found))
  }
  return reads
}

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])
const OF_TEXTS: ReadonlySet<string> = new Set(['within', 'host', 'like', 'startsWith', 'endsWith', 'contains'])

function visit(node: CelNode, wants: string | undefined, scope: MacroScope, found: FieldRead[]): void {
  if (isMacro(node) || isBinding(node)) return visitMacro(node, scope, found)
  const place = placeOf(node, scope)
  if (place) return void (place.path.length > 0 && found.push({ ...place, text: textOf(node), wants }))
  if (COMPARISONS.has(node.op)) {
    const [left, right] = node.args as readonly [CelNode, CelNode]
    visit(left, typeOfLiteral(right), scope, found)
    return visit(right, typeOfLiteral(left), scope, found)
  }
  if (node.op === 'in') {
    const [left, right] = node.args
    visitMembership(node, node.args, scope, found)
    visit(left, typeOfItems(right), scope, found)
    return visit(right, undefined, scope, found)
  }
  const [name, first] = node.op === 'call' ? [node.args[0], node.args[1][0]] : node.op === 'rcall' ? node.args : []
  for (const child of childrenOf(node))
    visit(child, child === first && OF_TEXTS.has(name ?? '') ? 'string' : undefined, scope, found)
}

function visitMembership(
  node: CelNode,
  [left, right]: readonly CelNode[],
  scope: MacroScope,
  found: FieldRead[],
): void {
  const place = right && placeOf(right, scope)
  if (place && left?.op === 'value' && typeof left.args === 'string')
    found.push({ of: place.of, path: [...place.path, left.args], text: textOf(node), isMember: true })
}

/** `cel.bind(name, value, of)` */
function isBinding(node: CelNode): boolean {
  return node.op === 'rcall' && node.args[0] === 'bind' && node.args[1].op === 'id' && node.args[1].args === 'cel'
}

function visitMacro(node: CelNode, scope: MacroScope, found: FieldRead[]): void {
  if (node.op !== 'rcall') return
  const [, receiver, args] = node.args
  const isBound = isBinding(node)
  const [variable, bound, ...after] = args
  const value = isBound ? bound : receiver
  const bodies = isBound ? after : args.slice(1)
  if (!value) return
  visit(value, undefined, scope, found)
  if (variable?.op !== 'id') return
  const place = placeOf(value, scope)
  const inner = place && !isBound ? { of: place.of, path: [...place.path, undefined] } : place
  for (const body of bodies) visit(body, undefined, new Map([...scope, [variable.args, inner]]), found)
}

function placeOf(node: CelNode, scope: MacroScope): FieldPlace | undefined {
  if (node.op === 'id') {
    if (scope.has(node.args)) return scope.get(node.args)
    return node.args === 'input' || node.args === 'output' ? { of: node.args, path: [] } : undefined
  }
  // A filtered list has items of the same type.
  if (node.op === 'rcall' && node.args[0] === 'filter') return placeOf(node.args[1], scope)
  const step = stepOf(node)
  const before = step && placeOf((node.args as readonly CelNode[])[0] as CelNode, scope)
  return before && { of: before.of, path: [...before.path, ...step] }
}

function stepOf(node: CelNode): readonly [Step] | undefined {
  if (node.op === '.') return [node.args[1]]
  if (node.op !== '[]') return undefined
  const [, key] = node.args
  if (key.op !== 'value') return undefined
  return typeof key.args === 'string' ? [key.args] : typeof key.args === 'bigint' ? [undefined] : undefined
}

/** Returns the type of a list's items if all of them are literals of one type. */
function typeOfItems(node: CelNode): string | undefined {
  if (node.op !== 'list') return undefined
  const types = new Set(node.args.map(typeOfLiteral))
  const [type] = types
  return types.size === 1 ? type : undefined
}

function typeOfLiteral(node: CelNode): string | undefined {
  if (node.op !== 'value' || node.args === null) return undefined
  const type = typeof node.args
  return type === 'bigint' ? 'number' : type === 'object' ? undefined : type
}
