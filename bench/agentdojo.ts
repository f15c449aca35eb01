import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'
import { replaySuite, type Policy, type Rules, type SuiteLabels, type SuiteResult } from './agentdojo/replay.ts'
import { proposeLabels } from '../packages/cli/src/labels/propose.ts'
import { toYaml } from '../packages/cli/src/labels/to-yaml.ts'
import { readSuites, type Suite } from './agentdojo/traces.ts'
import { printTable } from './lib.ts'

const { values } = parseArgs({ options: { data: { type: 'string' }, labels: { type: 'string' } } })
if (values.data === undefined) {
  console.error(
    'npm run bench -- agentdojo --data <file of traces> [--labels <folder>]; the format is in bench/README.md',
  )
  process.exit(2)
}
const EXAMPLES = new URL('../examples/injection/', import.meta.url)
const LABELS = values.labels === undefined ? new URL('labels/', EXAMPLES) : new URL(`file://${values.labels}/`)
const suites = readSuites(values.data)

interface Row extends Omit<Rules, 'labels' | 'policy'> {
  readonly name: string
  /** A file of `examples/injection/policies`. */
  readonly policy?: string
  readonly trusts?: boolean
}

const LIBRARY = { hasWords: true, hasOracle: false }
const ROWS: readonly Row[] = [
  { name: 'none', ...LIBRARY },
  { name: 'every change asks', policy: 'every-change', ...LIBRARY },
  { name: 'after an untrusted output, a change asks', policy: 'after-reading', ...LIBRARY },
  { name: 'the same, every output untrusted', policy: 'after-reading', trusts: false, ...LIBRARY },
  {
    name: 'an addressee that was read asks, no words of the user',
    policy: 'addressees-not-read',
    hasWords: false,
    hasOracle: false,
  },
  { name: 'an unknown addressee asks', policy: 'addressees', ...LIBRARY },
  { name: 'what was read must not steer', policy: 'what-was-read-must-not-steer', ...LIBRARY },
  { name: 'the same, no words of the user', policy: 'what-was-read-must-not-steer', hasWords: false, hasOracle: false },
  { name: 'only the tools of the task, which nobody knows (oracle)', hasWords: true, hasOracle: true },
  {
    name: 'the oracle, and what was read must not steer',
    policy: 'what-was-read-must-not-steer',
    hasWords: true,
    hasOracle: true,
  },
]

for (const { name, tasks, goals, goalsWithoutCalls } of suites)
  console.log(
    `${name}: ${tasks.length} tasks, ${goals.length} goals, ${goalsWithoutCalls} goals without calls left out. Labels: ${existsSync(labelsFile(name)) ? labelsFile(name).pathname : 'as toolgate labels proposes them'}.`,
  )
const results = new Map<string, readonly SuiteResult[]>()
for (const row of ROWS) {
  const policy = row.policy === undefined ? { allow: ['*'] } : policyOf(row.policy)
  const each: SuiteResult[] = []
  for (const suite of suites) each.push(await replaySuite(suite, { ...row, policy, labels: labelsOf(suite, row) }))
  results.set(row.name, each)
}
printTable(
  'AgentDojo, through the gate of the library',
  HEAD(),
  [...results].map(([name, each]) => line(name, total(each))),
)
for (const [i, { name: suite }] of suites.entries())
  printTable(
    suite,
    HEAD(),
    [...results].map(([name, each]) => line(name, total(each.slice(i, i + 1)))),
  )
printTable(
  'Attacks that run, by adaptive attacker',
  ['policy', ...(results.get('none')?.[0]?.by.keys() ?? [])],
  [...results].map(([name, each]) => {
    const { pairs, by } = total(each)
    return [name, ...[...by.values()].map((won) => percent(won, pairs))]
  }),
)

function HEAD(): readonly string[] {
  return ['policy', 'tasks free of questions', 'questions a task', 'attacks that run', 'adaptive']
}

function line(name: string, { tasks, free, questions, pairs, won, wonAdaptive }: SuiteResult): readonly string[] {
  return [name, percent(free, tasks), (questions / tasks).toFixed(2), percent(won, pairs), percent(wonAdaptive, pairs)]
}

function percent(part: number, all: number): string {
  return `${((part / all) * 100).toFixed(1)} %`
}

function total(each: readonly SuiteResult[]): SuiteResult {
  const sum = (read: (result: SuiteResult) => number) => each.reduce((all, result) => all + read(result), 0)
  const names = [...(each[0]?.by.keys() ?? [])]
  return {
    tasks: sum(({ tasks }) => tasks),
    free: sum(({ free }) => free),
    questions: sum(({ questions }) => questions),
    pairs: sum(({ pairs }) => pairs),
    won: sum(({ won }) => won),
    wonAdaptive: sum(({ wonAdaptive }) => wonAdaptive),
    by: new Map(names.map((name) => [name, sum(({ by }) => by.get(name) ?? 0)])),
  }
}

function policyOf(name: string): Policy {
  const file = new URL(`policies/${name}.yaml`, EXAMPLES)
  return (parse(readFileSync(file, 'utf8')) as { policy: Policy }).policy
}

interface LabelsFile {
  readonly labels: { readonly trusted: readonly string[] }
  readonly servers: Readonly<
    Record<string, { readonly tools: Readonly<Record<string, { tags?: string[]; addressees?: string[] }>> }>
  >
}

function labelsFile(suite: string): URL {
  return new URL(`${suite}.yaml`, LABELS)
}

function proposedFor({ name: server, tools }: Suite): string {
  return toYaml(tools.map((tool) => proposeLabels({ ...tool, server })))
}

/** The overlay that an operator writes for the server of a suite. */
function labelsOf(suite: Suite, { trusts = true }: Row): SuiteLabels {
  const file = labelsFile(suite.name)
  const { labels, servers } = parse(existsSync(file) ? readFileSync(file, 'utf8') : proposedFor(suite)) as LabelsFile
  const tools = Object.entries(servers[suite.name]?.tools ?? {}).flatMap(([pattern, overlay]) => {
    const named = suite.tools.filter(({ name }) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(name))
    if (named.length === 0) throw new Error(`${file.pathname}: no tool of ${suite.name} is named ${pattern}`)
    return named.map(({ name }) => [name, overlay] as const)
  })
  return { trusted: trusts ? labels.trusted : [], tools: new Map(tools) }
}
