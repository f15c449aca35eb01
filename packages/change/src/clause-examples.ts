import type { OutcomeWord, Tool } from '@toolgate/core'
import { probeInputs } from '@toolgate/core/call'
import { parseGroups } from '@toolgate/core/groups'
import { clauseText, parseAliases, type ParsedClause, parsePolicies, toGroupMap } from '@toolgate/core/policy'
import { matchesSelector } from '@toolgate/core/toolset'
import { checkShape } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { PolicyTest } from './policy-test.ts'
import { type PolicyTestOptions, TEST_OPTIONS, testPolicies } from './run-tests.ts'
import { createStage } from './stage.ts'

/** A call, and what it comes to. */
export interface ClauseExample extends Pick<PolicyTest, 'input' | 'history'> {
  readonly caller: string
  readonly tool: string
  readonly outcome: OutcomeWord
  /** Whether the clause decides the call. */
  readonly decides: boolean
}

/** A clause with calls on both sides of its bound. */
export interface ClauseExamples {
  /** The clause, such as `baseline#deny[1]`. */
  readonly clause: string
  /** The path of the clause, such as `policy[0].deny[1]`. */
  readonly path: string
  /** A call for which it holds. Absent: none was found. */
  readonly holds?: ClauseExample
  /** A call that is as similar as possible, and for which it does not hold. Absent: none was found. */
  readonly misses?: ClauseExample
}

const MAX_TOOLS = 8
const MAX_CALLERS = 8
const MAX_INPUTS = 60
/** All clauses together try this many calls, which takes some seconds. */
const MAX_CALLS = 4000

/**
 * Finds calls that reach each clause, and calls beside its bound. It tries the texts and numbers of the conditions and
 * their neighbours, in each field of a tool's schema.
 *
 * @throws {ConfigError} for invalid rules
 */
export async function findClauseExamples(
  options: Omit<PolicyTestOptions, 'tests'>,
): Promise<readonly ClauseExamples[]> {
  checkShape('findClauseExamples', options, TEST_OPTIONS)
  const { catalog, policy, groups = {}, aliases, callers = {} } = options
  const { selectors } = parseGroups(toGroupMap(groups), parseAliases(aliases))
  const { items } = createStage(catalog)
  const names = [...(callers instanceof Map ? callers.keys() : Object.keys(callers))].slice(0, MAX_CALLERS)
  const found: ClauseExamples[] = []
  let left = MAX_CALLS
  for (const { name, allow = [], deny, ask } of parsePolicies(policy, selectors))
    for (const clause of [...deny, ...ask, ...allow]) {
      const { kind, index, id, path } = clause
      const text = clauseText({ policy: name, kind, index, ...(id === undefined ? {} : { id }) })
      const tried: Tried[] = []
      for (const tool of toolsOf(clause, items)) {
        const calls = callsOf(clause, tool, names).slice(0, Math.max(0, left))
        left -= calls.length
        tried.push(...(await tryCalls({ ...options, catalog: [tool] }, { path, text }, calls)))
        if (tried.some(({ isHit, decides }) => isHit && decides) && tried.some(({ isHit }) => !isHit)) break
      }
      found.push({ clause: text, path, ...closestPair(tried) })
    }
  return found
}

/** One tool of each kind that a clause is about. Those whose fields its conditions name come first. */
function toolsOf(clause: ParsedClause, items: readonly Tool[]): readonly Tool[] {
  const text = textsOf(clause).join(' ')
  const named = ({ inputSchema: { properties } }: Tool) =>
    Object.keys(isObject(properties) ? properties : {}).filter((field) => text.includes(field)).length
  const matched = items.filter(
    (tool) => tool.kind === 'tool' && clause.selectors.some((one) => matchesSelector(one, tool, 'certain')),
  )
  const sorted = matched.toSorted((a, b) => named(b) - named(a))
  const ofKind = Map.groupBy(sorted, ({ tags, category, namespace }) => JSON.stringify([tags, category, namespace]))
  return [...ofKind.values()].flatMap((tools) => tools.slice(0, 1)).slice(0, MAX_TOOLS)
}

function textsOf({ when, unless, input }: ParsedClause): readonly string[] {
  return [when, unless, input].flatMap((condition) => (condition === undefined ? [] : [condition.text]))
}

type Call = Pick<ClauseExample, 'caller' | 'tool' | 'input' | 'history'>
type Tried = ClauseExample & { readonly isHit: boolean }

function callsOf(clause: ParsedClause, tool: Tool, callers: readonly string[]): readonly Call[] {
  const [empty, base = empty, ...more] = probeInputs(tool, textsOf(clause))
  const inputs = clause.input === undefined ? [base] : [base, ...more].slice(0, MAX_INPUTS)
  const labels = clause.run?.labels ?? []
  const histories: Pick<ClauseExample, 'history'>[] = [{}, ...(labels.length > 0 ? [{ history: { labels } }] : [])]
  return histories.flatMap((history) =>
    callers.flatMap((caller) => inputs.map((input) => ({ caller, tool: tool.id, input, ...history }))),
  )
}

/** Makes calls as tests do. Calls whose input the tool rejects are left out. */
async function tryCalls(
  options: Omit<PolicyTestOptions, 'tests'>,
  { path, text }: { readonly path: string; readonly text: string },
  calls: readonly Call[],
): Promise<readonly Tried[]> {
  // An expectation that is missed has what was found. Every expectation but `wait` is certain to be missed.
  const tests = calls.map(({ tool, ...situation }): PolicyTest => ({
    shows: tool,
    ...situation,
    expect: { call: { [tool]: 'wait' }, reasons: { [tool]: [] }, clause: { [tool]: '' } },
  }))
  const { results } = await testPolicies({ ...options, tests })
  return calls.flatMap((call, i) => {
    const { missed = [], reached = [] } = results[i] ?? {}
    const foundOf = (key: string) => missed.find(({ path: at }) => at[1] === key)?.found
    const reasons = (foundOf('reasons') ?? []) as readonly string[]
    if (missed.some(({ path: at }) => at[0] === 'history') || reasons.includes('input_invalid')) return []
    const outcome = (foundOf('call') ?? 'wait') as OutcomeWord
    const isHit = reached.includes(path)
    return [{ ...call, outcome, isHit, decides: isHit && foundOf('clause') === text }]
  })
}

/** Returns the two calls that differ least, one on each side of the bound. */
function closestPair(tried: readonly Tried[]): Pick<ClauseExamples, 'holds' | 'misses'> {
  const hits = tried.filter(({ isHit }) => isHit)
  const misses = tried.filter(({ isHit }) => !isHit)
  let best: { readonly holds: Tried; readonly misses?: Tried; readonly far: number } | undefined
  for (const holds of hits) {
    if (best === undefined) best = { holds, far: Infinity }
    for (const miss of misses) {
      const far = distanceOf(holds, miss)
      if (far < best.far) best = { holds, misses: miss, far }
    }
  }
  if (!best) return {}
  return { holds: toExample(best.holds), ...(best.misses && { misses: toExample(best.misses) }) }
}

function toExample({ isHit: _, ...example }: Tried): ClauseExample {
  return example
}

const OTHER_TOOL = 1000
const OTHER_CALLER = 100
const OTHER_HISTORY = 50
const SAME_OUTCOME = 200

function distanceOf(a: Tried, b: Tried): number {
  return (
    (a.tool === b.tool ? 0 : OTHER_TOOL) +
    (a.caller === b.caller ? 0 : OTHER_CALLER) +
    (a.history === b.history ? 0 : OTHER_HISTORY) +
    (a.outcome === b.outcome ? SAME_OUTCOME : 0) +
    distanceOfValues(a.input, b.input)
  )
}

function distanceOfValues(a: unknown, b: unknown): number {
  if (Object.is(a, b)) return 0
  if (typeof a === 'number' && typeof b === 'number') return 1 + Math.abs(a - b) / (1 + Math.abs(a) + Math.abs(b))
  if (typeof a === 'string' && typeof b === 'string') return 2 - sharedStart(a, b) / Math.max(a.length, b.length)
  if (!isObject(a) || !isObject(b)) return JSON.stringify(a) === JSON.stringify(b) ? 0 : 2
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].reduce((sum, key) => sum + distanceOfValues(a[key], b[key]), 0)
}

function sharedStart(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}
