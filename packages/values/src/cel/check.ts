import { ARITHMETIC, type ArithmeticOp } from './arithmetic.ts'
import { bindOf, comprehensionOf, type Environment, macroOf, namedType, overloadsOf } from './environment.ts'
import { type BinaryOp, type CelNode, CelProblem, textOf } from './tree.ts'
import { canBe, canEqual, type CelTypeInfo, DYN, isNumeric, joinTypes, JSON_VALUE, nameOf } from './types.ts'

/** The variables that a node may read. */
type TypeScope = ReadonlyMap<string, CelTypeInfo>

const BOOL: CelTypeInfo = { kind: 'bool' }

/**
 * Returns the type of a text's result.
 *
 * @throws {CelProblem} for unknown names and fields, and for expressions that can never be evaluated
 */
export function checkTypes(tree: CelNode, environment: Environment): CelTypeInfo {
  return new Checker(environment).typeOf(tree, environment.variables)
}

class Checker {
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  typeOf(node: CelNode, scope: TypeScope): CelTypeInfo {
    switch (node.op) {
      case 'value':
        return typeOfLiteral(node.args)
      case 'id':
        return this.#variable(node, scope)
      case '.':
        return this.#field(node, scope)
      case '[]':
        return this.#index(node, scope)
      case 'list':
        return { kind: 'list', of: joinTypes(node.args.map((item) => this.typeOf(item, scope))) }
      case 'map':
        return this.#map(node.args, scope)
      case '?:':
        this.#bool(node, node.args[0], scope)
        return joinTypes([this.typeOf(node.args[1], scope), this.typeOf(node.args[2], scope)])
      case '!_':
        return this.#bool(node, node.args, scope)
      case '-_':
        return this.#negative(node, node.args, scope)
      case '&&':
      case '||':
        for (const part of node.args) this.#bool(node, part, scope)
        return BOOL
      case 'call':
      case 'rcall':
        return this.#call(node, scope)
      default:
        return binary(node, node.op, this.typeOf(node.args[0], scope), this.typeOf(node.args[1], scope))
    }
  }

  #variable(node: Extract<CelNode, { op: 'id' }>, scope: TypeScope): CelTypeInfo {
    const type = scope.get(node.args) ?? (namedType(node) && { kind: 'type' as const })
    if (!type) throw new CelProblem(`Unknown variable: ${node.args}`, node.pos)
    return type as CelTypeInfo
  }

  #field(node: Extract<CelNode, { op: '.' }>, scope: TypeScope): CelTypeInfo {
    if (namedType(node)) return { kind: 'type' }
    const [of, name] = node.args
    const type = this.typeOf(of, scope)
    if (type.fields) {
      if (Object.hasOwn(type.fields, name)) return type.fields[name] as CelTypeInfo
      throw new CelProblem(`No such key: ${name}`, node.pos)
    }
    if (!canBe(type, 'map')) throw new CelProblem(`no such overload: ${nameOf(type)}.${name}`, node.pos)
    return type.of ?? (type.kind === 'json' ? JSON_VALUE : DYN)
  }

  #index(node: Extract<CelNode, { op: '[]' }>, scope: TypeScope): CelTypeInfo {
    const [of, key] = node.args
    const [type, by] = [this.typeOf(of, scope), this.typeOf(key, scope)]
    const fits =
      (canBe(type, 'list') && (isNumeric(by) || canBe(by, 'double'))) ||
      (canBe(type, 'map') &&
        (type.key === undefined ? ['bool', 'int', 'uint', 'double', 'string'] : [type.key.kind]).some((kind) =>
          canBe(by, kind as 'string'),
        ))
    if (!fits) throw new CelProblem(`no such overload: ${nameOf(type)}[${nameOf(by)}]`, node.pos)
    if (type.fields && key.op === 'value' && typeof key.args === 'string') {
      if (!Object.hasOwn(type.fields, key.args)) throw new CelProblem(`No such key: ${key.args}`, key.pos)
      return type.fields[key.args] as CelTypeInfo
    }
    return type.of ?? (type.kind === 'json' ? JSON_VALUE : DYN)
  }

  #map(entries: readonly (readonly [CelNode, CelNode])[], scope: TypeScope): CelTypeInfo {
    const keys = entries.map(([key]) => {
      const type = this.typeOf(key, scope)
      if (!['bool', 'int', 'uint', 'string', 'json', 'dyn'].includes(type.kind))
        throw new CelProblem(`a key of a map is no ${nameOf(type)}`, key.pos)
      return type
    })
    return { kind: 'map', key: joinTypes(keys), of: joinTypes(entries.map(([, value]) => this.typeOf(value, scope))) }
  }

  #bool(node: CelNode, part: CelNode, scope: TypeScope): CelTypeInfo {
    const type = this.typeOf(part, scope)
    if (!canBe(type, 'bool'))
      throw new CelProblem(`no such overload: ${nameOf(type)} as a part of ${shownOp(node)}`, part.start)
    return BOOL
  }

  #negative(node: CelNode, of: CelNode, scope: TypeScope): CelTypeInfo {
    const type = this.typeOf(of, scope)
    if (!canBe(type, 'int') && !canBe(type, 'double'))
      throw new CelProblem(`no such overload: -${nameOf(type)}`, node.start)
    return type
  }

  #call(node: Extract<CelNode, { op: 'call' | 'rcall' }>, scope: TypeScope): CelTypeInfo {
    if (node.op === 'call' && node.args[0] === 'has') return this.#has(node, node.args[1], scope)
    const own = macroOf(this.#environment, node)
    if (
      own &&
      !(own.macro.on !== undefined && scope.get(own.macro.on) !== this.#environment.variables.get(own.macro.on))
    ) {
      for (const value of own.macro.valuesOf(own.args)) this.typeOf(value, scope)
      return { kind: own.macro.result as 'bool' }
    }
    const bound = bindOf(node)
    if (bound) {
      const value = this.typeOf(bound.value, scope)
      return this.typeOf(bound.result, withVariable(scope, bound.variable, value, node))
    }
    const comprehension = comprehensionOf(node)
    return comprehension ? this.#comprehension(node, comprehension, scope) : this.#function(node, scope)
  }

  #has(node: CelNode, args: readonly CelNode[], scope: TypeScope): CelTypeInfo {
    const [field] = args
    if (args.length !== 1 || field?.op !== '.')
      throw new CelProblem('has() invalid argument: it wants a field, as in has(input.path)', node.start)
    this.typeOf(field, scope)
    return BOOL
  }

  #comprehension(node: CelNode, macro: NonNullable<ReturnType<typeof comprehensionOf>>, scope: TypeScope): CelTypeInfo {
    const of = this.typeOf(macro.of, scope)
    if (!canBe(of, 'list') && !canBe(of, 'map'))
      throw new CelProblem(`${macro.name}() wants a list or a map, not ${nameOf(of)}`, macro.of.start)
    const item = of.kind === 'json' ? JSON_VALUE : ((of.kind === 'list' ? of.of : of.key) ?? DYN)
    const inner = withVariable(scope, macro.variable, item, node)
    if (macro.holds) {
      const holds = this.typeOf(macro.holds, inner)
      if (!canBe(holds, 'bool'))
        throw new CelProblem(`${macro.name}() wants a condition, not ${nameOf(holds)}`, macro.holds.start)
    }
    if (macro.result) return { kind: 'list', of: this.typeOf(macro.result, inner) }
    return macro.name === 'filter' ? { kind: 'list', of: item } : BOOL
  }

  #function(node: Extract<CelNode, { op: 'call' | 'rcall' }>, scope: TypeScope): CelTypeInfo {
    const args = node.op === 'call' ? node.args[1] : [node.args[1], ...node.args[2]]
    const name = node.args[0]
    const types = args.map((arg) => this.typeOf(arg, scope))
    const overloads = overloadsOf(this.#environment, name, node.op === 'rcall', args.length).filter(({ params }) =>
      params.every((param, i) => fitsParam(types[i] as CelTypeInfo, param)),
    )
    if (overloads.length > 0) return joinTypes(overloads.map(({ result }) => result))
    const [receiver = '', ...rest] = types.map(nameOf)
    const shown =
      node.op === 'call' ? `${name}(${[receiver, ...rest].join(', ')})` : `${receiver}.${name}(${rest.join(', ')})`
    throw new CelProblem(`found no matching overload for '${shown}'`, node.op === 'call' ? node.start : args[0]?.start)
  }
}

/** Items of a list are checked at run time, unless all are known to be of another type. */
function fitsParam(type: CelTypeInfo, param: CelTypeInfo): boolean {
  if (!canBe(type, param.kind)) return false
  return !param.of || !type.of || canEqual(type.of, param.of)
}

function withVariable(scope: TypeScope, name: string | undefined, type: CelTypeInfo, node: CelNode): TypeScope {
  if (name === undefined) throw new CelProblem('the variable of a macro must be a name', node.start)
  return new Map([...scope, [name, type]])
}

function typeOfLiteral(value: unknown): CelTypeInfo {
  switch (typeof value) {
    case 'string':
      return { kind: 'string' }
    case 'number':
      return { kind: 'double' }
    case 'bigint':
      return { kind: 'int' }
    case 'boolean':
      return BOOL
    default:
      return { kind: value === null ? 'null' : value instanceof Uint8Array ? 'bytes' : 'uint' }
  }
}

function shownOp({ op }: CelNode): string {
  return op === '!_' ? '!' : op
}

type Operator = Exclude<BinaryOp, '&&' | '||'>

function binary(node: CelNode, op: Operator, left: CelTypeInfo, right: CelTypeInfo): CelTypeInfo {
  const refusal = () => new CelProblem(`no such overload: ${nameOf(left)} ${op} ${nameOf(right)}`, node.start)
  switch (op) {
    case '==':
    case '!=':
      if (!canEqual(left, right)) throw refusal()
      return BOOL
    case '<':
    case '<=':
    case '>':
    case '>=':
      if (!haveOrder(left, right)) throw refusal()
      return BOOL
    case 'in':
      if (!canContain(right, left)) throw refusal()
      return BOOL
    default:
      return arithmetic(node, op, left, right)
  }
}

const ORDERED = ['bool', 'double', 'string', 'bytes', 'timestamp', 'duration'] as const

function haveOrder(left: CelTypeInfo, right: CelTypeInfo): boolean {
  if (isNumeric(left) ? canBe(right, 'double') || isNumeric(right) : isNumeric(right) && canBe(left, 'double'))
    return true
  return ORDERED.some((kind) => canBe(left, kind) && canBe(right, kind))
}

function canContain(container: CelTypeInfo, item: CelTypeInfo): boolean {
  if (canBe(container, 'map') && (!container.key || canEqual(container.key, item))) return true
  return canBe(container, 'list') && (!container.of || canEqual(container.of, item))
}

function arithmetic(node: CelNode, op: ArithmeticOp, left: CelTypeInfo, right: CelTypeInfo): CelTypeInfo {
  const fits = ARITHMETIC[op].filter(([a, b]) => canBe(left, a) && canBe(right, b))
  if (fits.length === 0) throw new CelProblem(problemOf(node, op, left, right), node.start)
  if (op === '+' && fits.every(([kind]) => kind === 'list'))
    return { kind: 'list', of: joinTypes([left.of ?? DYN, right.of ?? DYN]) }
  return joinTypes(fits.map(([, , kind]) => ({ kind })))
}

/** A JSON number is a double, which has no `%` and does not mix with integers. */
function problemOf(node: CelNode, op: ArithmeticOp, left: CelTypeInfo, right: CelTypeInfo): string {
  const types = `no such overload: ${nameOf(left)} ${op} ${nameOf(right)}`
  const [json, other] = left.kind === 'json' ? [0, right] : [1, left]
  const mixed = (left.kind === 'json' || right.kind === 'json') && (isNumeric(other) || other.kind === 'json')
  const parts = node.args as readonly [CelNode, CelNode]
  if (!mixed) return types
  const texts = parts.map((part, i) => {
    const text = textOf(part)
    if (i === json && (op === '%' || other.kind === 'uint')) return `${other.kind === 'uint' ? 'uint' : 'int'}(${text})`
    if (i === json) return text
    if (op === '%') return other.kind === 'json' ? `int(${text})` : text
    return other.kind === 'int' && /^-?\d+$/.test(text) ? `${text}.0` : `double(${text})`
  })
  return `${types}: a number of JSON is a double; write ${texts.join(` ${op} `)}`
}
