import { LIBRARY, type Overload, TYPES } from './library.ts'
import type { CelNode } from './tree.ts'
import { type CelTypeInfo, typeOf, type TypeText } from './types.ts'
import type { Compiled } from './frame.ts'

/** A macro, which is called with arguments that are not all values. */
export interface Macro {
  readonly name: string
  /** The variable before the dot: `run` in `run.called(…)`. */
  readonly on?: string
  readonly result: TypeText
  /** Returns the arguments that are values. */
  valuesOf(args: readonly CelNode[]): readonly CelNode[]
  /** Compiles a call. `node`: the call. `values`: its arguments that are values. */
  compile(node: CelNode, values: readonly CelNode[], compile: (node: CelNode) => Compiled): Compiled
}

/** The variables and functions of a text. */
export interface Environment {
  /** The variables in the order in which a program takes them. */
  readonly variables: ReadonlyMap<string, CelTypeInfo>
  readonly overloads: ReadonlyMap<string, readonly Overload[]>
  readonly macros: readonly Macro[]
}

export interface EnvironmentParts {
  readonly variables: Readonly<Record<string, TypeText>>
  readonly functions?: readonly Overload[]
  readonly macros?: readonly Macro[]
}

/** Returns an environment with the functions of CEL, and additional ones. */
export function createEnvironment({ variables, functions = [], macros = [] }: EnvironmentParts): Environment {
  return {
    variables: new Map(Object.entries(variables).map(([name, type]) => [name, typeOf(type)])),
    overloads: Map.groupBy([...LIBRARY, ...functions], ({ name }) => name),
    macros,
  }
}

/** Returns the overloads that a call may refer to. */
export function overloadsOf(
  environment: Environment,
  name: string,
  isMethod: boolean,
  arity: number,
): readonly Overload[] {
  const named = environment.overloads.get(name) ?? []
  return named.filter((one) => one.isMethod === isMethod && one.params.length === arity)
}

/** Returns the macro of the environment that a call refers to. */
export function macroOf(
  { macros }: Environment,
  node: CelNode,
): { macro: Macro; args: readonly CelNode[] } | undefined {
  if (node.op !== 'call' && node.op !== 'rcall') return undefined
  const on = node.op === 'rcall' && node.args[1].op === 'id' ? node.args[1].args : undefined
  const macro = macros.find((one) => one.name === node.args[0] && one.on === on)
  const args = node.op === 'call' ? node.args[1] : node.args[2]
  return macro && (node.op === 'call' || on !== undefined) ? { macro, args } : undefined
}

/** Returns the dotted name of a node, such as `google.protobuf.Timestamp`. */
function dottedName(node: CelNode): string | undefined {
  if (node.op === 'id') return node.args
  const before = node.op === '.' ? dottedName(node.args[0]) : undefined
  return node.op === '.' && before !== undefined ? `${before}.${node.args[1]}` : undefined
}

/** Returns the type that a node names. */
export function namedType(node: CelNode): unknown {
  const name = node.op === 'id' || node.op === '.' ? dottedName(node) : undefined
  return name === undefined ? undefined : TYPES.get(name)
}

/** A macro of CEL over the items of a list. */
interface Comprehension {
  readonly name: 'all' | 'exists' | 'exists_one' | 'filter' | 'map'
  readonly of: CelNode
  readonly variable: string
  /** The condition on each item. For `map` with three arguments, its filter. */
  readonly holds: CelNode | undefined
  readonly result: CelNode | undefined
}

const ARITIES: ReadonlyMap<string, readonly number[]> = new Map([
  ['all', [2]],
  ['exists', [2]],
  ['exists_one', [2]],
  ['existsOne', [2]],
  ['filter', [2]],
  ['map', [2, 3]],
])

/** Returns the CEL macro that a call refers to. Its variable is `undefined` if it is not a name. */
export function comprehensionOf(
  node: CelNode,
): (Omit<Comprehension, 'variable'> & { variable: string | undefined }) | undefined {
  if (node.op !== 'rcall') return undefined
  const [name, of, args] = node.args
  if (!ARITIES.get(name)?.includes(args.length)) return undefined
  const variable = args[0]?.op === 'id' ? args[0].args : undefined
  const result = name === 'map' ? args.at(-1) : undefined
  const holds = name === 'map' && args.length === 2 ? undefined : args[1]
  return { name: (name === 'existsOne' ? 'exists_one' : name) as Comprehension['name'], of, variable, holds, result }
}

/** Returns the parts of `cel.bind(name, value, result)`. */
export function bindOf(node: CelNode): { variable: string | undefined; value: CelNode; result: CelNode } | undefined {
  if (node.op !== 'rcall' || node.args[0] !== 'bind' || node.args[1].op !== 'id' || node.args[1].args !== 'cel')
    return undefined
  const [name, value, result] = node.args[2]
  if (!name || !value || !result || node.args[2].length !== 3) return undefined
  return { variable: name.op === 'id' ? name.args : undefined, value, result }
}
