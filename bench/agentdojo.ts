import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Policy } from '@toolgate/core'
import { parse } from 'yaml'
import { openGateway } from './agentdojo/gateway.ts'
import { openLibrary } from './agentdojo/library.ts'
import { replaySuite, type SuiteResult } from './agentdojo/replay.ts'
import type { OpenWay, Rules, SuiteLabels } from './agentdojo/way.ts'
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
const WAYS: ReadonlyMap<string, OpenWay> = new Map([
  ['the library', openLibrary],
  ['a gateway', openGateway],
])
const results = new Map<string, ReadonlyMap<string, readonly SuiteResult[]>>()
for (const [way, open] of WAYS) results.set(way, await replayAll(open))
const ofLibrary = [...(results.get('the library') ?? [])]
const ofGateway = results.get('a gateway')

printTable(
  'AgentDojo, through the gate of the library / of a gateway',
  HEAD(),
  ofLibrary.map(([name, each]) => both(name, total(each), total(ofGateway?.get(name) ?? []))),
)
for (const [i, { name: suite }] of suites.entries())
  printTable(
    suite,
    HEAD(),
    ofLibrary.map(([name, each]) =>
      both(name, total(each.slice(i, i + 1)), total(ofGateway?.get(name)?.slice(i, i + 1) ?? [])),
    ),
  )
printTable(
  'Attacks that run, by adaptive attacker',
  ['policy', ...(ofLibrary[0]?.[1][0]?.by.keys() ?? [])],
  ofLibrary.map(([name, each]) => {
    const [library, gateway] = [total(each), total(ofGateway?.get(name) ?? [])]
    return [
      name,
      ...[...library.by].map(([by, won]) =>
        joined(percent(won, library.pairs), percent(gateway.by.get(by) ?? 0, gateway.pairs)),
      ),
    ]
  }),
)
if (
  ofLibrary.some(([name, each]) => JSON.stringify(plain(each)) !== JSON.stringify(plain(ofGateway?.get(name) ?? [])))
) {
  console.error('The gateway and the library do not answer the same.')
  process.exitCode = 1
}

/** Returns the results of each policy, of one suite after the other. */
async function replayAll(open: OpenWay): Promise<ReadonlyMap<string, readonly SuiteResult[]>> {
  const all = new Map<string, readonly SuiteResult[]>()
  for (const row of ROWS) {
    const policy = row.policy === undefined ? [{ allow: ['*'] }] : policyOf(row.policy)
    const each: SuiteResult[] = []
    for (const suite of suites)
      each.push(await replaySuite(suite, { ...row, policy, labels: labelsOf(suite, row) }, open))
    all.set(row.name, each)
  }
  return all
}

function plain(each: readonly SuiteResult[]) {
  return each.map(({ by, ...result }) => ({ ...result, by: [...by] }))
}

function joined(library: string, gateway: string): string {
  return `${library} / ${gateway}`
}

function both(name: string, library: SuiteResult, gateway: SuiteResult): readonly string[] {
  const [, ...cells] = line(name, library)
  const others = line(name, gateway).slice(1)
  return [name, ...cells.map((cell, i) => joined(cell, others[i] ?? ''))]
}

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

function policyOf(name: string): readonly Policy[] {
  const file = new URL(`policies/${name}.yaml`, EXAMPLES)
  return (parse(readFileSync(file, 'utf8')) as { policy: readonly Policy[] }).policy
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
