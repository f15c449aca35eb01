import type { Caller } from '../ports/caller.ts'
import { defineTool } from '../tools/tool.ts'
import { type CelNode, childrenOf, isMacro, textOf } from './cel-tree.ts'
import { parseCondition, type ParsedCondition } from './condition.ts'

/**
 * Returns whether a condition is always true or always false, and never fails, for everybody or for all `callers`.
 * `undefined` if that is not certain. The first part can settle it: `false && …`, `true || …`.
 */
export function isAlways(
  condition: ParsedCondition,
  wanted: boolean,
  callers: readonly Caller[] | undefined,
): 'everybody' | 'callers' | undefined {
  const { tree, run, test } = condition
  if (!tree || run) return undefined
  const first = firstOf(tree, wanted ? '||' : '&&')
  return answerOf(tree, test, wanted, callers) ?? (first && answerOf(first, testOf(first), wanted, callers))
}

/** Returns the part of a condition that is evaluated first, if it has parts. */
function firstOf(tree: CelNode, op: '&&' | '||'): CelNode | undefined {
  if (tree.op !== op) return undefined
  const first: CelNode = tree.args[0]
  return firstOf(first, op) ?? first
}

type Test = ParsedCondition['test']

/**
 * Returns a part as a condition of its own; `undefined` if its text alone is not valid, because nodes do not include
 * brackets.
 */
function testOf(part: CelNode): Test | undefined {
  try {
    return parseCondition('', textOf(part), 'caller and tool', { groups: new Map(), tightens: true }).test
  } catch {
    return undefined
  }
}

/** Returns the callers for whom a part, with its test, always gives the wanted answer. */
function answerOf(part: CelNode, test: Test | undefined, wanted: boolean, callers: readonly Caller[] = []) {
  const reads = readsOf(part)
  if (!test || reads === 'more' || (reads === 'callers' && callers.length === 0)) return undefined
  const asked = reads === 'callers' ? callers : [NOBODY]
  try {
    if (!asked.every((caller) => test({ caller, tool: ANY }) === wanted)) return undefined
    return reads === 'callers' ? 'callers' : 'everybody'
  } catch {
    return undefined
  }
}

const NOBODY: Caller = {}
const ANY = defineTool({ name: 'any' })

/** The fields of a caller that come only from the configuration. */
const FIXED: ReadonlySet<unknown> = new Set(['roles', 'user', 'tenant'])

function readsOf(part: CelNode): 'nothing' | 'callers' | 'more' {
  if (isFixedField(part)) return 'callers'
  // A macro has its own variable.
  if (part.op === 'id' || isMacro(part)) return 'more'
  const reads = new Set(childrenOf(part).map(readsOf))
  return reads.has('more') ? 'more' : reads.has('callers') ? 'callers' : 'nothing'
}

function isFixedField(node: CelNode): boolean {
  if (node.op !== '.') return false
  const [of, name] = node.args
  return of.op === 'id' && of.args === 'caller' && FIXED.has(name)
}

/** Returns whether a condition can fail, so that it is neither true nor false. `true` if that is not certain. */
export function fails(condition: ParsedCondition | undefined): boolean {
  if (!condition) return false
  return condition.run !== undefined || !condition.tree || !isSafe(condition.tree)
}

/** Absent roles and scopes are empty lists. Reading any other absent field fails. */
const LISTS: ReadonlySet<unknown> = new Set(['roles', 'scopes'])

function isSafe(node: CelNode): boolean {
  switch (node.op) {
    case 'value':
      return typeof node.args === 'boolean'
    case '!_':
      return isSafe(node.args)
    case '&&':
    case '||':
      return node.args.every(isSafe)
    case 'in': {
      const [text, list] = node.args
      return text.op === 'value' && typeof text.args === 'string' && isCallerList(list)
    }
    default:
      return false
  }
}

function isCallerList(node: CelNode): boolean {
  if (node.op !== '.') return false
  const [of, name] = node.args
  return of.op === 'id' && of.args === 'caller' && LISTS.has(name)
}
