import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import type { Caller } from '../ports/caller.ts'
import { ConfigError, messageOf } from '../util/errors.ts'
import type { RunFacts } from '../history/facts.ts'
import type { Tool } from '../tools/tool.ts'
import { catchRejection } from '../util/async.ts'
import { isObject } from '../util/json.ts'
import { type Work, spend } from '../util/work.ts'
import { childrenOf, countNodes, isMacro, mentions } from './cel-tree.ts'
import { counting, host, like, within } from './functions.ts'
import { type Operands, operandsOf } from './operands.ts'
import { checkPolarity, inputPathsOf, type Place } from './polarity.ts'
import { ADDRESSEES, readingRun, registerRun, type RunRead, runWith } from './run-functions.ts'
import type { RunUse } from './run-use.ts'
import { isUncertain } from './uncertain.ts'
import type { Condition } from './policy.ts'

/** The variables of a condition. */
export interface ConditionContext {
  readonly caller: Caller
  readonly tool: Tool
  readonly input?: unknown
}

/** The context of an evaluation. All conditions of one decision share their steps. */
export interface CountedContext extends ConditionContext {
  readonly work?: Work
  /** What is known of the run. Absent where no clause reads it. */
  readonly facts?: RunFacts | undefined
  /** Receives each answer of the run that counts against the call. */
  readonly reads?: RunRead[] | undefined
}

/** A parsed and type-checked condition. */
export interface ParsedCondition {
  /** For people: the CEL text, or `function`. */
  readonly text: string
  /** The name of a function, which may be empty; absent for CEL. */
  readonly functionName?: string
  /** Whether the result can differ from tool to tool. */
  readonly perTool: boolean
  /** What it reads of the run. Such a condition is decided at the call. */
  readonly run?: RunUse | undefined
  /** Whether it needs the input of a call. */
  readonly readsInput: boolean
  /** What it reads of a call. Absent: nobody knows. */
  readonly operands?: Operands
  /** Absent for a function. */
  readonly tree?: ASTNode
  /** The paths of the input that it reads, such as `order.id`. */
  readonly inputPaths?: readonly string[]
  /** Returns `true` or `false`. Throws if the condition cannot be evaluated. */
  test(context: CountedContext): boolean
}

/** The variables that a condition may use: `input` is known only at a call. */
export type ConditionScope = 'caller and tool' | 'input, caller and tool'

const MAX_TEXT_LENGTH = 4096

/**
 * `rule`: the groups that it may name, and whether its rule gets stricter when the condition holds.
 *
 * @throws {ConfigError} `condition_invalid`, with the offset of the problem
 */
export function parseCondition(
  path: string,
  condition: Condition,
  scope: ConditionScope,
  rule: Omit<Place, 'fail'>,
): ParsedCondition {
  return typeof condition === 'function' ? fromFunction(condition) : fromCel(path, condition, scope, rule)
}

function fromFunction(condition: Exclude<Condition, string>): ParsedCondition {
  return {
    text: condition.name ? `function ${condition.name}` : 'function',
    functionName: condition.name,
    perTool: true,
    readsInput: true,
    test(context) {
      const answer = condition(withoutWork(context))
      catchRejection(answer)
      return checkAnswer(answer)
    },
  }
}

/** Functions of the host get neither: their steps cannot be counted, and nobody can check that facts only tighten them. */
function withoutWork(context: CountedContext): ConditionContext {
  if (context.work === undefined && context.facts === undefined) return context
  const { work: _, facts: __, reads: ___, ...rest } = context
  return rest
}

/** Throws the fault of a CEL text, at a character of it where one is known. */
type Fail = (problem: string, offset?: number) => ConfigError

/**
 * Parses CEL for a rule: without what could take more than linear time.
 *
 * @throws {ConfigError} `condition_invalid`, with the offset of the problem
 */
export function parseCel(path: string, text: string, environment: Environment, what: string) {
  const fail: Fail = (problem, offset) =>
    new ConfigError(
      path,
      offset === undefined ? problem : `${problem} at character ${offset + 1} of ${JSON.stringify(text)}`,
      {
        code: 'condition_invalid',
        offset,
      },
    )
  if (typeof text !== 'string' || text.trim() === '') throw fail(`a ${what} must be CEL text that is not empty`)
  if (text.length > MAX_TEXT_LENGTH)
    throw fail(`a ${what} has at most ${MAX_TEXT_LENGTH} characters, this one has ${text.length}`)
  const program = attempt(() => environment.parse(text), fail)
  const refusal = findRefused(program.ast)
  if (refusal) throw fail(refusal.problem, refusal.node.start)
  return { program, fail }
}

/** Returns the type of the program's result. @throws {ConfigError} for one that does not fit its variables */
export function checkCel({ program, fail }: ReturnType<typeof parseCel>): string {
  const { valid, type = 'dyn', error } = program.check()
  if (!valid) throw fail(summaryOf(error), error?.range?.start)
  return type
}

function fromCel(path: string, text: string, scope: ConditionScope, rule: Omit<Place, 'fail'>): ParsedCondition {
  const parsed = parseCel(path, text, scope === 'caller and tool' ? WITHOUT_INPUT : WITH_INPUT, 'condition')
  const { program, fail } = parsed
  const run = checkPolarity(program.ast, { ...rule, fail: (problem, { start }) => fail(problem, start) })
  const type = checkCel(parsed)
  if (type !== 'bool' && type !== 'dyn') throw fail(`a condition must be true or false, this one is of type ${type}`)
  const ask = ({ caller, tool, input, facts }: CountedContext) =>
    checkAnswer(
      program({ caller: toCelCaller(caller), tool: toCelTool(tool), input, run: facts && runWith(facts.labels) }),
    )
  const readsInput = mentions(program.ast, 'input') || mentions(program.ast, ADDRESSEES)
  const stepsEach = readsInput ? stepsOfEachItem(program.ast) : 0
  return {
    text,
    perTool: mentions(program.ast, 'tool'),
    run,
    readsInput,
    operands: operandsOf(program.ast),
    tree: program.ast,
    inputPaths: inputPathsOf(program.ast),
    test(context) {
      // The fields of callers and tools are short. Only inputs can be large.
      if (scope === 'caller and tool' && !run) return ask(context)
      const work = context.work ?? conditionWork()
      spendOnItems(work, context.input, stepsEach)
      return counting(work, () => (run ? askOfRun(context, work, ask) : ask(context)))
    },
  }
}

function askOfRun(context: CountedContext, work: Work, ask: (context: CountedContext) => boolean): boolean {
  const { facts, tool, input, reads } = context
  if (!facts) throw new TypeError('nothing is known of the run here')
  return readingRun({ facts, tool, input, work, reads }, () => ask(context))
}

function checkAnswer(answer: unknown): boolean {
  if (answer !== true && answer !== false) throw new TypeError('the condition did not return true or false')
  return answer
}

const BASE = new Environment({ limits: { maxAstNodes: 500, maxDepth: 40 } })
  .registerVariable({
    name: 'caller',
    schema: {
      user: 'string',
      tenant: 'string',
      roles: 'list<string>',
      scopes: 'list<string>',
      session: 'string',
      chat: { id: 'string', type: 'string' },
      agent: 'string',
      client: 'string',
      actor: 'string',
      attributes: 'map',
    },
  })
  .registerVariable({
    name: 'tool',
    schema: {
      id: 'string',
      namespace: 'string',
      name: 'string',
      category: 'string',
      tags: 'list<string>',
      requiredScopes: 'list<string>',
    },
  })
  .registerFunction('within(string, string): bool', within)
  .registerFunction('host(string): string', host)
  .registerFunction('like(string, string): bool', like)

const WITHOUT_INPUT = registerRun(BASE.clone())
const WITH_INPUT = WITHOUT_INPUT.clone().registerVariable('input', 'dyn')

/** Returns an environment with `caller`, `tool` and `input`, for texts that are no conditions. */
export function celWithInput(): Environment {
  return BASE.clone().registerVariable('input', 'dyn')
}

const celCallers = new WeakMap<Caller, object>()
const celTools = new WeakMap<Tool, object>()

/** Absent roles and scopes are empty lists. Reading any other absent field is an error. */
export function toCelCaller(caller: Caller): object {
  let cel = celCallers.get(caller)
  if (!cel) {
    const { roles = [], scopes = [], attributes = {}, actChain: _chain, ...named } = caller
    const { keyMadeBy: _maker, makerChain: _makers, run: _run, ...seen } = named
    cel = { ...seen, roles, scopes, attributes }
    celCallers.set(caller, cel)
  }
  return cel
}

/** Has conditions read another object in the place of a caller: one of which not everything is known. */
export function readCallerAs(caller: Caller, cel: object): void {
  celCallers.set(caller, cel)
}

/** Titles, descriptions and hints are left out: an upstream could exempt itself with them. */
export function toCelTool(tool: Tool): object {
  let cel = celTools.get(tool)
  if (!cel) {
    const { id, namespace, name, category, tags, requiredScopes } = tool
    cel = { id, namespace: namespace ?? '', name, category: category ?? '', tags, requiredScopes }
    celTools.set(tool, cel)
  }
  return cel
}

/** Finds operations that may take more than linear time: `matches`, which backtracks, and nested macros. */
function findRefused(ast: ASTNode): { node: ASTNode; problem: string } | undefined {
  const visit = (node: ASTNode, inMacro: boolean): { node: ASTNode; problem: string } | undefined => {
    const called = node.op === 'call' || node.op === 'rcall' ? node.args[0] : undefined
    if (called === 'matches')
      return { node, problem: 'matches() is not offered, it can take exponential time; use like(text, "a*b")' }
    const macro = isMacro(node)
    if (macro && inMacro)
      return { node, problem: `${String(called)}() inside another macro is not offered, it can take quadratic time` }
    if (node.op === 'rcall') {
      const [, receiver, args] = node.args
      return visit(receiver, inMacro) ?? first(args, (arg) => visit(arg, inMacro || macro))
    }
    return first(childrenOf(node), (child) => visit(child, inMacro))
  }
  return visit(ast, false)
}

function first<T, R>(items: readonly T[], find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function attempt<T>(parse: () => T, fail: Fail): T {
  try {
    return parse()
  } catch (error) {
    const range = isObject(error) && isObject(error['range']) ? error['range'] : {}
    throw fail(summaryOf(error), typeof range['start'] === 'number' ? range['start'] : undefined)
  }
}

function summaryOf(error: unknown): string {
  const summary = isObject(error) ? error['summary'] : undefined
  return typeof summary === 'string' ? summary : (messageOf(error).split('\n')[0] ?? 'the condition cannot be read')
}

/** The steps of all conditions of one decision together, about 5 ns each. */
const MAX_STEPS = 5_000_000

export function conditionWork(): Work {
  return { left: MAX_STEPS }
}

/** The steps of a node for each item of a macro, and of `in` for each item. */
const NODE_STEPS = 6
const IN_STEPS = 2

/** Returns the steps that a condition takes for each item of a list or object. */
export function stepsOfEachItem(ast: ASTNode): number {
  const own = isMacro(ast) ? countNodes(ast) * NODE_STEPS : ast.op === 'in' ? IN_STEPS : 0
  return childrenOf(ast).reduce((total, child) => total + stepsOfEachItem(child), own)
}

/** Cached for each input: several conditions need it, and inputs are frozen. */
const lengths = new WeakMap<object, number>()

/**
 * Counts the steps of a condition for the items of an input.
 *
 * @throws {WorkSpentError} before the condition runs, so that no condition can block the process
 */
export function spendOnItems(work: Work, input: unknown, stepsEach: number): void {
  if (stepsEach === 0 || typeof input !== 'object' || input === null) return
  let items = lengths.get(input)
  if (items === undefined) lengths.set(input, (items = isUncertain(input) ? 0 : longestOf(input)))
  spend(work, items * stepsEach)
}

/** Returns the number of items of the longest list or object in a value, including the value itself. */
function longestOf(value: object): number {
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  let longest = items.length
  for (const item of items) if (typeof item === 'object' && item !== null) longest = Math.max(longest, longestOf(item))
  return longest
}
