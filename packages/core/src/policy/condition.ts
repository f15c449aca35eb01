import {
  CelProblem,
  createEnvironment,
  type Environment,
  type EnvironmentParts,
  parseCelFor,
  type ParsedCel,
  type Program,
} from '@toolgate/values/cel'
import type { Caller } from '../ports/caller.ts'
import { catchRejection, ConfigError, type Work } from '@toolgate/values'
import type { RunFacts } from '../history/facts.ts'
import type { Tool } from '../tools/tool.ts'
import { type CelNode, childrenOf, isMacro, mentions } from './cel-tree.ts'
import { OWN_FUNCTIONS } from './functions.ts'
import { type Operands, operandsOf } from './operands.ts'
import { checkPolarity, type PolarityPlace } from './polarity.ts'
import { ADDRESSEES, RUN_MACROS, type RunRead, type RunReading } from './run-functions.ts'
import type { RunUse } from './run-use.ts'
import type { Condition } from './policy.ts'

/** The variables of a condition. */
interface ConditionContext {
  readonly caller: Caller
  readonly tool: Tool
  readonly input?: unknown
}

/** The context of an evaluation. All conditions of one decision share a step budget. */
export interface CountedContext extends ConditionContext {
  readonly work?: Work
  /** The known facts about the run. Absent if no clause reads them. */
  readonly facts?: RunFacts | undefined
  /** Receives each read of the run that counted against the call. */
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
  /** What the condition reads of the run. Such a condition is decided at the call. */
  readonly run?: RunUse | undefined
  /** Whether the condition needs the input of a call. */
  readonly readsInput: boolean
  /** What the condition reads of a call. Absent: unknown. */
  readonly operands?: Operands
  /** Absent for a function. */
  readonly tree?: CelNode
  /** Returns `true` or `false`. Throws if the condition cannot be evaluated. */
  test(context: CountedContext): boolean
}

/** The variables that a condition may use: `input` is known only at a call. */
export type ConditionScope = 'caller and tool' | 'input, caller and tool'

const MAX_TEXT_LENGTH = 4096

/**
 * Parses a condition. `rule`: the groups that it may name, and whether its rule gets stricter when the condition holds.
 *
 * @throws {ConfigError} `condition_invalid`, with the offset of the problem
 */
export function parseCondition(
  path: string,
  condition: Condition,
  scope: ConditionScope,
  rule: Omit<PolarityPlace, 'fail'>,
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

/**
 * Functions of the host get neither steps, which cannot be counted, nor facts, because nobody can check that facts only
 * tighten them.
 */
function withoutWork(context: CountedContext): ConditionContext {
  if (context.work === undefined && context.facts === undefined) return context
  const { work: _, facts: __, reads: ___, ...rest } = context
  return rest
}

/** Returns the error for a CEL text, with the offset of a character if it is known. */
type Fail = (problem: string, offset?: number) => ConfigError

/**
 * Parses CEL for a rule. Rejects operations that could take more than linear time.
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
  const parsed = attempt(() => parseCelFor(environment, text), fail)
  const refusal = findRefused(parsed.tree)
  if (refusal) throw fail(refusal.problem, refusal.node.start)
  return { parsed, fail }
}

/** Returns the type of the result, and the program. @throws {ConfigError} for a text that does not match its variables */
export function compileCel({ parsed, fail }: { parsed: ParsedCel; fail: Fail }): { type: string; program: Program } {
  return attempt(() => ({ type: parsed.check(), program: parsed.compile() }), fail)
}

function fromCel(
  path: string,
  text: string,
  scope: ConditionScope,
  rule: Omit<PolarityPlace, 'fail'>,
): ParsedCondition {
  const read = parseCel(path, text, scope === 'caller and tool' ? WITHOUT_INPUT : WITH_INPUT, 'condition')
  const { parsed, fail } = read
  const { tree } = parsed
  const run = checkPolarity(tree, { ...rule, fail: (problem, { start }) => fail(problem, start) })
  const { type, program } = compileCel(read)
  if (type !== 'bool' && type !== 'dyn' && type !== 'json')
    throw fail(`a condition must be true or false, this one is of type ${type}`)
  const [readsCaller, perTool] = [mentions(tree, 'caller'), mentions(tree, 'tool')]
  return {
    text,
    perTool,
    run,
    readsInput: mentions(tree, 'input') || mentions(tree, ADDRESSEES),
    operands: operandsOf(tree),
    tree,
    test(context) {
      const { caller, tool, input, facts, work = conditionWork() } = context
      const reading = run && readingOf(context)
      const [who, what] = [readsCaller ? toCelCaller(caller) : undefined, perTool ? toCelTool(tool) : undefined]
      return checkAnswer(program(work, [who, what, facts && { labels: facts.labels }, input], reading))
    },
  }
}

function readingOf({ facts, tool, input, reads }: CountedContext): RunReading {
  if (!facts) throw new TypeError('nothing is known of the run here')
  return { facts, tool, input, reads }
}

function checkAnswer(answer: unknown): boolean {
  if (answer !== true && answer !== false) throw new TypeError('the condition did not return true or false')
  return answer
}

const CALLER_AND_TOOL = {
  caller: {
    user: 'string',
    tenant: 'string',
    roles: 'list<string>',
    scopes: 'list<string>',
    session: 'string',
    chat: { id: 'string', type: 'string' },
    agent: 'string',
    client: 'string',
    actor: 'string',
    attributes: 'map<json>',
  },
  tool: {
    id: 'string',
    namespace: 'string',
    name: 'string',
    category: 'string',
    tags: 'list<string>',
    requiredScopes: 'list<string>',
  },
}
const RUN = { run: { labels: 'list<string>' } }

const OF_RUNS = { functions: OWN_FUNCTIONS, macros: RUN_MACROS }
const WITHOUT_INPUT = createEnvironment({ variables: { ...CALLER_AND_TOOL, ...RUN }, ...OF_RUNS })
const WITH_INPUT = createEnvironment({ variables: { ...CALLER_AND_TOOL, ...RUN, input: 'json' }, ...OF_RUNS })

/** Returns an environment with `caller`, `tool` and more, for texts other than conditions. */
export function celWith({ variables, functions = [] }: EnvironmentParts): Environment {
  return createEnvironment({
    variables: { ...CALLER_AND_TOOL, ...variables },
    functions: [...OWN_FUNCTIONS, ...functions],
  })
}

const celCallers = new WeakMap<Caller, object>()
const celTools = new WeakMap<Tool, object>()

/** Absent roles and scopes are empty lists. Reading any other absent field is an error. */
export function toCelCaller(caller: Caller): object {
  let cel = celCallers.get(caller)
  if (!cel) {
    const { roles = [], scopes = [], attributes = {}, actChain: _chain, ...named } = caller
    const { keyMadeBy: _maker, makerChain: _makers, aliases: _names, run: _run, ...seen } = named
    cel = { ...seen, roles, scopes, attributes }
    celCallers.set(caller, cel)
  }
  return cel
}

/** Makes conditions read another object instead of a caller, for a caller that is only partly known. */
export function readCallerAs(caller: Caller, cel: object): void {
  celCallers.set(caller, cel)
}

/** Leaves out titles, descriptions and hints, because an upstream could use them to exempt itself. */
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
function findRefused(tree: CelNode): { node: CelNode; problem: string } | undefined {
  const visit = (node: CelNode, inMacro: boolean): { node: CelNode; problem: string } | undefined => {
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
  return visit(tree, false)
}

function first<T, R>(items: readonly T[], find: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function attempt<T>(read: () => T, fail: Fail): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof CelProblem ? fail(error.message, error.offset) : error
  }
}

/** The maximum number of steps of all conditions of one decision together. A step takes about 5 ns. */
const MAX_STEPS = 5_000_000

export function conditionWork(): Work {
  return { left: MAX_STEPS }
}
