import type { GatewayConfig, GroupRow, ServerRow } from '@toolgate/gateway'
import { groupNotes } from '../commands/tools.ts'
import { type Paint, printable } from '../io.ts'
import { count } from './words.ts'

/** What one key is shown. */
export interface Seen {
  readonly user: string
  readonly key: string
  readonly for: 'mcp' | 'console'
  /** Ids, sorted. */
  readonly tools: readonly string[]
}

export interface Welcome {
  readonly url: string
  readonly config: GatewayConfig
  readonly seen: readonly Seen[]
  readonly servers: readonly ServerRow[]
  readonly groups: readonly GroupRow[]
  readonly paint: Paint
  readonly columns: number | undefined
}

const DEFAULT_COLUMNS = 100
const MAX_COLUMNS = 120

/** Gives what `toolgate try` prints when it is ready: addresses, keys, servers, a client's configuration, what to try. */
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

/** Each user after the first with what it sees beyond the one before. */
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

function serverLine({ name, status, reason, toolCount, rejected }: ServerRow, paint: Paint): string {
  const state = paint(status === 'ready' ? 'green' : 'red', status)
  const detail = reason === undefined ? count(toolCount, 'tool') : printable(reason)
  const left =
    rejected.length > 0
      ? `, ${rejected.length} not offered (${rejected.map((tool) => printable(tool.tool)).join(', ')})`
      : ''
  return `  ${name}  ${state}  ${detail}${left}`
}

function agentKey(seen: readonly Seen[]): string {
  return seen.find((one) => one.for === 'mcp')?.key ?? ''
}

function clientConfig(section: 'mcpServers' | 'servers', { url, seen }: Welcome): string {
  const toolgate = { type: 'http', url: `${url}/mcp`, headers: { Authorization: `Bearer ${agentKey(seen)}` } }
  return JSON.stringify({ [section]: { toolgate } }, undefined, 2)
}

const REVISION = '2026-07-28'

/** Commands that work as they are printed; each is run by a test. */
export function commandsToTry(url: string, key: string): readonly string[] {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })
  const at = url === 'http://127.0.0.1:8787' ? '' : ` --url ${url}`
  return [
    [
      `curl -s ${url}/mcp -H 'Authorization: Bearer ${key}' \\`,
      `  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\`,
      `  -H 'MCP-Protocol-Version: ${REVISION}' -H 'Mcp-Method: tools/list' \\`,
      `  -d '${body}'`,
    ].join('\n'),
    `npx toolgate why files:write_file --as viewer${at}`,
    `npx toolgate audit tail${at}`,
  ]
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}

/** Breaks a list at its commas, below its first word. */
function wrap(text: string, columns: number = DEFAULT_COLUMNS): string {
  const width = Math.min(columns, MAX_COLUMNS)
  const [head = '', ...words] = text.split(/(?<=,) /)
  const lines = [head]
  for (const word of words) {
    const last = lines.at(-1) as string
    if (last.length + 1 + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`      ${word}`)
  }
  return lines.join('\n')
}
