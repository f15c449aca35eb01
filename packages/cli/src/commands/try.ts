import path from 'node:path'
import { type GatewayConfig, type GroupRow, type RunningGateway, type ServerRow } from '@toolgate/gateway'
import { installDemoServers } from './demo-servers.ts'
import { configReader, findPort, nextPort, runGateway, type ServeDeps } from './serve.ts'
import { groupNotes } from '../notes.ts'
import { CliError, type ExitName } from '../exit.ts'
import { commandName, findQuickstart } from '../files.ts'
import { type Paint, painter, printable, printLine } from '../io.ts'
import { count } from '../render.ts'

export interface TryOptions {
  readonly port?: string
}

/** `toolgate try`: the quickstart, with real servers and demo keys, until it is stopped. */
export async function tryCommand(options: TryOptions, deps: ServeDeps): Promise<ExitName> {
  const { io } = deps
  const port = findPort(options.port, io.env)
  const file = quickstartOrThrow()
  await installDemoServers(path.dirname(file), io)
  const read = configReader(file, port, io)
  const config = await read()
  const next = nextPort(config.listen.port)
  printLine(
    io.stdout,
    painter(io.stdout, io.env)('dim', `Starting ${config.servers.map(({ name }) => name).join(', ')} …`),
  )
  return runGateway(config, {
    ...deps,
    read,
    portHint: `Choose another: npm start -- --port ${next}, or PORT=${next} npm start, or toolgate try --port ${next}.`,
    onReady: async (gateway) => {
      const text = renderWelcome({
        url: gateway.url,
        config,
        seen: await toolsByKey(config, gateway),
        servers: gateway.servers(),
        groups: gateway.groups(),
        paint: painter(io.stdout, io.env),
        columns: io.stdout.columns,
      })
      printLine(io.stdout, text)
    },
  })
}

/** Returns the path of the quickstart's configuration. @throws {CliError} `usage` */
function quickstartOrThrow(): string {
  const found = findQuickstart()
  if (found === undefined)
    throw new CliError('usage', 'The quickstart is not part of this installation.', {
      hint: 'Use "toolgate serve --config <file>".',
    })
  return found
}

/** Returns the tools of each key. It asks the gate itself, so that the output is always true. */
function toolsByKey(config: GatewayConfig, { gate }: RunningGateway): Promise<readonly SeenTool[]> {
  return Promise.all(
    config.callers.map(async ({ caller, demoKey = '', for: use }) => ({
      user: caller.user ?? '',
      key: demoKey,
      for: use,
      tools: use === 'mcp' ? (await gate.view(caller)).ids : [],
    })),
  )
}

/** The tools that one key sees. */
interface SeenTool {
  readonly user: string
  readonly key: string
  readonly for: 'mcp' | 'console' | 'host'
  /** Sorted ids. */
  readonly tools: readonly string[]
}

export interface Welcome {
  readonly url: string
  readonly config: GatewayConfig
  readonly seen: readonly SeenTool[]
  readonly servers: readonly ServerRow[]
  readonly groups: readonly GroupRow[]
  readonly paint: Paint
  readonly columns: number | undefined
}

const DEFAULT_COLUMNS = 100
const MAX_COLUMNS = 120

/** Returns the output of `toolgate try` when it is ready: addresses, keys, servers, client configurations and examples. */
export function renderWelcome(welcome: Welcome): string {
  const { url, paint, seen } = welcome
  const title = (text: string): string => paint('bold', text)
  const key = seen.find((one) => one.for === 'console')?.key ?? ''
  return [
    '',
    `${title('Toolgate is ready.')} Ctrl-C stops it, and the servers with it.`,
    '',
    `  MCP      ${paint('cyan', `${url}/mcp`)}`,
    `  Console  ${paint('cyan', `${url}/`)}   key: ${paint('yellow', key)}`,
    '',
    title('What each key may see'),
    ...keyLines(welcome),
    '',
    title('Servers'),
    ...welcome.servers.map((server) => serverLine(server, paint)),
    ...groupNotes(welcome.groups).map((note) => `  ${note}`),
    '',
    title('A client: .cursor/mcp.json, Claude Code (.mcp.json), Claude Desktop'),
    indent(clientConfig('mcpServers', welcome)),
    '',
    title('VS Code: .vscode/mcp.json'),
    indent(clientConfig('servers', welcome)),
    '',
    title('Three things to try, in another terminal'),
    ...commandsToTry(url, agentKey(seen)).map((command) => indent(command)),
    '',
  ].join('\n')
}

/**
 * Returns a line for each user: the tools of the first, and for each other user the tools in addition to the previous
 * one's.
 */
function keyLines({ seen, paint, columns }: Welcome): string[] {
  const agents = seen.filter((one) => one.for === 'mcp')
  return agents.flatMap(({ key, tools }, i) => {
    const before = new Set(agents[i - 1]?.tools)
    const isMore = i > 0 && [...before].every((id) => tools.includes(id))
    const shown = isMore ? tools.filter((id) => !before.has(id)) : tools
    const more = isMore ? `, those of ${agents[i - 1]?.key} and` : ''
    const head = `  ${paint('yellow', key)}  ${count(tools.length, 'tool')} (${countsOf(tools)})${more}`
    return [head].concat(byNamespace(shown).map(([space, names]) => wrap(`    ${space}: ${names.join(', ')}`, columns)))
  })
}

function countsOf(ids: readonly string[]): string {
  return byNamespace(ids)
    .map(([namespace, names]) => `${namespace} ${names.length}`)
    .join(', ')
}

function byNamespace(ids: readonly string[]): [namespace: string, names: string[]][] {
  const groups = Map.groupBy(ids.map(printable), (id) => id.slice(0, id.indexOf(':')))
  return [...groups].map(([namespace, members]) => [namespace, members.map((id) => id.slice(namespace.length + 1))])
}

function serverLine({ name, status, reason, toolCount, ...row }: ServerRow, paint: Paint): string {
  const rejected = row.rejected.filter(({ part }) => part === undefined)
  const state = paint(status === 'ready' ? 'green' : 'red', status)
  const detail = reason === undefined ? count(toolCount, 'tool') : printable(reason)
  const left =
    rejected.length > 0
      ? `, ${rejected.length} not offered (${rejected.map(({ name: item }) => printable(item)).join(', ')})`
      : ''
  return `  ${name}  ${state}  ${detail}${left}`
}

function agentKey(seen: readonly SeenTool[]): string {
  return seen.find((one) => one.for === 'mcp')?.key ?? ''
}

function clientConfig(section: 'mcpServers' | 'servers', { url, seen }: Welcome): string {
  const toolgate = { type: 'http', url: `${url}/mcp`, headers: { Authorization: `Bearer ${agentKey(seen)}` } }
  return JSON.stringify({ [section]: { toolgate } }, undefined, 2)
}

const REVISION = '2026-07-28'

/** Returns commands that work as printed. A test runs each. */
export function commandsToTry(url: string, key: string): readonly string[] {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })
  const at = url === 'http://127.0.0.1:8787' ? '' : ` --url ${url}`
  const name = commandName()
  return [
    [
      `curl -s ${url}/mcp -H 'Authorization: Bearer ${key}' \\`,
      `  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\`,
      `  -H 'MCP-Protocol-Version: ${REVISION}' -H 'Mcp-Method: tools/list' \\`,
      `  -d '${body}'`,
    ].join('\n'),
    `${name} why files:write_file --as viewer${at}`,
    `${name} audit tail${at}`,
  ]
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}

/** Wraps a list at its commas, and indents the following lines. */
function wrap(text: string, columns: number = DEFAULT_COLUMNS): string {
  const width = Math.min(columns, MAX_COLUMNS)
  const [head = '', ...words] = text.split(/(?<=,) /)
  const lines = [head]
  for (const word of words) {
    const last = lines.at(-1) ?? ''
    if (last.length + 1 + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`      ${word}`)
  }
  return lines.join('\n')
}
