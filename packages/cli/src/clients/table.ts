import path from 'node:path'

/** The facts about a machine that determine the paths of clients. */
export interface ClientMachine {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How an MCP client stores its servers. */
export interface ClientRow {
  readonly id: string
  readonly title: string
  /** Returns the user's file, if this platform has one. */
  readonly user?: (host: ClientMachine) => string
  /** The path of a project's file, in the project's folder. */
  readonly project?: string
  /** The default of the two files. */
  readonly prefers: 'user' | 'project'
  /** The key of the servers in the file. */
  readonly section: 'mcpServers' | 'servers' | 'context_servers'
  /** The key under which the user's file has the servers of single folders. */
  readonly folders?: string
  /** Returns the entry of a server over HTTP. Absent if the client only starts commands. */
  readonly http?: (url: string, headers: Readonly<Record<string, string>>) => object
  /** Returns the entry of a server that the client starts. */
  readonly stdio?: (command: string, args: readonly string[]) => object
  /** Returns how a header names a variable of the client's environment. Absent: the client fills in none. */
  readonly variable?: (name: string) => string
  readonly restart: string
}

type Http = NonNullable<ClientRow['http']>
const typed: Http = (url, headers) => ({ type: 'http', url, headers })
const untyped: Http = (url, headers) => ({ url, headers })
const ofEnv = (name: string) => `\${env:${name}}`

/** The clients, according to their documentation in November 2026. */
export const CLIENTS: readonly ClientRow[] = [
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    user: (host) => appData(host, 'Claude/claude_desktop_config.json'),
    prefers: 'user',
    section: 'mcpServers',
    restart: 'Quit Claude Desktop and start it again.',
  },
  {
    id: 'claude-code',
    title: 'Claude Code',
    user: ({ home }) => path.join(home, '.claude.json'),
    project: '.mcp.json',
    prefers: 'project',
    section: 'mcpServers',
    folders: 'projects',
    http: typed,
    variable: (name) => `\${${name}}`,
    restart: 'Start Claude Code again; /mcp shows its servers.',
  },
  {
    id: 'cursor',
    title: 'Cursor',
    user: ({ home }) => path.join(home, '.cursor/mcp.json'),
    project: '.cursor/mcp.json',
    prefers: 'user',
    section: 'mcpServers',
    http: untyped,
    variable: ofEnv,
    restart: 'Start Cursor again, or switch the server on in its settings.',
  },
  {
    id: 'vscode',
    title: 'VS Code',
    user: (host) => appData(host, 'Code/User/mcp.json'),
    project: '.vscode/mcp.json',
    prefers: 'user',
    section: 'servers',
    http: typed,
    variable: ofEnv,
    stdio: (command, args) => ({ type: 'stdio', command, args }),
    restart: 'Run "MCP: List Servers" in VS Code, and start it there.',
  },
  {
    id: 'windsurf',
    title: 'Windsurf',
    user: ({ home }) => path.join(home, '.codeium/windsurf/mcp_config.json'),
    prefers: 'user',
    section: 'mcpServers',
    http: (url, headers) => ({ serverUrl: url, headers }),
    variable: ofEnv,
    restart: 'Press "Refresh" among the MCP servers of Windsurf.',
  },
  {
    id: 'zed',
    title: 'Zed',
    user: zedSettings,
    project: '.zed/settings.json',
    prefers: 'user',
    section: 'context_servers',
    http: untyped,
    stdio: (command, args) => ({ source: 'custom', command, args }),
    restart: 'Zed reads its settings at once.',
  },
]

/** Any other file that contains servers. */
export const PLAIN: ClientRow = {
  id: 'file',
  title: 'The file',
  prefers: 'user',
  section: 'mcpServers',
  http: typed,
  restart: 'Start its client again.',
}

function appData({ platform, home, env }: ClientMachine, file: string): string {
  if (platform === 'darwin') return path.join(home, 'Library/Application Support', file)
  if (platform === 'win32') return path.join(env['APPDATA'] ?? path.join(home, 'AppData/Roaming'), file)
  return path.join(env['XDG_CONFIG_HOME'] || path.join(home, '.config'), file)
}

/** Returns the path of Zed's settings, which are in ~/.config even on macOS. */
function zedSettings(host: ClientMachine): string {
  if (host.platform === 'win32') return appData(host, 'Zed/settings.json')
  return path.join(host.env['XDG_CONFIG_HOME'] || path.join(host.home, '.config'), 'zed/settings.json')
}
