import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** How a client speaks: 2025-11-25 with a session or without one, 2026-07-28, or HTTP+SSE of 2024-11-05. */
export type ClientKind = 'session' | 'no session' | 'modern' | 'sse'

export const CLIENTS: Readonly<Record<ClientKind, string>> = {
  session: '2025-11-25, a session each',
  'no session': '2025-11-25, no session',
  modern: '2026-07-28',
  sse: '2024-11-05, a stream each',
}

export interface Start {
  readonly port: number
  /** Origin of the upstream. */
  readonly upstream: string
  /** For its files. */
  readonly folder: string
}

/** A gateway to be measured. */
export interface Contender {
  readonly name: string
  readonly clients: readonly ClientKind[]
  readonly key?: string
  /** Returns the arguments of Node and the environment. */
  readonly start: (options: Start) => {
    readonly args: readonly string[]
    readonly env?: Readonly<Record<string, string>>
  }
}

const KEY = 'bench-key-0123456789'
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const toolgate = pathOf('../../packages/cli/bin/toolgate.js')
const EVERY_ERA = ['session', 'no session', 'modern'] as const

export const FLOOR: Contender = {
  name: 'floor',
  clients: EVERY_ERA,
  start: ({ port, upstream, folder }) => ({
    args: [pathOf('floor.js')],
    env: { PORT: String(port), UPSTREAM: upstream, LOG: join(folder, `floor-${port}.log`) },
  }),
}

const TOOLGATE: Contender = {
  name: 'toolgate',
  clients: EVERY_ERA,
  key: KEY,
  start: ({ port, upstream, folder }) => {
    const config = join(folder, `toolgate-${port}.yaml`)
    writeFileSync(config, toConfig(upstream, join(folder, `audit-${port}.db`)))
    return { args: [toolgate, 'serve', '--config', config, '--port', String(port)] }
  },
}

function toConfig(upstream: string, audit: string): string {
  return `
servers:
  up: { url: "${upstream}/mcp", tools: { "*": { tags: [read] } } }
callers:
  - { key: "${KEY}", user: vera, roles: [viewer] }
policy:
  - name: baseline
    allow: [ "tag:read" ]
    deny: [ { match: "*", input: "!within(input.path, '/workspace')" } ]
limits: [ "*:1000000/60" ]
audit: { store: sqlite, path: "${audit}" }
`
}

const SDK_1: Contender = { name: 'glue of SDK 1.x', clients: ['session', 'no session'], start: glue('sdk1-glue.js') }
const SDK_2: Contender = { name: 'glue of SDK 2.4', clients: ['no session', 'modern'], start: glue('sdk2-glue.js') }

function glue(file: string): Contender['start'] {
  return ({ port, upstream }) => ({ args: [pathOf(file)], env: { PORT: String(port), UPSTREAM: upstream } })
}

/** A gateway of others is installed into a cache folder, as nothing of ours depends on it. */
const CACHE = process.env['TOOLGATE_BENCH_CACHE'] ?? join(homedir(), '.cache', 'toolgate-bench')
const MCP_HUB = 'mcp-hub@4.2.1'

const HUB: Contender = {
  name: MCP_HUB,
  clients: ['sse'],
  start: ({ port, upstream, folder }) => {
    const config = join(folder, `mcp-hub-${port}.json`)
    writeFileSync(config, JSON.stringify({ mcpServers: { up: { url: `${upstream}/mcp` } } }))
    const home = { XDG_STATE_HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    return { args: [cliOfHub(), '--port', String(port), '--config', config], env: home }
  },
}

function cliOfHub(): string {
  return join(CACHE, 'mcp-hub', 'node_modules', 'mcp-hub', 'dist', 'cli.js')
}

/** Returns the gateways that can be measured here, the floor first. Prints the names of the others, with the reason. */
export function findContenders(): readonly Contender[] {
  const problem = existsSync(cliOfHub()) ? undefined : install(MCP_HUB, join(CACHE, 'mcp-hub'))
  if (problem !== undefined) console.log(`\nLeft out: ${MCP_HUB}, which cannot be installed: ${problem}`)
  return [FLOOR, TOOLGATE, SDK_1, SDK_2, ...(problem === undefined ? [HUB] : [])]
}

const INSTALL_MS = 180_000

function install(name: string, folder: string): string | undefined {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const { status, stderr, error } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', name], {
    cwd: folder,
    encoding: 'utf8',
    timeout: INSTALL_MS,
  })
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n').at(-1) ?? `npm ended with ${status}`)
}
