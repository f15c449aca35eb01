import path from 'node:path'
import { type CatalogSnapshot, formatSnapshot, type PolicyTest, testPolicies } from '@toolgate/change'
import type { Caller } from '@toolgate/core'
import { type ClauseExample, type ClauseExamples, findClauseExamples } from '@toolgate/change/internal'
import { callerKey } from '@toolgate/core/internal'
import { type GatewayConfig, parseSentTests, readCatalogFile, readConfig } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { createApi } from '../client.ts'
import { readRunning } from '../project/running-file.ts'
import { findTarget } from '../target.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { createFile, isTaken } from '../new-file.ts'
import type { ServeDeps } from './serve.ts'
import { takeReadySnapshot } from './snapshot.ts'

export interface FirstTestOptions {
  readonly config: string
  readonly json?: boolean
}

/** The maximum number of callers in the file, so that it stays short enough to understand. */
const CALLERS = 3
const TOOLS = 3

/**
 * `toolgate test --init`: writes a first file of tests beside a configuration, with the policy's current answers, and
 * the catalog if it does not exist. Replaces no file.
 */
export async function firstTestCommand(
  options: FirstTestOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const folder = path.dirname(options.config)
  const [file, catalog] = [path.join(folder, 'policy.test.yaml'), path.join(folder, 'catalog.json')]
  if (isTaken(file)) throw new CliError('usage', `${printable(file)} exists already. Nothing was changed.`)
  const config = await readConfig(options.config, { env: io.env, packagesFrom: [INSTALLED_FROM] })
  const hasCatalog = isTaken(catalog)
  const { snapshot, down } = hasCatalog
    ? { snapshot: readCatalogFile(catalog), down: [] }
    : ((await catalogOfRunning(options, io)) ?? (await takeReadySnapshot(config, start)))
  const answers = await askAll(config, snapshot)
  if (answers.length === 0)
    throw new CliError('usage', `${printable(options.config)} has no tools and agents to test yet.`, {
      hint:
        down.length > 0
          ? `These servers are down: ${down.map(printable).join(', ')}. See toolgate doctor.`
          : 'Add a server first: toolgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ./',
    })
  const clauses = await examplesOf(config, snapshot)
  if (!hasCatalog) createFile(catalog, formatSnapshot(snapshot))
  createFile(file, fileOf({ answers, clauses, down }, config))
  const made = [file, ...(hasCatalog ? [] : [catalog])]
  const tests = answers.length + clauses.flatMap(({ holds, misses }) => [holds, misses]).filter(Boolean).length
  if (options.json) printJson(io.stdout, { made, tests, ...(down.length > 0 && { down }) })
  else printMade(made, options.config, io)
  for (const name of down)
    printLine(io.stderr, `${painter(io.stderr, io.env)('yellow', 'warn')}  ${printable(name)}; its tools have no test`)
  return 'ok'
}

/** Returns the catalog of the gateway that runs this configuration. `undefined`: none runs, or it does not answer us. */
async function catalogOfRunning(
  { config }: FirstTestOptions,
  io: Io,
): Promise<{ readonly snapshot: CatalogSnapshot; readonly down: readonly string[] } | undefined> {
  if (readRunning(config) === undefined) return undefined
  try {
    const { catalog, down } = await createApi(findTarget({ config, json: true }, io)).catalog()
    return {
      snapshot: catalog as unknown as CatalogSnapshot,
      down: down.map(({ name, reason }) => `${name} (${reason})`),
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    printLine(
      io.stderr,
      `The running gateway did not give its catalog, so the servers are started once: ${error.message}`,
    )
    return undefined
  }
}

/** The tools that one caller sees now, and the others. */
interface FirstAnswer {
  readonly caller: string
  readonly sees: readonly string[]
  readonly hides: readonly string[]
}

/** Returns calls that reach each clause. A call whose input has a secret of the configuration is left out. */
async function examplesOf(config: GatewayConfig, catalog: CatalogSnapshot): Promise<readonly ClauseExamples[]> {
  const { options } = await parseSentTests(JSON.stringify({ tests: [] }), { config: () => config, catalog })
  const { tests: _none, callers, ...rules } = options
  const agents = new Set(agentsOf(config))
  const named = new Map([...(callers as ReadonlyMap<string, Caller>)].filter(([name]) => agents.has(name)))
  const { secrets = [] } = config
  const found = await findClauseExamples({ ...rules, callers: named })
  const all = found.flatMap(({ holds, misses }) => [holds, misses].filter((one) => one !== undefined))
  const { results } = await testPolicies({ ...rules, callers: named, tests: all.map(toTest) })
  const passed = new Set(all.filter((_, i) => results[i]?.missed.length === 0))
  const isFit = (example: ClauseExample | undefined) =>
    example !== undefined && passed.has(example) && !secrets.some((one) => JSON.stringify(example).includes(one))
  return found.map(({ clause, path: at, holds, misses }) => ({
    clause,
    path: at,
    ...(holds && isFit(holds) && { holds }),
    ...(misses && isFit(misses) && { misses }),
  }))
}

function toTest({ caller, tool, input, history, outcome }: ClauseExample): PolicyTest {
  return { shows: tool, caller, input, history, expect: { call: { [tool]: outcome } } }
}

async function askAll(config: GatewayConfig, catalog: CatalogSnapshot): Promise<readonly FirstAnswer[]> {
  const tools = catalog.items.filter(({ kind }) => kind === undefined).map(({ id }) => id)
  const callers = agentsOf(config).slice(0, CALLERS)
  if (tools.length === 0 || callers.length === 0) return []
  // Each test expects no visible tool, so the found tools are the whole list.
  const tests = callers.map((caller) => ({ shows: caller, caller, expect: { visible: [] } }))
  const { options } = await parseSentTests(JSON.stringify({ tests }), { config: () => config, catalog })
  const { results } = await testPolicies(options)
  return callers.map((caller, i) => {
    const visible = new Set(results[i]?.missed[0]?.found as readonly string[] | undefined)
    const [sees, hides] = [tools.filter((id) => visible.has(id)), tools.filter((id) => !visible.has(id))]
    return { caller, sees: sees.slice(0, TOOLS), hides: hides.slice(0, TOOLS) }
  })
}

/** Returns the names of the configured agents that stand for one caller, as tests write them. */
function agentsOf({ callers }: GatewayConfig): readonly string[] {
  const agents = callers.flatMap(({ for: use, caller }) => {
    const { user, agent = user, tenant } = caller
    const name = user ?? agent
    if (use === 'console' || name === undefined) return []
    return [{ name: tenant === undefined ? name : `${name} of ${tenant}`, key: callerKey(caller) }]
  })
  const byName = Map.groupBy(agents, ({ name }) => name)
  return [...byName].flatMap(([name, same]) => (new Set(same.map(({ key }) => key)).size === 1 ? [name] : []))
}

interface FirstFile {
  readonly answers: readonly FirstAnswer[]
  readonly clauses: readonly ClauseExamples[]
  /** The servers that are down, each with the reason. */
  readonly down: readonly string[]
}

function fileOf({ answers, clauses, down }: FirstFile, { file, places }: GatewayConfig): string {
  const config = path.basename(file)
  const placeOf = (at: string) => places?.get(at)?.line
  const unreached = clauses.filter(({ holds }) => !holds)
  const lineOf = ({ clause, path: at }: ClauseExamples) => `  # - ${clause} (${config}:${placeOf(at) ?? '?'})`
  return [
    '# Tests of the policy, for "toolgate test". They start nothing and need no network, so they run in any CI. The tools are those of',
    '# catalog.json, which "toolgate snapshot -o catalog.json" writes again.',
    ...(down.length > 0
      ? ['# These servers were down, so their tools are not in it:', ...down.map((one) => `# - ${oneLine(one)}`)]
      : []),
    ...(config === 'toolgate.yaml' ? [] : [`config: ${JSON.stringify(config)}`]),
    'catalog: catalog.json',
    'tests:',
    '  # What the policy answers now. Is it what you want?',
    ...answers.map(testOf),
    ...(clauses.length > unreached.length
      ? [
          '  # Each clause with a call for which it holds, and the most similar one for which it does not. Are these the bounds that you want?',
        ]
      : []),
    ...clauses.flatMap((one) => clauseTests(one, path.dirname(file))),
    ...(unreached.length > 0
      ? [
          '  # No call was found for these clauses. They may need a history, a time, or an input that only you know:',
          ...unreached.map(lineOf),
        ]
      : []),
    '  # A test can also say what has happened before (history), what time it is (at), what is down (availability), and how much of',
    '  # a limit is used (used). "toolgate test" ends with the clauses that no test reaches: write tests for these.',
    '',
  ].join('\n')
}

function oneLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' '))
}

function clauseTests({ clause, holds, misses }: ClauseExamples, configDir: string): readonly string[] {
  if (!holds) return []
  const test = (example: ClauseExample, says: string) => {
    const { caller, tool, input, history, outcome, decides } = example
    // The folder of the configuration differs from machine to machine.
    const written = JSON.stringify(input).replaceAll(JSON.stringify(configDir).slice(1, -1), () => '${configDir}')
    return [
      `  - shows: ${JSON.stringify(`${clause} ${says}: ${caller} calls ${tool}`)}`,
      `    caller: ${JSON.stringify(caller)}`,
      ...(written === '{}' ? [] : [`    input: ${written}`]),
      ...(history === undefined ? [] : [`    history: ${JSON.stringify(history)}`]),
      '    expect:',
      `      call: { ${JSON.stringify(tool)}: ${outcome} }`,
      ...(decides ? [`      clause: { ${JSON.stringify(tool)}: ${JSON.stringify(clause)} }`] : []),
      '',
    ].join('\n')
  }
  return [test(holds, 'holds'), ...(misses ? [test(misses, 'does not hold')] : [])]
}

function testOf({ caller, sees, hides }: FirstAnswer): string {
  const list = (ids: readonly string[]) => ids.map((id) => JSON.stringify(id)).join(', ')
  const lines = [
    `  - shows: ${JSON.stringify(`${caller} sees ${sees.length === 0 ? 'none of these tools' : hides.length === 0 ? 'these tools' : 'some tools, and not others'}`)}`,
    `    caller: ${JSON.stringify(caller)}`,
    '    expect:',
    ...(sees.length > 0 ? [`      sees: [${list(sees)}]`] : []),
    ...(hides.length > 0 ? [`      hides: [${list(hides)}]`] : []),
    '',
  ]
  return lines.join('\n')
}

function printMade(made: readonly string[], config: string, io: Io): void {
  const paint = painter(io.stdout, io.env)
  for (const file of made) printLine(io.stdout, `${paint('green', 'made')}  ${printable(file)}`)
  const isDefault = config === 'toolgate.yaml'
  printLine(
    io.stdout,
    `\n${paint('bold', 'Next')}\n  toolgate test${isDefault ? '' : ` --config ${printable(config)}`}`,
  )
}
