import { absorb, CelMap, type Compiled, type Frame, type Macro } from '@toolgate/values/cel'
import type { CallPattern, RunFacts } from '../history/facts.ts'
import type { Origin } from '../ports/fact-read.ts'
import type { Tool } from '../tools/tool.ts'
import { isPlain } from '@toolgate/values/json'
import { spend, type Work } from '@toolgate/values'
import { addresseesIn, hasAddressees } from './addressees.ts'
import { type CelNode, textOf } from './cel-tree.ts'
import { withKeys } from '../tools/schema-names.ts'

/** A fact that a condition read: a call that has or has not happened, or an origin. */
export type RunRead =
  | { readonly pattern: CallPattern; readonly wanted: readonly unknown[] }
  | { readonly of: string; readonly origin: Origin; readonly value: unknown }

/** The facts that `run.called`, `run.began` and `origin` read while a condition is evaluated. */
export interface RunReading {
  readonly facts: RunFacts
  readonly tool: Tool
  readonly input: unknown
  /** Receives each answer that counts against the call. */
  readonly reads?: RunRead[] | undefined
}

/** A question about earlier calls, as written in a condition. */
export interface CallQuestion {
  readonly pattern: CallPattern
  /** The expressions of its values, in the order of the pattern's fields. */
  readonly values: readonly CelNode[]
}

/** The accepted questions of conditions. No others are evaluated. */
const questions = new WeakMap<CelNode, CallQuestion>()

export function registerQuestion(node: CelNode, question: CallQuestion): void {
  questions.set(node, question)
}

/** The argument of `origin` that is not an expression: the values of the call's addressees. */
export const ADDRESSEES = 'addressees'

/** The macros `run.called`, `run.began` and `origin`. Their context is a {@link RunReading}. */
export const RUN_MACROS: readonly Macro[] = [
  ...['called', 'began'].map((name): Macro => ({
    name,
    on: 'run',
    result: 'bool',
    valuesOf: (args) => (args[1]?.op === 'map' ? args[1].args.map(([, value]) => value) : []),
    compile: compileCall,
  })),
  {
    name: 'origin',
    result: 'string',
    valuesOf: (args) => args.filter((arg) => !isAddressees(arg)),
    compile: compileOrigin,
  },
]

function compileCall(node: CelNode, _values: readonly CelNode[], compile: (node: CelNode) => Compiled): Compiled {
  const question = questions.get(node)
  if (!question) throw new TypeError('a question to the run that was not checked')
  const values = question.values.map(compile)
  return (frame) => askCall(frame, question.pattern, values)
}

/** A value that is unreadable or not JSON gets the strictest answer, because an error could loosen the rule. */
function askCall(frame: Frame, pattern: CallPattern, values: readonly Compiled[]): boolean {
  const { facts, reads } = readingOf(frame)
  const asked = values.map((value) => jsonOf(frame, value))
  const strict = pattern.event === 'began'
  const answer = asked.includes(undefined) ? strict : facts.matched(pattern, asked)
  if (answer === strict) reads?.push({ pattern, wanted: asked })
  return answer
}

function jsonOf(frame: Frame, value: Compiled): unknown {
  try {
    return toJson(frame.work, value(frame))
  } catch (error) {
    absorb(frame, error)
    return undefined
  }
}

function compileOrigin(node: CelNode, values: readonly CelNode[], compile: (node: CelNode) => Compiled): Compiled {
  const [value] = values.map(compile)
  const [arg = node] = node.op === 'call' ? node.args[1] : []
  return (frame) => {
    const read = value ? toJson(frame.work, value(frame)) : currentAddressees(frame)
    const origin = !value && !isSaid(frame) ? 'user' : originOf(frame, read, isInput(arg))
    if (origin === 'untrusted' || origin === 'unknown')
      readingOf(frame).reads?.push({ of: textOf(arg), origin, value: read })
    return origin
  }
}

export function isAddressees(node: CelNode | undefined): boolean {
  return node?.op === 'id' && node.args === ADDRESSEES
}

/** Steps for each part of a value that is copied. */
const PART_STEPS = 10
/** Steps for a scan of the run's texts, in addition to the characters of the value. */
const ORIGIN_STEPS = 2000

function originOf(frame: Frame, value: unknown, isWhole: boolean): Origin {
  spend(frame.work, ORIGIN_STEPS)
  spendOnValue(frame.work, value)
  const { facts, tool } = readingOf(frame)
  return value === undefined ? 'untrusted' : facts.origin(withKeys(value, tool, isWhole), frame.work)
}

function isInput(node: CelNode): boolean {
  return node.op === 'id' && node.args === 'input'
}

/** `undefined`: the tool names no addressee fields, so it may send anywhere. */
function currentAddressees(frame: Frame): readonly unknown[] | undefined {
  const { tool, input } = readingOf(frame)
  return tool.addressees.length === 0 ? undefined : addresseesIn(input, tool.addressees)
}

/** Returns whether the call has, or may have, an addressee field. */
function isSaid(frame: Frame): boolean {
  const { tool, input } = readingOf(frame)
  return tool.addressees.length === 0 || hasAddressees(input, tool.addressees)
}

function readingOf({ context }: Frame): RunReading {
  if (!context) throw new TypeError('nothing is known of the run here')
  return context as RunReading
}

/** Counts the steps of reading a value. */
function spendOnValue(work: Work, value: unknown): void {
  if (typeof value === 'string') return spend(work, value.length)
  spend(work, 1)
  if (Array.isArray(value)) for (const item of value) spendOnValue(work, item)
  else if (isPlain(value)) {
    for (const [key, item] of Object.entries(value)) {
      spend(work, key.length)
      spendOnValue(work, item)
    }
  }
}

/** Returns a value of CEL as JSON; `undefined` for one that JSON cannot represent. Lists of a condition may share their items. */
function toJson(work: Work, value: unknown): unknown {
  spend(work, typeof value === 'string' ? value.length : PART_STEPS)
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isFinite(value) ? value : undefined
    case 'bigint':
      return BigInt(Number(value)) === value ? Number(value) : undefined
    case 'object':
      return value === null ? null : toJsonContainer(work, value)
    default:
      return undefined
  }
}

function toJsonContainer(work: Work, value: object): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => toJson(work, item))
    return items.includes(undefined) ? undefined : items
  }
  const entries =
    value instanceof CelMap ? [...value.entries.values()] : isPlain(value) ? Object.entries(value) : undefined
  const json = entries?.map(([key, item]) => {
    spend(work, PART_STEPS + (typeof key === 'string' ? key.length : 0))
    return [key, toJson(work, item)] as const
  })
  return json?.some(([key, item]) => typeof key !== 'string' || item === undefined)
    ? undefined
    : json && Object.fromEntries(json)
}
