import { fork } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { digits, median, printTable } from './lib.ts'
import {
  askChild,
  type BenchRequest,
  freePort,
  type ServerCommand,
  type ServerProcess,
  startServer,
} from './server-process.ts'

const CONCURRENCY = 16
const WARM_UP_CALLS = 4000
const ROUNDS = 9
const STARTS = 5
const KEY = 'bench-key-0123456789'
const BUDGET_CALL = '1.6 ×'
const BUDGET_LIST = '1.2 ×'
const BUDGET_RSS = '100 MB'
const BUDGET_START = '350 ms'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const cliPath = pathOf('../packages/cli/bin/toolgate.js')
const load = fork(pathOf('load.js'), { execArgv: [] })

/** One gateway to be measured: how it is started before an upstream, and how it is called. */
interface Contender {
  readonly name: string
  readonly command: (upstream: string) => Promise<ServerCommand>
  readonly call: BenchRequest
  readonly list: BenchRequest
}

const FLOOR: Contender = {
  name: 'floor: node:http + undici Pool.dispatch',
  async command(upstream) {
    const port = await freePort()
    const env = { PORT: String(port), UPSTREAM: upstream, LOG: join(folder, 'floor.log') }
    return { args: [pathOf('floor-gateway.js')], port, env }
  },
  call: callOf('tool_0007'),
  list: { method: 'tools/list', params: {}, expect: '"tool_0007"' },
}

const TOOLGATE = toolgateWith('toolgate: key, policy, limit, audit')
/** Calls that ask nobody must not pay for receivers, also not for one that is down. */
const NOTIFYING = toolgateWith(
  'toolgate with approvals.notify',
  'approvals: { notify: [{ url: "http://127.0.0.1:9/", format: json }] }',
)

function toolgateWith(name: string, more = ''): Contender {
  return {
    name,
    async command(upstream) {
      const port = await freePort()
      const config = join(folder, `toolgate-${port}.yaml`)
      writeFileSync(config, `${toConfig(upstream, join(folder, `audit-${port}.db`))}${more}\n`)
      const args = [cliPath, 'serve', '--config', config, '--port', String(port)]
      return { args, port }
    },
    call: { ...callOf('up__tool_0007'), key: KEY },
    list: { method: 'tools/list', params: {}, key: KEY, expect: '"up__tool_0007"' },
  }
}

function callOf(name: string): BenchRequest {
  const params = { name, arguments: { path: '/workspace/a.txt', head: 10 } }
  return { method: 'tools/call', name, params, expect: 'read /workspace/a.txt' }
}

function toConfig(upstream: string, auditPath: string): string {
  return `
servers:
  up: { url: "${upstream}/mcp", era: modern, trustHints: true }
callers:
  - { key: "${KEY}", user: vera, roles: [viewer] }
policy:
  - name: baseline
    deny:
      - { match: "hint:destructive", unless: "'admin' in caller.roles" }
      - { match: "*:*", input: "!within(input.path, '/workspace')" }
limits: [ "*:1000000/60" ]
audit: { store: sqlite, path: "${auditPath}" }
`
}

interface LoadResult {
  readonly ms: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly problem?: string
}

async function drive(server: ServerProcess, request: BenchRequest, calls: number): Promise<LoadResult> {
  const result = await askChild<LoadResult>(load, { origin: server.origin, request, calls, concurrency: CONCURRENCY })
  if (result.problem !== undefined) throw new Error(result.problem)
  return result
}

interface Round extends LoadResult {
  /** CPU of the gateway's process for one call. */
  readonly cpuUs: number
}

async function round(server: ServerProcess, request: BenchRequest, calls: number): Promise<Round> {
  const before = await server.usage()
  const waited = await drive(server, request, calls)
  const after = await server.usage()
  return { ...waited, cpuUs: (after.cpuUs - before.cpuUs) / calls }
}

interface Running {
  readonly server: ServerProcess
  readonly contender: Contender
}

/** Runs the contenders in turn, so that each pair of rounds has the same weather. */
async function compare(
  running: readonly Running[],
  kind: 'call' | 'list',
  calls: number,
): Promise<readonly (readonly Round[])[]> {
  const entrants = running.map(({ server, contender }) => ({ server, request: contender[kind], rounds: [] as Round[] }))
  for (const { server, request } of entrants) await drive(server, request, Math.min(WARM_UP_CALLS, calls * 2))
  for (let n = 0; n < ROUNDS; n++) {
    for (const { server, request, rounds } of entrants) rounds.push(await round(server, request, calls))
  }
  return entrants.map(({ rounds }) => rounds)
}

async function withUpstream<Result>(tools: number, use: (origin: string) => Promise<Result>): Promise<Result> {
  const port = await freePort()
  const env = { PORT: String(port), TOOLS: String(tools) }
  const upstream = await startServer({ args: [pathOf('upstream.js')], port, env }, FLOOR.list)
  try {
    return await use(upstream.origin)
  } finally {
    await upstream.stop()
  }
}

async function withServers<Result>(
  contenders: readonly Contender[],
  upstream: string,
  use: (running: readonly Running[]) => Promise<Result>,
): Promise<Result> {
  const running: Running[] = []
  try {
    for (const contender of contenders) {
      const server = await startServer(await contender.command(upstream), contender.call)
      running.push({ server, contender })
    }
    return await use(running)
  } finally {
    for (const { server } of running) await server.stop()
  }
}

async function printCosts(
  contenders: readonly Contender[],
  kind: 'call' | 'list',
  tools: number,
  calls: number,
): Promise<void> {
  const rounds = await withUpstream(tools, (upstream) =>
    withServers(contenders, upstream, (running) => compare(running, kind, calls)),
  )
  const floor = rounds[0] ?? []
  const title = kind === 'call' ? `tools/call, ${tools} tools` : `tools/list of ${tools} tools`
  printTable(
    `The gateway's CPU for one ${title} (${CONCURRENCY} at once, medians of ${ROUNDS} pairs of ${calls} calls)`,
    ['gateway', 'µs CPU', 'low - high', '× floor', 'budget', 'calls/s', 'p50 ms', 'p99 ms'],
    contenders.map(({ name }, i) => {
      const own = rounds[i] ?? []
      const cpus = own.map(({ cpuUs }) => cpuUs)
      const ratios = cpus.map((cpuUs, n) => cpuUs / (floor[n]?.cpuUs ?? Number.NaN))
      const of = (field: 'ms' | 'p50Ms' | 'p99Ms'): number => median(own.map((each) => each[field]))
      return [
        name,
        digits(median(cpus)),
        `${digits(Math.min(...cpus))} - ${digits(Math.max(...cpus))}`,
        digits(median(ratios)),
        i === 0 ? '' : kind === 'call' ? BUDGET_CALL : BUDGET_LIST,
        digits(calls / (of('ms') / 1000)),
        digits(of('p50Ms')),
        digits(of('p99Ms')),
      ]
    }),
  )
}

async function printStarts(contenders: readonly Contender[]): Promise<void> {
  const rows = await withUpstream(20, async (upstream) => {
    const starts = contenders.map(() => ({ ms: [] as number[], mb: [] as number[] }))
    for (let n = 0; n < STARTS; n++) {
      for (const [i, contender] of contenders.entries()) {
        const server = await startServer(await contender.command(upstream), contender.call)
        await delay(1000)
        starts[i]?.ms.push(server.startMs)
        starts[i]?.mb.push((await server.usage()).rssBytes / 1024 / 1024)
        await server.stop()
      }
    }
    return starts
  })
  printTable(
    `Memory when idle, and start to first answer (medians of ${STARTS} starts)`,
    ['gateway', 'MB resident', 'budget', 'ms to first answer', 'budget'],
    contenders.map(({ name }, i) => {
      const budgets = i === 0 ? ['', ''] : [BUDGET_RSS, BUDGET_START]
      return [
        name,
        digits(median(rows[i]?.mb ?? [])),
        budgets[0] ?? '',
        digits(median(rows[i]?.ms ?? [])),
        budgets[1] ?? '',
      ]
    }),
  )
}

try {
  const contenders = existsSync(cliPath) ? [FLOOR, TOOLGATE] : [FLOOR]
  await printCosts(existsSync(cliPath) ? [...contenders, NOTIFYING] : contenders, 'call', 20, 4000)
  await printCosts(contenders, 'list', 1000, 400)
  await printStarts(contenders)
} finally {
  load.kill()
  rmSync(folder, { recursive: true, force: true })
}
