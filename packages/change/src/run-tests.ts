import { checkObject, checkShape, shapeOf, toNamedMap } from '@toolgate/values'
import { isOwnTool } from '@toolgate/core/tools'
import { listApps } from '@toolgate/core/internal'
import { type ClauseCoverage, ruleText, UNTRUSTED } from '@toolgate/core/decide'
import { parseLimits } from '@toolgate/core/call'
import { historyUse, parseAliases, parsePolicies, toGroupMap } from '@toolgate/core/policy'
import { type Caller, type LintWarning, REASONS, type View } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { ITEM_KINDS } from '@toolgate/core/words'
import { findProblems, type Known, type TestProblem, toConfigError } from './check-tests.ts'
import { calledIn, type PolicyTest } from './policy-test.ts'
import {
  type Bench,
  foundOf,
  type MissedExpectation,
  openGate,
  reasonsOf,
  type Scene,
  STILL,
  type TestedRules,
  withScene,
} from './scene.ts'
import { createStage, type FindUnlisted, type StagedCatalog } from './stage.ts'
import { statedLimits } from './stated.ts'

export interface PolicyTestOptions extends TestedRules {
  /** The tools, resources and prompts. Their own code never runs. */
  readonly catalog: StagedCatalog
  readonly tests: readonly PolicyTest[]
  /** The callers that tests name. */
  readonly callers?: Readonly<Record<string, Caller>> | ReadonlyMap<string, Caller> | undefined
  /** Returns a resource that its server does not list. Default: one without tags. */
  readonly findUnlisted?: FindUnlisted | undefined
  /** Called before each expected call. A returned promise is awaited. */
  readonly onProgress?: (() => Promise<void> | undefined) | undefined
}

export interface PolicyTestResult {
  readonly shows: string
  /** Empty if the test has passed. */
  readonly missed: readonly MissedExpectation[]
  /** The paths of the clauses that held for its calls, such as `policy[0].deny[1]`. */
  readonly reached: readonly string[]
}

/** A clause, and the number of calls that it matched. */
export type TestedClause = Pick<ClauseCoverage, 'id' | 'ref' | 'path' | 'hits' | 'shadow'>

export interface PolicyTestReport {
  readonly passed: number
  readonly failed: number
  readonly results: readonly PolicyTestResult[]
  /** Every clause, with the number of expected calls for which it held. Lists do not count. */
  readonly clauses: readonly TestedClause[]
  /** Warnings, such as rules about tools that the catalog does not have. */
  readonly warnings: readonly LintWarning[]
}

/** The keys of the options. */
export const TEST_OPTIONS = shapeOf<PolicyTestOptions>({
  policy: true,
  groups: true,
  apps: true,
  aliases: true,
  limits: true,
  labels: true,
  history: true,
  stepUp: true,
  catalog: true,
  tests: true,
  callers: true,
  findUnlisted: true,
  onProgress: true,
})

/**
 * Tests policies. Each call passes every check of a gate, with a stopped clock, the stated history, and tools that run
 * nothing. Tests do not affect each other.
 *
 * @throws {ConfigError} for invalid rules, and for a test with an unknown key, tool, caller, group, limit or label
 * @example
 * const { failed } = await testPolicies({ policy, catalog, tests: [
 *   { shows: 'A viewer cannot write', caller: { roles: ['viewer'] }, expect: { call: { 'files:write_file': 'deny' } } },
 * ] })
 */
export async function testPolicies(options: PolicyTestOptions): Promise<PolicyTestReport> {
  const warnings = new Map<string, LintWarning>()
  const clauses = new Map<string, TestedClause>()
  let reached: readonly string[] = []
  const bench = openBench(options, {
    onWarning: (warning) => void warnings.set(`${warning.path} ${warning.text}`, warning),
    onCoverage(counted) {
      addHits(clauses, counted)
      reached = [...reached, ...counted.flatMap(({ path, hits }) => (hits > 0 ? [path] : []))]
    },
  })
  const [problem] = findProblems(options.tests, await namesIn(bench))
  if (problem) throw toConfigError(problem)
  const results: PolicyTestResult[] = []
  for (const test of options.tests) {
    reached = []
    const missed = await runTest(bench, test, options.onProgress)
    results.push({ shows: test.shows, missed, reached: [...new Set(reached)] })
  }
  const failed = results.filter(({ missed }) => missed.length > 0).length
  return {
    passed: results.length - failed,
    failed,
    results,
    clauses: [...clauses.values()],
    warnings: [...warnings.values()],
  }
}

/** Returns all problems of tests: unknown keys and names. @throws {ConfigError} for invalid rules */
export async function checkPolicyTests(options: PolicyTestOptions): Promise<readonly TestProblem[]> {
  return findProblems(options.tests, await namesIn(openBench(options, { onWarning: () => {}, onCoverage: () => {} })))
}

function addHits(clauses: Map<string, TestedClause>, counted: readonly ClauseCoverage[]): void {
  for (const { id, ref, path, hits, shadow } of counted) {
    const before = clauses.get(path)?.hits ?? 0
    clauses.set(path, { id, ref, path, hits: before + hits, ...(shadow && { shadow }) })
  }
}

function openBench(options: PolicyTestOptions, listeners: Pick<Bench, 'onWarning' | 'onCoverage'>): Bench {
  checkShape('testPolicies', options, TEST_OPTIONS)
  const { catalog, tests: _tests, callers = {}, findUnlisted, onProgress: _rest, ...rules } = options
  if (!Array.isArray(catalog)) checkObject('testPolicies.catalog', catalog)
  const groups = toGroupMap(rules.groups ?? {})
  const { selectors } = parseGroups(groups, parseAliases(rules.aliases))
  return {
    rules,
    groups,
    selectors,
    stage: createStage(catalog, findUnlisted),
    limits: statedLimits(parseLimits(rules.limits, selectors)),
    callers: toNamedMap('testPolicies.callers', callers),
    ...listeners,
  }
}

/** Returns the names that tests may use. */
async function namesIn(bench: Bench): Promise<Known> {
  const { groups, stage, limits, callers } = bench
  const gate = openGate(bench, {}, STILL)
  const { items } = stage
  const known: Known = {
    tools: [...gate.catalog.snapshot().ids, ...gate.catalog.items().ids],
    servers: new Set(items.flatMap(({ kind, namespace = '' }) => (kind === 'tool' ? [] : [namespace]))),
    callers: [...callers.keys()],
    groups: [...groups.keys()],
    apps: gate.apps.list.map(({ name }) => name),
    limits: limits.names,
    labels: labelsOf(bench),
    codes: Object.keys(REASONS),
  }
  await gate.close()
  return known
}

/** The labels of the operator, of tools, and those that rules read. */
function labelsOf({ rules, stage, selectors }: Bench): readonly string[] {
  const policies = [
    rules.policy,
    ...listApps(rules.apps)
      .values()
      .map(({ policy }) => policy),
  ]
  return [
    UNTRUSTED,
    ...Object.keys(rules.labels ?? {}).filter((label) => label !== 'trusted'),
    ...stage.items.flatMap(({ labels }) => labels),
    ...policies.flatMap((policy) => {
      const { enforced, shadows } = historyUse(parsePolicies(policy, selectors))
      return [...enforced.labels, ...shadows.labels]
    }),
  ]
}

async function runTest(
  bench: Bench,
  test: PolicyTest,
  rest: PolicyTestOptions['onProgress'],
): Promise<readonly MissedExpectation[]> {
  await rest?.()
  const { visible, sees, hides, notices } = test.expect
  const ofView = visible ?? sees ?? hides ?? notices
  const first = ofView
    ? await withScene(bench, test, (scene) => [...scene.missed, ...missedOfView(scene.view, test)])
    : []
  const missed = [...first]
  for (const tool of calledIn(test)) {
    if (missed.some(({ path }) => path[0] === 'history')) break
    await rest?.()
    missed.push(...(await withScene(bench, test, (scene) => missedOfCall(scene, test, tool))))
  }
  return missed
}

function missedOfView(view: View, { expect }: PolicyTest): readonly MissedExpectation[] {
  const { visible, sees = [], hides = [], notices } = expect
  const ids = ITEM_KINDS.flatMap((kind) => view.items(kind))
    .filter((tool) => !isOwnTool(tool))
    .map(({ id }) => id)
  const because = (id: string) => view.explain(id).reasons.map(({ code, text }) => `${code}: ${text}`)
  return [
    ...missedList(['expect', 'visible'], visible, ids),
    ...missedList(['expect', 'notices'], notices, view.notices),
    ...sees.flatMap((id, i) =>
      view.has(id)
        ? []
        : [{ path: ['expect', 'sees', i], expected: `sees ${id}`, found: 'hidden', because: because(id) }],
    ),
    ...hides.flatMap((id, i) =>
      view.has(id)
        ? [{ path: ['expect', 'hides', i], expected: `does not see ${id}`, found: 'visible', because: because(id) }]
        : [],
    ),
  ]
}

function missedList(
  path: MissedExpectation['path'],
  expected: readonly string[] | undefined,
  found: readonly string[],
): readonly MissedExpectation[] {
  const isSame = expected?.length === found.length && expected.every((one, i) => one === found[i])
  return expected === undefined || isSame ? [] : [{ path, expected, found, because: [] }]
}

async function missedOfCall(
  { call, missed, view }: Scene,
  { expect }: PolicyTest,
  tool: string,
): Promise<readonly MissedExpectation[]> {
  if (missed.length > 0) return missed
  const { outcome, ran } = await call(tool)
  const { found: word, because } = foundOf(outcome)
  // For a call that ran, the reasons are those of the view.
  const reasons = outcome.status === 'done' ? view.explain(tool).reasons : reasonsOf(outcome)
  const found = {
    call: ran === (word === 'allow') ? word : `${word}, and the tool ran`,
    reasons: reasons.map(({ code }) => code),
    clause: reasons[0] && ruleText(reasons[0]),
    text: outcome.text,
  }
  return (['call', 'reasons', 'clause', 'text'] as const).flatMap((key) => {
    const expected: unknown = new Map<string, unknown>(Object.entries(expect[key] ?? {})).get(tool)
    const path = ['expect', key, tool]
    if (expected === undefined || JSON.stringify(expected) === JSON.stringify(found[key])) return []
    return [{ path, expected, found: found[key], because }]
  })
}
