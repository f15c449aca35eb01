import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { GatewayConfig } from '@toolgate/gateway'

export type ServerConfig = GatewayConfig['servers'][number]

const modules = join(createRequire(import.meta.url).resolve('fast-check/package.json'), '../..')
const program = (name: string) => join(modules, `@modelcontextprotocol/server-${name}/dist/index.js`)

export const HOSTILE: string = join(import.meta.dirname, '../../packages/gateway/fixtures/hostile-stdio.js')

/** Gives a server's configuration with the defaults of a file that names only what is given. */
export function serverConfig(name: string, given: Partial<ServerConfig> = {}): ServerConfig {
  return {
    name,
    args: [],
    cwd: tmpdir(),
    env: {},
    headers: {},
    era: 'auto',
    per: 'shared',
    loopback: false,
    trustHints: true,
    offers: ['tools'],
    startTimeoutMs: 10_000,
    callTimeoutMs: 10_000,
    tools: new Map(),
    ...given,
  }
}

/** A program of this Node on stdio. */
export function nodeServer(name: string, args: readonly string[], given: Partial<ServerConfig> = {}): ServerConfig {
  return serverConfig(name, { command: process.execPath, args, ...given })
}

export function filesServer(workspace: string, given: Partial<ServerConfig> = {}): ServerConfig {
  return nodeServer('files', [program('filesystem'), workspace], { cwd: workspace, ...given })
}

export function memoryServer(file: string): ServerConfig {
  return nodeServer('memory', [program('memory')], { env: { MEMORY_FILE_PATH: file } })
}

/** Started, and then spoken to over Streamable HTTP. */
export function everythingServer(): ServerConfig {
  return nodeServer('everything', [program('everything'), 'streamableHttp'], {
    env: { PORT: '${port}' },
    url: 'http://127.0.0.1:${port}/mcp',
    loopback: true,
  })
}

export function hostileServer(name: string, mode: string, given: Partial<ServerConfig> = {}): ServerConfig {
  return nodeServer(name, [HOSTILE, mode], given)
}

export function httpServer(name: string, url: string, given: Partial<ServerConfig> = {}): ServerConfig {
  return serverConfig(name, { url, ...given })
}
