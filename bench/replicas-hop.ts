import { fileURLToPath } from 'node:url'
import { digits, median, printTable } from './lib.ts'
import { KEY, startReplicas } from './replica-processes.ts'
import { askChild, type BenchRequest, type ServerProcess } from './server-process.ts'

/** What a call of a server on stdio with an instance for each user costs at the replica that has it, and at another one. */
const CALLS = Number(process.env['CALLS'] ?? 1000)
const ROUNDS = Number(process.env['ROUNDS'] ?? 7)
const WARM_UP_CALLS = 2000
const CALL: BenchRequest = {
  method: 'tools/call',
  name: 'mine__echo',
  params: { name: 'mine__echo', arguments: { word: 'here', path: '/workspace/a.txt' } },
  key: KEY,
  expect: 'here',
}

const server = fileURLToPath(new URL('../tests/support/reload-server.js', import.meta.url))
const mine = `mine: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}], per: user, tools: { echo: { annotations: { readOnlyHint: true } } } }`
// Redis would refuse limits on a busy machine, and they cost the same at both.
const { load, replicas, stop } = await startReplicas(2, { server: mine, limits: '[]' })

interface Round {
  readonly p50Ms: number
  readonly cpuUs: number
}

async function round(at: ServerProcess, concurrency: number, calls: number = CALLS): Promise<Round> {
  const cpu = async () => {
    const each = await Promise.all(replicas.map((replica) => replica.usage()))
    return each.reduce((sum, { cpuUs }) => sum + cpuUs, 0)
  }
  const before = await cpu()
  const order = { origins: [at.origin], request: CALL, calls, concurrency }
  const { p50Ms, problem } = await askChild<{ p50Ms: number; problem?: string }>(load, order)
  if (problem !== undefined) throw new Error(problem)
  return { p50Ms, cpuUs: ((await cpu()) - before) / calls }
}

try {
  // The first that is called becomes the home.
  for (const replica of replicas) await round(replica, 16, WARM_UP_CALLS)
  for (const concurrency of [1, 16]) {
    const entrants = ['at the home of the user', 'at another replica, forwarded'].map((name, i) => ({
      name,
      at: replicas[i] as ServerProcess,
      rounds: [] as Round[],
    }))
    for (let n = 0; n < ROUNDS; n++) for (const { at, rounds } of entrants) rounds.push(await round(at, concurrency))
    const of = (i: number, read: (each: Round) => number) => median(entrants[i]?.rounds.map(read) ?? [])
    printTable(
      `a call of a server on stdio with per: user, ${concurrency} at once (medians of ${ROUNDS} rounds of ${CALLS})`,
      ['where it arrives', 'p50 ms', '×', 'both gateways, µs CPU', '×'],
      entrants.map(({ name }, i) => [
        name,
        digits(of(i, ({ p50Ms }) => p50Ms)),
        digits(of(i, ({ p50Ms }) => p50Ms) / of(0, ({ p50Ms }) => p50Ms)),
        digits(of(i, ({ cpuUs }) => cpuUs)),
        digits(of(i, ({ cpuUs }) => cpuUs) / of(0, ({ cpuUs }) => cpuUs)),
      ]),
    )
  }
} finally {
  await stop()
}
