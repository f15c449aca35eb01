import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { binary } from '../tests/support/binaries.ts'
import { startPostgres } from '../tests/support/own-server.ts'
import { digits, median, printTable } from './lib.ts'

/**
 * The audit that replicas share: records a second into Postgres with 1, 2 and 4 processes, beside plain inserts of the same bytes.
 * Postgres waits for the disk, as it does in production, and shares the machine with the writers.
 */
const ROUNDS = 3
const ROUND_MS = 1500
const PROCESSES = [1, 2, 4]
const BUDGET = 20_000
const WRITER = fileURLToPath(new URL('audit-writer.ts', import.meta.url))

const MODES = {
  floor: 'plain inserts of 100 rows',
  shared: 'durable: shared',
  disk: 'durable: disk, until shipped',
} as const
type Mode = keyof typeof MODES

function program(name: string): string {
  const found = binary(name)
  if (found === undefined) throw new Error(`${name} is not on this machine`)
  return found
}

interface Figure {
  readonly perSecond: number
  readonly cpuUs: number
}

const postgres = await startPostgres({ postgres: program('postgres'), initdb: program('initdb') }, ['-c', 'fsync=on'])
const url = `postgres://postgres@127.0.0.1:${postgres.port}/postgres`
const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
let started = 0

async function empty(): Promise<void> {
  const client = new Client(url)
  await client.connect()
  await client.query(`DROP SCHEMA IF EXISTS toolgate CASCADE; CREATE SCHEMA toolgate;
    CREATE TABLE toolgate.floor (writer integer, seq bigint, at bigint, event text, record text, PRIMARY KEY (writer, seq));
    CHECKPOINT`)
  await client.end()
}

async function runRound(mode: Mode, processes: number): Promise<Figure> {
  await empty()
  const writers = Array.from({ length: processes }, () => {
    const name = `r${started++}`
    const args = [mode, url, name, join(folder, name), String(ROUND_MS)]
    return fork(WRITER, args, { execArgv: ['--conditions=toolgate-source'] })
  })
  await Promise.all(writers.map(async (writer) => once(writer, 'message')))
  const figures = await Promise.all(
    writers.map(async (writer) => {
      const answer = once(writer, 'message') as Promise<[Figure]>
      writer.send('go')
      return (await answer)[0]
    }),
  )
  await Promise.all(writers.map(async ({ exitCode }, i) => exitCode ?? once(writers[i] ?? process, 'exit')))
  const perSecond = figures.reduce((sum, figure) => sum + figure.perSecond, 0)
  return { perSecond, cpuUs: median(figures.map(({ cpuUs }) => cpuUs)) }
}

const cases = PROCESSES.flatMap((processes) => (Object.keys(MODES) as Mode[]).map((mode) => ({ mode, processes })))
const figures = new Map<string, Figure[]>()
const keyOf = (mode: Mode, processes: number) => `${mode} ${processes}`
try {
  for (let round = 0; round < ROUNDS; round++)
    for (const { mode, processes } of cases) {
      const key = keyOf(mode, processes)
      figures.set(key, [...(figures.get(key) ?? []), await runRound(mode, processes)])
    }
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}

const medianOf = (mode: Mode, processes: number, of: keyof Figure) =>
  median((figures.get(keyOf(mode, processes)) ?? []).map((figure) => figure[of]))
const isBound = (mode: Mode, processes: number) => mode !== 'floor' && processes === 4
printTable(
  'Audit records into Postgres, from several processes',
  ['processes', 'what', 'records/s', '× floor', 'writer µs CPU', 'budget'],
  cases.map(({ mode, processes }) => [
    String(processes),
    MODES[mode],
    Math.round(medianOf(mode, processes, 'perSecond')).toLocaleString('en'),
    digits(medianOf('floor', processes, 'perSecond') / medianOf(mode, processes, 'perSecond')),
    digits(medianOf(mode, processes, 'cpuUs')),
    isBound(mode, processes) ? `≥ ${BUDGET.toLocaleString('en')}` : '',
  ]),
)
if (cases.some(({ mode, processes }) => isBound(mode, processes) && medianOf(mode, processes, 'perSecond') < BUDGET))
  process.exitCode = 1
