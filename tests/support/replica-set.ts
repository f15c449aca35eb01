import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type AuditRecord } from '@toolgate/core/audit'
import { openPostgresStores, type PostgresStores, type SharedVerdict, statement } from '@toolgate/stores/postgres'
import { sharedReader } from '../../packages/stores/src/postgres/audit/reader.ts'
import { send } from './http.ts'
import { KEYS } from './keys.ts'
import { freePort, type OwnServer, startOwnServer, startPostgres, startRedis } from './own-server.ts'
import { type RecordingServer, startRecordingServer } from './recording-server.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './rpc.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const MAIN = path.join(ROOT, 'packages/cli/src/main.ts')
const HAPROXY = path.join(ROOT, 'deploy/haproxy/haproxy.cfg')

export const PROGRAMS = ['postgres', 'initdb', 'redis-server'] as const
type Paths = Readonly<Record<(typeof PROGRAMS)[number], string>>

/** One `toolgate serve` in a process of its own. */
export interface Replica {
  readonly id: string
  readonly url: string
  readonly server: OwnServer
}

/** Postgres, Redis, replicas, and the one server that they all call, which writes down what it runs. */
export interface ReplicaSet {
  readonly postgres: OwnServer
  readonly redis: OwnServer
  readonly replicas: readonly Replica[]
  readonly witness: RecordingServer
  /** The file of all replicas. */
  readonly file: string
  /** The port that is kept for a load balancer, whose address is their `publicUrl`. */
  readonly frontPort: number
  /** Calls a tool of the witness at an address; the text of the answer, or what went wrong. */
  call(url: string, tool: string, n: number): Promise<string>
  /** Asks a replica's API as a person. */
  api(replica: Replica, path: string, method?: string, body?: object): Promise<{ status: number; body: unknown }>
  /** Every record of all replicas, in their one order, what verifying them says, and the keys that have signed. */
  readAudit(): Promise<{
    readonly records: readonly AuditRecord[]
    readonly verdict: SharedVerdict
    readonly verifiers: readonly string[]
  }>
  stop(): Promise<void>
}

export interface ReplicaSetOptions {
  readonly count?: number
  /** Lines of the configuration. */
  readonly policy?: string
  readonly limits?: string
  readonly audit?: string
  /** Tools of the witness. */
  readonly tools?: readonly string[]
}

const NOTE_SCHEMA = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }

/** Starts everything on this machine, on free ports and in folders of its own. Nothing stays when one of them does not start. */
export async function startReplicaSet(
  paths: Paths,
  { count = 3, tools = ['note', 'limited', 'pay'], ...rules }: ReplicaSetOptions = {},
): Promise<ReplicaSet> {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-replicas-'))
  const running: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const stop = async (): Promise<void> => {
    while (running.length > 0) await running.pop()?.()
  }
  const started = async <T extends { stop(): unknown }>(server: Promise<T>): Promise<T> => {
    const each = await server
    running.push(() => each.stop())
    return each
  }
  try {
    const offered = tools.map((name) => ({ name, inputSchema: NOTE_SCHEMA }))
    const witness = await startRecordingServer(offered, { era: 'modern' })
    running.push(() => witness.close())
    const [postgres, redis] = await Promise.all([
      started(startPostgres(paths)),
      // With `everysec`, Redis delays writes by up to 2 s while the disk is busy, and a kill loses what it has answered.
      started(startRedis(paths['redis-server'], ['--appendonly', 'yes', '--appendfsync', 'always'])),
    ])
    const file = path.join(folder, 'toolgate.yaml')
    const frontPort = await freePort()
    writeFileSync(file, fileOf({ postgres, redis, witness, frontPort }, rules))
    const replicaServers: OwnServer[] = []
    running.push(() => Promise.all(replicaServers.map((server) => server.stop())))
    const replicas = await Promise.all(
      Array.from({ length: count }, async (_, i): Promise<Replica> => {
        const id = `replica-${i + 1}`
        const server = await startReplica(folder, file, id)
        replicaServers.push(server)
        return { id, server, url: `http://127.0.0.1:${server.port}` }
      }),
    )
    const engines = { postgres, redis, witness, frontPort }
    return { ...engines, replicas, file, call, api, readAudit: () => readAudit(postgres), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Starts HAProxy with the file of `deploy/`, in front of the replicas. */
export function startHaproxy(command: string, set: Pick<ReplicaSet, 'replicas' | 'frontPort'>): Promise<OwnServer> {
  return startOwnServer({
    command,
    port: set.frontPort,
    prepare({ folder, port }) {
      const text = set.replicas.reduce(
        (edited, { id, server }) => edited.replace(`${id}:8787`, `127.0.0.1:${server.port}`),
        readFileSync(HAPROXY, 'utf8').replace('bind :8080', `bind 127.0.0.1:${port}`),
      )
      writeFileSync(path.join(folder, 'haproxy.cfg'), text)
    },
    args: ({ folder }) => ['-db', '-f', path.join(folder, 'haproxy.cfg')],
  })
}

type Engines = Pick<ReplicaSet, 'postgres' | 'redis' | 'witness' | 'frontPort'>

function fileOf(engines: Engines, { policy, limits, audit }: ReplicaSetOptions): string {
  const { postgres, redis, witness, frontPort } = engines
  return `
publicUrl: http://127.0.0.1:${frontPort}
listen: { proxies: [127.0.0.1] }
drainMs: 2500
servers: { work: { url: "${witness.url}", era: modern } }
callers:
  - { id: agent, key: ${KEYS.viewer}, user: agent, roles: [agent] }
  - { id: owner, key: ${KEYS.console}, for: console, user: owner, roles: [approver, operator] }
policy: ${policy ?? '[{ allow: ["*"], ask: ["work:pay"] }]'}
limits: ${limits ?? '["work:limited:30/3600"]'}
${audit === undefined ? '' : `audit: ${audit}`}
stores: { postgres: "postgres://postgres@127.0.0.1:${postgres.port}/postgres", redis: "redis://127.0.0.1:${redis.port}" }
replica: { id: "\${REPLICA}", url: "http://127.0.0.1:\${PORT}" }
`
}

async function startReplica(folder: string, file: string, id: string): Promise<OwnServer> {
  const home = path.join(folder, id)
  mkdirSync(home)
  const port = await freePort()
  return startOwnServer({
    port,
    command: process.execPath,
    args: () => ['--conditions=toolgate-source', MAIN, 'serve', '--config', file],
    env: { PORT: String(port), REPLICA: id, HOME: home },
    isReady: async () => (await statusOf(`http://127.0.0.1:${port}/readyz`)) === 200,
  })
}

async function statusOf(url: string): Promise<number | undefined> {
  return send(url, { method: 'GET' }).then(
    ({ status }) => status,
    () => undefined,
  )
}

async function call(url: string, tool: string, n: number): Promise<string> {
  const message = toMessage(MODERN, 'tools/call', { name: `work__${tool}`, arguments: { n } })
  const headers = { ...message.headers, authorization: `Bearer ${KEYS.viewer}` }
  try {
    const answer = await send(`${url}/mcp`, { headers, body: JSON.stringify(message.body) })
    return answer.status === 200 ? textOf(answer.json() as RpcAnswer) : `status ${answer.status}: ${answer.text}`
  } catch (error) {
    return `no answer: ${String(error)}`
  }
}

const api: ReplicaSet['api'] = async ({ url }, route, method = 'GET', body) => {
  const headers = { authorization: `Bearer ${KEYS.console}`, ...(body && { 'content-type': 'application/json' }) }
  const answer = await send(url + route, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  return { status: answer.status, body: answer.text === '' ? undefined : answer.json() }
}

const readAudit = (postgres: OwnServer) =>
  withStores(postgres, async ({ database, verifyAudit }) => {
    const records: AuditRecord[] = []
    for await (const record of sharedReader(database).exportRecords()) records.push(record)
    const [log] = await database.query(statement(`SELECT verifiers FROM ${database.schema}.audit_log`))
    return { records, verdict: await verifyAudit(), verifiers: (log?.['verifiers'] ?? []) as readonly string[] }
  })

async function withStores<T>({ port }: OwnServer, work: (stores: PostgresStores) => Promise<T>): Promise<T> {
  const stores = await openPostgresStores({ url: `postgres://postgres@127.0.0.1:${port}/postgres` })
  try {
    return await work(stores)
  } finally {
    await stores.close()
  }
}
