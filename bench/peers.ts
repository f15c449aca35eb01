import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { digits, median, printTable } from './lib.ts'
import { type ClientKind, CLIENTS, type Contender, findContenders, FLOOR } from './peers/contenders.ts'
import { Program } from './peers/process.ts'
import { askChild, freePort } from './server-process.ts'

/**
 * Toolgate beside a floor, the glue that one writes with the SDKs, and another gateway, in one run: the same upstream, the same
 * clients, every answer checked. The gateway's CPU time is the kernel's, for all its processes.
 */
const { values } = parseArgs({
  options: {
    /** How many calls resident memory is measured after. */
    'memory-calls': { type: 'string', default: '10000' },
    /** Parts of names: `--only floor,toolgate`. The floor is always there, as the others are ratios to it. */
    only: { type: 'string' },
    phases: { type: 'string', default: 'calls,memory,start,list' },
    rounds: { type: 'string', default: '5' },
    calls: { type: 'string', default: '2000' },
  },
})
const MEMORY_CALLS = Number(values['memory-calls'])
const PHASES: ReadonlySet<string> = new Set(values.phases.split(','))
const ROUNDS = Number(values.rounds)
const CALLS = Number(values.calls)
const WARM_UP_CALLS = 4000
const COLD_CALLS = 500
const CONNECTIONS = [1, 16, 64] as const
const TOOLS = 20
const LISTS = 100
const STARTS = 5
const START_TIMEOUT_MS = 30_000

const folder = mkdtempSync(join(tmpdir(), 'toolgate-peers-'))
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const clients: ChildProcess = fork(pathOf('peers/client.js'), { execArgv: [] })

interface Asked {
  readonly kind: ClientKind
  readonly concurrency: number
  readonly what: 'call' | 'list'
  readonly calls: number
}

interface Taken {
  readonly ms: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the gateway, for one call. */
  readonly cpuUs: number
}

/** A gateway that answers. */
class Running {
  readonly contender: Contender
  readonly program: Program
  readonly #url: string
  startMs = Number.NaN

  constructor(contender: Contender, program: Program, port: number) {
    this.contender = contender
    this.program = program
    this.#url = `http://127.0.0.1:${port}/mcp`
  }

  static async start(contender: Contender, upstream: string): Promise<Running> {
    const port = await freePort()
    const { args, env = {} } = contender.start({ port, upstream, folder })
    const running = new Running(contender, new Program(args, env, folder), port)
    try {
      await running.#answers()
    } catch (error) {
      await running.stop()
      throw error
    }
    return running
  }

  async #answers(): Promise<void> {
    const { program } = this
    const first: Asked = { kind: this.contender.clients[0] ?? 'modern', concurrency: 1, what: 'call', calls: 1 }
    for (;;) {
      const problem = await this.ask(first).then(
        () => undefined,
        (error: unknown) => String(error),
      )
      this.startMs = performance.now() - program.startedMs
      if (problem === undefined) return
      program.check()
      if (this.startMs > START_TIMEOUT_MS) throw new Error(`${this.contender.name} does not answer: ${problem}`)
      await delay(5)
    }
  }

  async ask(asked: Asked): Promise<Taken> {
    const { key } = this.contender
    const before = this.program.cpuUs()
    const result = await askChild<Taken & { readonly problem?: string }>(clients, { ...asked, url: this.#url, key })
    if (result.problem !== undefined) throw new Error(`${this.contender.name}, ${asked.kind}: ${result.problem}`)
    return { ...result, cpuUs: (this.program.cpuUs() - before) / asked.calls }
  }

  async stop(): Promise<void> {
    await askChild(clients, { forget: this.#url })
    await this.program.stop()
  }
}

/** A gateway and one of its clients, with what each round took. */
interface Entrant {
  readonly running: Running
  readonly kind: ClientKind
  readonly rounds: Taken[]
}

async function withUpstream<Result>(tools: number, use: (origin: string) => Promise<Result>): Promise<Result> {
  const port = await freePort()
  const program = new Program([pathOf('upstream.js')], { PORT: String(port), TOOLS: String(tools) }, folder)
  try {
    return await use(`http://127.0.0.1:${port}`)
  } finally {
    await program.stop()
  }
}

/** Runs the gateways in turn, round by round, so that a noisy moment falls on all of them. */
async function warm(
  contenders: readonly Contender[],
  upstream: string,
  asked: Omit<Asked, 'kind'>,
): Promise<readonly Entrant[]> {
  const all: Running[] = []
  try {
    for (const contender of contenders) all.push(await Running.start(contender, upstream))
    const entrants: readonly Entrant[] = all.flatMap((running) =>
      running.contender.clients.map((kind) => ({ running, kind, rounds: [] })),
    )
    for (const { running, kind } of entrants) {
      if (asked.what === 'call') await running.ask({ kind, what: 'call', concurrency: 16, calls: WARM_UP_CALLS })
      else await running.ask({ ...asked, kind })
    }
    for (let n = 0; n < ROUNDS; n++)
      for (const { running, kind, rounds } of entrants) rounds.push(await running.ask({ ...asked, kind }))
    return entrants
  } finally {
    for (const running of all) await running.stop()
  }
}

/** The first calls of a process that has just started, over connections that are open. */
async function cold(
  contenders: readonly Contender[],
  upstream: string,
  concurrency: number,
): Promise<readonly Entrant[]> {
  const entrants: Entrant[] = []
  for (const contender of contenders) {
    for (const kind of contender.clients) {
      const rounds: Taken[] = []
      const running = await Running.start(contender, upstream)
      try {
        const asked = { kind, concurrency, what: 'call' } as const
        await running.ask({ ...asked, calls: 0 })
        rounds.push(await running.ask({ ...asked, calls: COLD_CALLS }))
      } finally {
        await running.stop()
      }
      entrants.push({ running, kind, rounds })
    }
  }
  return entrants
}

function printEntrants(title: string, calls: number, entrants: readonly Entrant[]): void {
  printTable(
    title,
    ['gateway', 'client', 'µs CPU', '× floor', 'calls/s', 'p50 ms', 'p99 ms'],
    entrants.map(({ running, kind, rounds }) => {
      const of = (field: keyof Taken): number => median(rounds.map((each) => each[field]))
      const floor = floorOf(kind, entrants)
      const ratios = rounds.map(({ cpuUs }, i) => cpuUs / (floor?.rounds[i]?.cpuUs ?? Number.NaN))
      return [
        running.contender.name,
        CLIENTS[kind],
        digits(of('cpuUs')),
        digits(median(ratios)),
        digits(calls / (of('ms') / 1000)),
        digits(of('p50Ms')),
        digits(of('p99Ms')),
      ]
    }),
  )
}

/** The floor with the same client. It has no streams of 2024-11-05, so sessions stand for them. */
function floorOf(kind: ClientKind, entrants: readonly Entrant[]): Entrant | undefined {
  const own = kind === 'sse' ? 'session' : kind
  return entrants.find((entrant) => entrant.running.contender === FLOOR && entrant.kind === own)
}

async function printMemory(contenders: readonly Contender[], upstream: string): Promise<void> {
  const rows: string[][] = []
  for (const contender of contenders) {
    for (const kind of contender.clients) {
      const running = await Running.start(contender, upstream)
      try {
        await delay(1000)
        const idle = running.program.rssMb()
        await running.ask({ kind, concurrency: 16, what: 'call', calls: MEMORY_CALLS })
        rows.push([contender.name, CLIENTS[kind], digits(idle), digits(running.program.rssMb())])
      } finally {
        await running.stop()
      }
    }
  }
  const after = `MB after ${MEMORY_CALLS.toLocaleString('en')} calls`
  printTable('Resident memory, 16 connections', ['gateway', 'client', 'MB idle', after], rows)
}

async function printStarts(contenders: readonly Contender[], upstream: string): Promise<void> {
  const starts = contenders.map((): { ms: number[]; cpuMs: number[] } => ({ ms: [], cpuMs: [] }))
  for (let n = 0; n < STARTS; n++) {
    for (const [i, contender] of contenders.entries()) {
      const running = await Running.start(contender, upstream)
      starts[i]?.ms.push(running.startMs)
      starts[i]?.cpuMs.push(running.program.cpuUs() / 1000)
      await running.stop()
    }
  }
  printTable(
    `Start to the first answered call (medians of ${STARTS})`,
    ['gateway', 'ms', 'ms CPU'],
    contenders.map(({ name }, i) => [
      name,
      digits(median(starts[i]?.ms ?? [])),
      digits(median(starts[i]?.cpuMs ?? [])),
    ]),
  )
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.once('exit', () => Program.killAll())
try {
  const names = values.only?.split(',')
  const contenders = findContenders().filter(
    (each) => each === FLOOR || !names || names.some((name) => each.name.includes(name)),
  )
  await withUpstream(TOOLS, async (upstream) => {
    for (const concurrency of PHASES.has('calls') ? CONNECTIONS : []) {
      const at = `${concurrency} ${concurrency === 1 ? 'connection' : 'connections'}`
      const calls = concurrency === 1 ? Math.ceil(CALLS / 4) : CALLS
      const warmed = await warm(contenders, upstream, { concurrency, what: 'call', calls })
      printEntrants(`tools/call, ${at}, after a warm-up (medians of ${ROUNDS} rounds of ${calls} calls)`, calls, warmed)
      const first = await cold(contenders, upstream, concurrency)
      printEntrants(`tools/call, ${at}, the first ${COLD_CALLS} calls of a process`, COLD_CALLS, first)
    }
    if (PHASES.has('memory')) await printMemory(contenders, upstream)
    if (PHASES.has('start')) await printStarts(contenders, upstream)
  })
  await withUpstream(1000, async (upstream) => {
    if (!PHASES.has('list')) return
    const entrants = await warm(contenders, upstream, { concurrency: 1, what: 'list', calls: LISTS })
    printEntrants(`tools/list of 1,000 tools, 1 connection (medians of ${ROUNDS} rounds of ${LISTS})`, LISTS, entrants)
  })
} finally {
  clients.kill()
  rmSync(folder, { recursive: true, force: true })
}
