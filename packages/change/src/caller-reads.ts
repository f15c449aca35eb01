import type { Caller } from '@toolgate/core'
import { type CelNode, childrenOf } from '@toolgate/values/cel'

/** The fields of a caller that a condition can read. `actChain`, `keyMadeBy`, `makerChain`, `aliases` and `run` decide nothing. */
export const READ_FIELDS = [
  'user',
  'tenant',
  'roles',
  'scopes',
  'session',
  'chat',
  'agent',
  'client',
  'actor',
  'attributes',
] as const satisfies readonly (keyof Caller)[]
export type ReadField = (typeof READ_FIELDS)[number]

export type Literal = string | number | boolean

/**
 * The parts of callers that conditions read: for each path, such as `roles`, `chat.type` or `attributes.team`, the texts,
 * numbers and booleans that it is compared with. `undefined`: literals do not cover the use of the path, such as
 * `startsWith`.
 */
export type CallerReads = ReadonlyMap<string, ReadonlySet<Literal> | undefined>

const LISTS: ReadonlySet<string> = new Set(['roles', 'scopes'])
const OBJECTS: ReadonlySet<string> = new Set(['chat', 'attributes'])

/** Returns what conditions read of callers. An unrecognised use gives `undefined` for its path. */
export function callerReads(trees: readonly CelNode[]): CallerReads {
  const found = new Map<string, Set<Literal> | undefined>()
  for (const tree of trees) visit(tree, true, found)
  return found
}

/** `asBoolean`: whether the node's value is a condition of its own. */
function visit(node: CelNode, asBoolean: boolean, found: Map<string, Set<Literal> | undefined>): void {
  const note = (path: string, values: readonly Literal[]) => {
    if (!found.has(path)) found.set(path, new Set())
    for (const value of values) found.get(path)?.add(value)
  }
  const compared = comparison(node)
  if (compared) return note(...compared)
  if (asBoolean && (node.op === '&&' || node.op === '||' || node.op === '!_'))
    return childrenOf(node).forEach((child) => visit(child, true, found))
  const path = pathOf(node)
  if (path === undefined) return childrenOf(node).forEach((child) => visit(child, false, found))
  if (asBoolean && path.startsWith('attributes.')) return note(path, [true, false])
  found.set(path, undefined)
  for (const key of keysIn(node)) visit(key, false, found)
}

/** Returns the path and the literals of a comparison that tells callers apart. */
function comparison(node: CelNode): readonly [path: string, values: readonly Literal[]] | undefined {
  if (node.op === 'call' && node.args[0] === 'has') {
    const [of] = node.args[1]
    const path = of && pathOf(of)
    return path === undefined || path === '' ? undefined : [path, []]
  }
  if (node.op !== '==' && node.op !== '!=' && node.op !== 'in') return undefined
  const [left, right] = node.args
  const [one, other] = [pathOf(left), pathOf(right)]
  if (node.op === 'in' && other !== undefined && LISTS.has(other)) {
    const value = literalOf(left)
    return typeof value === 'string' ? [other, [value]] : undefined
  }
  const [path, against] = node.op === 'in' || one !== undefined ? [one, right] : [other, left]
  if (path === undefined || path === '' || LISTS.has(path) || OBJECTS.has(path)) return undefined
  const values = node.op === 'in' ? literalsIn(against) : [literalOf(against)]
  const known = values.filter((value) => value !== undefined)
  return known.length === values.length && values.length > 0 ? [path, known] : undefined
}

function literalsIn(node: CelNode): readonly (Literal | undefined)[] {
  return node.op === 'list' ? node.args.map((item: CelNode) => literalOf(item)) : [undefined]
}

function literalOf({ op, args }: CelNode): Literal | undefined {
  if (op !== 'value') return undefined
  if (typeof args === 'bigint') return Number.isSafeInteger(Number(args)) ? Number(args) : undefined
  return typeof args === 'string' || typeof args === 'number' || typeof args === 'boolean' ? args : undefined
}

/** Returns the path below `caller`: '' for the whole caller, `undefined` for an expression that does not read it. */
function pathOf(node: CelNode): string | undefined {
  if (node.op === 'id') return node.args === 'caller' ? '' : undefined
  if (node.op !== '.' && node.op !== '[]') return undefined
  const [of, key] = node.args
  const before = pathOf(of)
  if (before === undefined) return undefined
  const name = typeof key === 'string' ? key : literalOf(key)
  // The key is not a plain name, so the whole object counts as read.
  if (typeof name !== 'string' || name.includes('.')) return before
  return before === '' ? name : `${before}.${name}`
}

/** Returns the keys in brackets of a path, which may read the caller, too. */
function keysIn(node: CelNode): readonly CelNode[] {
  if (node.op !== '.' && node.op !== '[]') return []
  const [of, key] = node.args
  return [...keysIn(of), ...(typeof key === 'string' ? [] : [key])]
}
