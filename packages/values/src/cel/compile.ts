import { spend, type Work } from '../work.ts'
import { type ArithmeticOp, calculate, negate } from './arithmetic.ts'
import { compileComprehension } from './comprehensions.ts'
import { bindOf, comprehensionOf, type Environment, macroOf, namedType, overloadsOf } from './environment.ts'
import { compare, equals, isIn } from './equality.ts'
import { absorb, type Compiled, NODE_STEPS, type PartCompiler } from './frame.ts'
import { type BinaryOp, type CelNode, CelProblem, countNodes } from './tree.ts'
import {
  AbsentError,
  CelError,
  CelMap,
  entryOf,
  fieldIn,
  kindOf,
  type MapKey,
  toBool,
  toCel,
  toMapKey,
} from './values.ts'

/** Evaluates a text. `variables`: in the order of the environment; `undefined` is an unknown value. */
export type Program = (work: Work, variables: readonly unknown[], context?: unknown) => unknown

/**
 * Compiles a text to a program. Each operation costs steps, in proportion to the size of its operands.
 *
 * @throws {CelProblem} for a text that cannot be compiled
 */
export function compileProgram(tree: CelNode, environment: Environment): Program {
  const run = new Compiler(environment, new Map([...environment.variables.keys()].map((name, i) => [name, i]))).compile(
    tree,
  )
  const steps = countNodes(tree) * NODE_STEPS
  return (work, variables, context) => {
    spend(work, steps)
    return run({ work, variables: [...variables], context })
  }
}

class Compiler implements PartCompiler {
  readonly #environment: Environment
  readonly #slots: ReadonlyMap<string, number>
  readonly #depth: number

  constructor(environment: Environment, slots: ReadonlyMap<string, number>, depth: number = slots.size) {
    this.#environment = environment
    this.#slots = slots
    this.#depth = depth
  }

  within(name: string): readonly [compiler: Compiler, slot: number] {
    const slots = new Map([...this.#slots, [name, this.#depth]])
    return [new Compiler(this.#environment, slots, this.#depth + 1), this.#depth]
  }

  compile = (node: CelNode): Compiled => {
    switch (node.op) {
      case 'value':
        return constant(node.args)
      case 'id':
        return this.#variable(node, node.args)
      case '.':
        return namedType(node) ? constant(namedType(node)) : field(this.compile(node.args[0]), node.args[1])
      case '[]':
        return index(this.compile(node.args[0]), this.compile(node.args[1]))
      case 'list':
        return list(node.args.map(this.compile))
      case 'map':
        return map(node.args.map(([key, value]) => [this.compile(key), this.compile(value)] as const))
      case '?:':
        return choice(...(node.args.map(this.compile) as [Compiled, Compiled, Compiled]))
      case '!_':
        return not(this.compile(node.args))
      case '-_':
        return negative(this.compile(node.args))
      case '&&':
      case '||':
        return logic(this.#operands(node, node.op), node.op === '||')
      case 'call':
      case 'rcall':
        return this.#call(node)
      default:
        return this.#binary(node.op, node.args)
    }
  }

  #variable(node: CelNode, name: string): Compiled {
    const slot = this.#slots.get(name)
    if (slot === undefined) return namedType(node) ? constant(namedType(node)) : unknownVariable(name)
    return ({ variables }) => {
      const value = variables[slot]
      if (value === undefined) throw new CelError(`Unknown variable: ${name}`)
      return value
    }
  }

  /** Returns the operands of `a && b && c`. */
  #operands(node: CelNode, op: '&&' | '||'): readonly Compiled[] {
    return node.op === op ? node.args.flatMap((part) => this.#operands(part, op)) : [this.compile(node)]
  }

  #binary(op: Exclude<BinaryOp, '&&' | '||'>, [one, other]: readonly [CelNode, CelNode]): Compiled {
    const [left, right] = [this.compile(one), this.compile(other)]
    switch (op) {
      case '==':
      case '!=':
        return equality(left, right, other, op === '==')
      case 'in':
        return (frame) => isIn(frame.work, left(frame), right(frame))
      case '<':
      case '<=':
      case '>':
      case '>=':
        return order(op, left, right)
      default:
        return arithmetic(op, left, right)
    }
  }

  #call(node: Extract<CelNode, { op: 'call' | 'rcall' }>): Compiled {
    if (node.op === 'call' && node.args[0] === 'has') return this.#has(node.args[1])
    const own = macroOf(this.#environment, node)
    if (own) return own.macro.compile(node, own.macro.valuesOf(own.args), this.compile)
    const bound = bindOf(node)
    if (bound) return this.#bind(bound)
    const comprehension = comprehensionOf(node)
    return comprehension ? compileComprehension(this, comprehension) : this.#function(node)
  }

  #has([argument]: readonly CelNode[]): Compiled {
    if (argument?.op !== '.') throw new CelProblem('has() invalid argument')
    const [of, name] = [this.compile(argument.args[0]), argument.args[1]]
    return (frame) => fieldIn(of(frame), name) !== undefined
  }

  #bind({ variable, value, result }: NonNullable<ReturnType<typeof bindOf>>): Compiled {
    const [inner, slot] = this.within(variable ?? '')
    const [bound, body] = [this.compile(value), inner.compile(result)]
    return (frame) => {
      frame.variables[slot] = bound(frame)
      return body(frame)
    }
  }

  #function(node: Extract<CelNode, { op: 'call' | 'rcall' }>): Compiled {
    const args = (node.op === 'call' ? node.args[1] : [node.args[1], ...node.args[2]]).map(this.compile)
    const overloads = overloadsOf(this.#environment, node.args[0], node.op === 'rcall', args.length)
    if (overloads.length === 0)
      throw new CelProblem(`found no matching overload for '${node.args[0]}' with ${args.length} arguments`, node.start)
    return (frame) => {
      const values = args.map((arg) => arg(frame))
      const fitting = overloads.find(({ params }) =>
        params.every(({ kind }, i) => kind === 'dyn' || kind === kindOf(values[i])),
      )
      return (fitting ?? noOverload(node.args[0], values)).run(frame.work, ...(values as never[]))
    }
  }
}

function unknownVariable(name: string): never {
  throw new CelProblem(`Unknown variable: ${name}`)
}

function constant(value: unknown): Compiled {
  return () => value
}

function noOverload(name: string, values: readonly unknown[]): never {
  throw new CelError(`found no matching overload for '${name}(${values.map(kindOf).join(', ')})'`)
}

function field(of: Compiled, name: string): Compiled {
  return (frame) => {
    const value = fieldIn(of(frame), name)
    if (value === undefined) throw new AbsentError(name)
    return value
  }
}

function index(of: Compiled, by: Compiled): Compiled {
  return (frame) => {
    const [value, key] = [of(frame), by(frame)]
    const found = Array.isArray(value) ? itemAt(value, key) : entryIn(value, key)
    if (found === undefined) throw new AbsentError(typeof key === 'string' ? key : kindOf(key))
    return found
  }
}

function itemAt(items: readonly unknown[], key: unknown): unknown {
  const at = typeof key === 'string' || typeof key === 'boolean' ? undefined : toMapKey(key)
  if (typeof at !== 'bigint') throw new CelError(`no such overload: list[${kindOf(key)}]`)
  if (at < 0n || at >= BigInt(items.length)) throw new AbsentError(at)
  return toCel(items[Number(at)])
}

function entryIn(of: unknown, key: unknown): unknown {
  if (kindOf(of) !== 'map') throw new CelError(`no such overload: ${kindOf(of)}[${kindOf(key)}]`)
  return entryOf(of as object, key)
}

function list(items: readonly Compiled[]): Compiled {
  return (frame) => items.map((item) => item(frame))
}

function map(entries: readonly (readonly [Compiled, Compiled])[]): Compiled {
  return (frame) => {
    const made = new Map<MapKey, readonly [unknown, unknown]>()
    for (const [key, value] of entries) {
      const name = key(frame)
      const at = typeof name === 'number' ? undefined : toMapKey(name)
      if (at === undefined) throw new CelError(`a key of a map is no ${kindOf(name)}`)
      if (made.has(at)) throw new CelError(`the key ${String(at)} stands there twice`)
      made.set(at, [name, value(frame)])
    }
    return new CelMap(made)
  }
}

function choice(asked: Compiled, then: Compiled, otherwise: Compiled): Compiled {
  return (frame) => (toBool(asked(frame)) ? then(frame) : otherwise(frame))
}

function not(of: Compiled): Compiled {
  return (frame) => !toBool(of(frame))
}

function negative(of: Compiled): Compiled {
  return (frame) => negate(of(frame))
}

/** A part that equals `decides` gives the result, even if other parts fail. */
function logic(parts: readonly Compiled[], decides: boolean): Compiled {
  return (frame) => {
    let failure: unknown
    for (const part of parts) {
      try {
        if (toBool(part(frame)) === decides) return decides
      } catch (error) {
        absorb(frame, error)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure as CelError
    return !decides
  }
}

function equality(left: Compiled, right: Compiled, { op, args }: CelNode, wanted: boolean): Compiled {
  // A literal needs no type check, and its length is limited by that of the text.
  const literal = op !== 'value' ? undefined : typeof args === 'bigint' ? smallNumber(args) : args
  if (typeof literal === 'string')
    return (frame) => {
      const value = left(frame)
      return (typeof value === 'string' && value === literal) === wanted
    }
  if (typeof literal === 'number')
    return (frame) => {
      const value = left(frame)
      return (typeof value === 'number' ? value === literal : equals(frame.work, value, args)) === wanted
    }
  return (frame) => equals(frame.work, left(frame), right(frame)) === wanted
}

/** Returns an integer as a number, if that is exact. */
function smallNumber(value: bigint): number | undefined {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : undefined
}

const ORDERS = {
  '<': (sign: number) => sign < 0,
  '<=': (sign: number) => sign <= 0,
  '>': (sign: number) => sign > 0,
  '>=': (sign: number) => sign >= 0,
}

function order(op: keyof typeof ORDERS, left: Compiled, right: Compiled): Compiled {
  const holds = ORDERS[op]
  return (frame) => {
    const [a, b] = [left(frame), right(frame)]
    // Comparing a number with a bigint is exact. NaN is neither below nor above, nor equal.
    if ((typeof a === 'number' || typeof a === 'bigint') && (typeof b === 'number' || typeof b === 'bigint')) {
      if (a < b) return holds(-1)
      if (a > b) return holds(1)
    }
    return holds(compare(frame.work, a, b))
  }
}

function arithmetic(op: ArithmeticOp, left: Compiled, right: Compiled): Compiled {
  return (frame) => calculate(frame.work, op, left(frame), right(frame))
}
