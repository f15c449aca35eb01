// `npm run replicas [-- --patience 5]`: three gateways behind HAProxy, with Postgres and Redis, on this machine. It kills and pauses
// parts of it, and prints what was promised beside what was seen. Exit code 1: a promise did not hold. 2: a program is missing.
import { parseArgs } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { binary } from '../tests/support/binaries.ts'
import { PROGRAMS, type ReplicaSet, startHaproxy, startReplicaSet } from '../tests/support/replica-set.ts'
import { ACTS, AGENT_KEY, checkRecords, type Seen, type Story } from './replicas/promises.ts'

const PACKAGES: ReadonlyMap<string, string> = new Map([
  ['postgres', 'postgresql'],
  ['initdb', 'postgresql'],
  ['redis-server', 'redis-server'],
  ['haproxy', 'haproxy'],
])
const CLIENTS = 3
const INTERRUPTED = 130
const MODERN = '2026-07-28'

const { values } = parseArgs({ options: { patience: { type: 'string', default: '1' } } })
const patience = Number(values.patience)
if (!(patience >= 1)) fail('--patience must be a number from 1')
const paths = findPrograms()
const interrupted = new AbortController()
process.exitCode = await tell().catch((error: unknown) => {
  // What was under way has lost its servers.
  if (interrupted.signal.aborted) return INTERRUPTED
  throw error
})

async function tell(): Promise<number> {
  const startedMs = performance.now()
  const running: { stop(): Promise<void> }[] = []
  const cleanUp = async () => {
    for (const each of running.splice(0).toReversed()) await each.stop()
  }
  // What is still starting has a guard of its own: it ends with this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      interrupted.abort()
      void cleanUp().finally(() => process.exit(INTERRUPTED))
    })
  try {
    console.log('Starting Postgres, Redis, three gateways and HAProxy …')
    const set = await startReplicaSet(paths)
    running.push(set)
    const haproxy = await startHaproxy(paths.haproxy, set)
    running.push(haproxy)
    const story = await openStory(set)
    const rows: Seen[] = []
    const show = (seen: readonly Seen[]) => {
      for (const row of seen) console.log(toLine(row))
      rows.push(...seen)
    }
    for (const act of ACTS) show(await act(story))
    await Promise.all(set.replicas.map(({ server }) => server.end()))
    show(await checkRecords(story))
    const broken = rows.filter(({ held }) => !held).length
    const seconds = Math.round((performance.now() - startedMs) / 1000)
    console.log(`\n${rows.length - broken} of ${rows.length} promises held, in ${seconds} s`)
    return broken === 0 ? 0 : 1
  } finally {
    await cleanUp()
  }
}

async function openStory(set: ReplicaSet): Promise<Story> {
  const front = `http://127.0.0.1:${set.frontPort}`
  let n = 0
  const callers = await Promise.all(Array.from({ length: CLIENTS }, () => openClient(front)))
  return { set, front, callers, patience, next: () => ++n }
}

async function openClient(front: string) {
  const client = new Client({ name: 'story', version: '1' }, { versionNegotiation: { mode: { pin: MODERN } } })
  const requestInit = { headers: { authorization: `Bearer ${AGENT_KEY}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${front}/mcp`), { requestInit }))
  return async (tool: string, n: number): Promise<string> => {
    try {
      const { content } = await client.callTool({ name: `work__${tool}`, arguments: { n } })
      return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
    } catch (error) {
      return `no answer: ${String(error)}`
    }
  }
}

function toLine({ promise, seen, held }: Seen): string {
  return `${held ? '✔' : '✖'} ${promise}\n    ${seen}`
}

function findPrograms() {
  const names = [...PROGRAMS, 'haproxy'] as const
  const missing = names.filter((name) => binary(name) === undefined)
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((name) => PACKAGES.get(name)))].join(' ')
    fail(`not on this machine: ${missing.join(', ')}. On Debian: apt-get install ${packages}`)
  }
  return Object.fromEntries(names.map((name) => [name, binary(name)])) as Record<(typeof names)[number], string>
}

function fail(problem: string): never {
  console.error(`replicas: ${problem}`)
  process.exit(2)
}
