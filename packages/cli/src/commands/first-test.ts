import path from 'node:path'
import { type CatalogSnapshot, formatSnapshot, testPolicies } from '@toolgate/change'
import { callerKey } from '@toolgate/core/internal'
import { type GatewayConfig, parseSentTests, readCatalogFile, readConfig } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { createFile, isTaken } from '../new-file.ts'
import type { ServeDeps } from './serve.ts'
import { takeLiveSnapshot } from './snapshot.ts'

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
  const snapshot = hasCatalog ? readCatalogFile(catalog) : await takeLiveSnapshot(config, start)
  const answers = await askAll(config, snapshot)
  if (answers.length === 0)
    throw new CliError('usage', `${printable(options.config)} has no tools and agents to test yet.`, {
      hint: 'Add a server first: toolgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ./',
    })
  if (!hasCatalog) createFile(catalog, formatSnapshot(snapshot))
  createFile(file, fileOf(answers, path.basename(options.config)))
  const made = [file, ...(hasCatalog ? [] : [catalog])]
  if (options.json) printJson(io.stdout, { made, tests: answers.length })
  else printMade(made, options.config, io)
  return 'ok'
}

/** The tools that one caller sees now, and the others. */
interface FirstAnswer {
  readonly caller: string
  readonly sees: readonly string[]
  readonly hides: readonly string[]
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

function fileOf(answers: readonly FirstAnswer[], config: string): string {
  const [example = ''] = answers.flatMap(({ sees }) => sees)
  const who = answers.find(({ sees }) => sees.length > 0)?.caller ?? answers[0]?.caller ?? ''
  return `# Tests of the policy, for "toolgate test". They start nothing and need no network, so they run in any CI. The tools are those of
# catalog.json, which "toolgate snapshot -o catalog.json" writes again.
${config === 'toolgate.yaml' ? '' : `config: ${JSON.stringify(config)}\n`}catalog: catalog.json
tests:
  # What the policy answers now. Is it what you want?
${answers.map(testOf).join('\n')}
  # The next one: who calls what, with which input, and what the call comes to: allow, ask, wait or deny.
  # - shows: A sentence that says what must be so
  #   caller: ${JSON.stringify(who)}
  #   input: { path: notes.txt }
  #   expect: { call: { ${JSON.stringify(example || 'files:read_file')}: allow } }
  #
  # A test can also say what has happened before (history), what time it is (at), what is down (availability), and how much of
  # a limit is used (used). "toolgate test" ends with the clauses that no test reaches: write tests for these.
`
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
