import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import type { CallPattern, RunFacts } from '../history/facts.ts'
import type { Origin } from '../ports/fact-read.ts'
import type { Tool } from '../tools/tool.ts'
import { isObject } from '../util/json.ts'
import type { Work } from '../util/work.ts'
import { addresseesIn, hasAddressees } from './addressees.ts'
import { textOf } from './cel-tree.ts'
import { withKeys } from '../tools/schema-names.ts'

/** The variable `run` of a condition. */
class Run {
  readonly labels: readonly string[]
  constructor(labels: readonly string[]) {
    this.labels = labels
  }
}

/** A call that has not happened or one that has, or an origin. */
export type RunRead =
  | { readonly pattern: CallPattern; readonly wanted: readonly unknown[] }
  | { readonly of: string; readonly origin: Origin; readonly value: unknown }

/** Of runs without labels. It also keeps the code optimised that reads runs, which a garbage collection would discard with the last. */
const UNLABELLED = new Run([])

export function runWith(labels: readonly string[]): Run {
  return labels.length === 0 ? UNLABELLED : new Run(labels)
}

/** What `run.called`, `run.began` and `origin` read while a condition is evaluated. */
export interface RunReading {
  readonly facts: RunFacts
  readonly tool: Tool
  readonly input: unknown
  readonly work: Work
  /** Receives each answer that counts against the call. */
  readonly reads?: RunRead[] | undefined
}

let reading: RunReading | undefined

/** Evaluates a condition that reads the run. */
export function readingRun<T>(next: RunReading, evaluate: () => T): T {
  const before = reading
  reading = next
  try {
    return evaluate()
  } finally {
    reading = before
  }
}

/** A question about earlier calls, as it stands in a condition. */
export interface CallQuestion {
  readonly pattern: CallPattern
  /** The expressions of its values, in the order of the pattern's fields. */
  readonly values: readonly ASTNode[]
}

/** The questions of conditions that were accepted: the only ones that are evaluated. */
const questions = new WeakMap<ASTNode, CallQuestion>()

export function registerQuestion(node: ASTNode, question: CallQuestion): void {
  questions.set(node, question)
}

/** The argument of `origin` that is not an expression: the values of the call's addressees. */
export const ADDRESSEES = 'addressees'

/** Adds `run` and `origin` to an environment. */
export function registerRun(environment: Environment): Environment {
  environment
    .registerType('Run', { ctor: Run, fields: { labels: 'list<string>' } })
    .registerVariable('run', 'Run')
    .registerFunction('origin(ast): string', originMacro)
  for (const event of ['called', 'began'])
    for (const args of ['ast', 'ast, ast']) environment.registerFunction(`Run.${event}(${args}): bool`, callMacro)
  return environment
}

/** The parts of cel-js that a macro uses, which its types leave out. */
interface Macro {
  readonly ast: ASTNode
  readonly args: readonly ASTNode[]
}
interface Checker {
  check(node: ASTNode, context: unknown): unknown
  getType(name: string): unknown
}
interface Evaluator {
  run(node: ASTNode, context: unknown): unknown
}

function callMacro({ ast, args }: Macro) {
  return {
    ast,
    args,
    typeCheck(checker: Checker, macro: Macro, context: unknown) {
      for (const value of valuesOf(macro.args[1])) checker.check(value, context)
      return checker.getType('bool')
    },
    evaluate(evaluator: Evaluator, macro: Macro, context: unknown): boolean {
      const question = questions.get(macro.ast)
      if (!question) throw new TypeError('a question to the run that was not checked')
      return askCall(question, (node) => evaluator.run(node, context))
    },
  }
}

function valuesOf(map: ASTNode | undefined): readonly ASTNode[] {
  return map?.op === 'map' ? map.args.map(([, value]) => value) : []
}

/** A value that cannot be read, or that is not JSON, gets the strictest answer: it must not end in an error that loosens. */
function askCall({ pattern, values }: CallQuestion, valueOf: (node: ASTNode) => unknown): boolean {
  const { facts, work, reads } = current()
  const asked = values.map((node) => read(node, valueOf))
  for (const value of asked) spendOnValue(work, value)
  const strict = pattern.event === 'began'
  const answer = work.left < 0 || asked.includes(undefined) ? strict : facts.matched(pattern, asked)
  if (answer === strict) reads?.push({ pattern, wanted: asked })
  return answer
}

function read(node: ASTNode, valueOf: (node: ASTNode) => unknown): unknown {
  try {
    return toJson(valueOf(node))
  } catch {
    return undefined
  }
}

function originMacro({ ast, args }: Macro) {
  return {
    ast,
    args,
    typeCheck(checker: Checker, macro: Macro, context: unknown) {
      if (!isAddressees(macro.args[0])) for (const arg of macro.args) checker.check(arg, context)
      return checker.getType('string')
    },
    evaluate(evaluator: Evaluator, macro: Macro, context: unknown): Origin {
      const [arg] = macro.args as readonly [ASTNode]
      const value = isAddressees(arg) ? currentAddressees() : toJson(evaluator.run(arg, context))
      const origin = isAddressees(arg) && !isSaid() ? 'user' : originOf(value, isInput(arg))
      if (origin === 'untrusted' || origin === 'unknown') current().reads?.push({ of: textOf(arg), origin, value })
      return origin
    },
  }
}

export function isAddressees(node: ASTNode | undefined): boolean {
  return node?.op === 'id' && node.args === ADDRESSEES
}

/** A scan of what the run has seen, beside the characters of the value. */
const ORIGIN_STEPS = 2000

function originOf(value: unknown, isWhole: boolean): Origin {
  const { facts, work, tool } = current()
  work.left -= ORIGIN_STEPS
  spendOnValue(work, value)
  return work.left < 0 || value === undefined ? 'untrusted' : facts.origin(withKeys(value, tool, isWhole), work)
}

function isInput(node: ASTNode): boolean {
  return node.op === 'id' && node.args === 'input'
}

/** `undefined`: a tool whose addressees nobody has named may send anywhere. */
function currentAddressees(): readonly unknown[] | undefined {
  const { tool, input } = current()
  return tool.addressees.length === 0 ? undefined : addresseesIn(input, tool.addressees)
}

/** Whether the call has one of the fields that say where it sends something, or may have it. */
function isSaid(): boolean {
  const { tool, input } = current()
  return tool.addressees.length === 0 || hasAddressees(input, tool.addressees)
}

function current(): RunReading {
  if (!reading) throw new TypeError('nothing is known of the run here')
  return reading
}

/** Counts the steps of reading a value. It does not throw: a macro would catch that, and continue with its next item. */
function spendOnValue(work: Work, value: unknown): void {
  if (work.left < 0) return
  if (typeof value === 'string') work.left -= value.length
  else if (Array.isArray(value)) for (const item of value) spendOnValue(work, item)
  else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      work.left -= key.length
      spendOnValue(work, item)
    }
  }
  work.left -= 1
}

/** Returns a value of CEL as JSON; `undefined` for one that JSON cannot represent. */
function toJson(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : undefined
    case 'bigint':
      return BigInt(Number(value)) === value ? Number(value) : undefined
    case 'object':
      return value === null ? null : toJsonContainer(value)
    default:
      return undefined
  }
}

function toJsonContainer(value: object): unknown {
  if (Array.isArray(value)) {
    const items = value.map(toJson)
    return items.includes(undefined) ? undefined : items
  }
  const entries = value instanceof Map ? [...value] : isLiteral(value) ? Object.entries(value) : undefined
  const json = entries?.map(([key, item]) => [key, toJson(item)] as const)
  return json?.some(([key, item]) => typeof key !== 'string' || item === undefined)
    ? undefined
    : json && Object.fromEntries(json)
}

function isLiteral(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
