import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { binary } from '../tests/support/binaries.ts'
import { startPostgres, startRedis } from '../tests/support/own-server.ts'
import { type BenchRequest, freePort, type ServerProcess, startServer } from './server-process.ts'

export const KEY = 'bench-key-0123456789'
export const CONSOLE_KEY = 'bench-console-0123456789'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const cliPath = pathOf('../packages/cli/bin/toolgate.js')
export const CALL: BenchRequest = {
  method: 'tools/call',
  name: 'up__tool_0007',
  params: { name: 'up__tool_0007', arguments: { path: '/workspace/a.txt', head: 10 } },
  key: KEY,
  expect: 'read /workspace/a.txt',
}

const running: { stop(): Promise<unknown> }[] = []
async function started<T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
  const each = await starting
  running.unshift(each)
  return each
}

function program(name: string): string {
  const found = binary(name)
  if (found === undefined) throw new Error(`${name} is not on this machine`)
  return found
}

async function startGateway(rules: string, file: string, stores: string, id = ''): Promise<ServerProcess> {
  const port = await freePort()
  const config = join(folder, file)
  writeFileSync(
    config,
    `
${rules}
callers:
  - { key: "${KEY}", user: vera, roles: [viewer] }
  - { key: "${CONSOLE_KEY}", for: console, user: owner, roles: [operator] }
policy:
  - name: baseline
    deny:
      - { match: "hint:destructive", unless: "'admin' in caller.roles" }
      - { match: "*:*", input: "!within(input.path, '/workspace')" }
${stores}
`,
  )
  const args = [cliPath, 'serve', '--config', config, '--port', String(port)]
  return started(startServer({ args, port, env: { REPLICA: id } }, CALL))
}

/**
 * Starts everything on this machine: engines, the server, one gateway on SQLite, so many replicas, and the load generator.
 * `server` is a further server; `limits` are those of all calls.
 */
export async function startReplicas(count: number, { server = '', limits = '["*:1000000/60"]' } = {}) {
  const redis = await started(startRedis(program('redis-server')))
  const postgres = await started(
    startPostgres({ postgres: program('postgres'), initdb: program('initdb') }, ['-c', 'fsync=on']),
  )
  const upstreamPort = await freePort()
  const upstream = await started(
    startServer(
      { args: [pathOf('upstream.js')], port: upstreamPort, env: { PORT: String(upstreamPort) } },
      {
        method: 'tools/list',
        params: {},
        expect: '"tool_0007"',
      },
    ),
  )
  const up = `up: { url: "${upstream.origin}/mcp", era: modern, trustHints: true, per: shared }`
  const rules = `servers:\n  ${up}\n  ${server}\nlimits: ${limits}`
  const load = fork(pathOf('load.js'), { execArgv: [] })
  const single = await startGateway(rules, 'single.yaml', `audit: { store: sqlite, path: "${folder}/audit.db" }`)
  const engines = `{ postgres: "postgres://postgres@127.0.0.1:${postgres.port}/postgres", redis: "redis://127.0.0.1:${redis.port}" }`
  const replicas: ServerProcess[] = []
  for (let n = 1; n <= count; n++) {
    const stores = `stores: ${engines}\nreplica: { id: "\${REPLICA}" }`
    replicas.push(await startGateway(rules, 'replicas.yaml', stores, `replica-${n}`))
  }
  const stop = async (): Promise<void> => {
    load.kill()
    for (const each of running) await each.stop()
  }
  return { redis, postgres, upstream, load, single, replicas, stop }
}
