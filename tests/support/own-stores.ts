import { readFileSync } from 'node:fs'
import { after, before } from 'node:test'
import { createClient } from '@redis/client'
import { openRedisCounters, type RedisCounters, type RedisCountersOptions } from '@toolgate/stores/redis'
import { Client } from 'pg'
import { type OwnServer, startPostgres, startRedis } from './own-server.ts'
import { openPostgresStores, type PostgresStores, type PostgresStoresOptions } from '@toolgate/stores/postgres'
import { prepareSchema } from '../../packages/stores/src/postgres/schema.ts'

/** A test or a suite, at whose end the stores are closed. */
interface Closes {
  after(work: () => unknown): void
}

export interface OwnPostgres {
  readonly server: OwnServer
  readonly url: string
  /** Opens stores that are closed when the test ends. */
  open(t: Closes, options?: Partial<PostgresStoresOptions>): Promise<PostgresStores>
  /** Runs SQL beside the stores. */
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Drops the schema of the stores. */
  empty(): Promise<void>
  /** Gives the tables of the stores their first rows again, in a fifth of the time. Only for tests that change no table. */
  clear(): Promise<void>
  /** Stops the server and its processes for connections, as a machine that does not answer. Returns what lets them go on. */
  pause(t: Closes): () => void
}

/** The tables of new stores, beside those of the tests. */
const FIRST = 'toolgate_first'
const CLEAR = `
DO $$
DECLARE
  one text;
BEGIN
  FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'toolgate'::regnamespace AND relkind = 'r' LOOP
    EXECUTE format('DELETE FROM toolgate.%I', one);
    EXECUTE format('INSERT INTO toolgate.%I OVERRIDING SYSTEM VALUE SELECT * FROM ${FIRST}.%I', one, one);
  END LOOP;
  FOR one IN SELECT relname FROM pg_class WHERE relnamespace = 'toolgate'::regnamespace AND relkind = 'S' LOOP
    PERFORM setval(format('toolgate.%I', one)::regclass, 1, false);
  END LOOP;
END
$$`

/** Starts a Postgres for the tests of this `describe`, and stops it after them. */
export function ownPostgres(paths: { readonly postgres: string; readonly initdb: string }): OwnPostgres {
  let server: OwnServer | undefined
  let isPrepared = false
  const started = (): OwnServer => {
    if (server === undefined) throw new Error('Postgres was not started')
    return server
  }
  const url = (): string => `postgres://postgres@127.0.0.1:${started().port}/postgres`
  before(async () => {
    server = await startPostgres(paths)
  })
  after(() => server?.stop())

  async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client(url())
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  const run = (sql: string) => withClient(async (client) => (await client.query<Record<string, unknown>>(sql)).rows)

  return {
    get server() {
      return started()
    },
    get url() {
      return url()
    },
    async open(t, options = {}) {
      const stores = await openPostgresStores({ url: url(), ...options })
      t.after(() => stores.close())
      return stores
    },
    run,
    empty: async () => void (await run('DROP SCHEMA IF EXISTS toolgate CASCADE')),
    async clear() {
      await withClient(async (client) => {
        if (!isPrepared) for (const schema of ['toolgate', FIRST]) await prepareSchema(client, schema)
        isPrepared = true
        await client.query(CLEAR)
      })
    },
    pause(t) {
      let isPaused = true
      const { pid = 0 } = started().child
      process.kill(pid, 'SIGSTOP')
      // It begins no more of them now.
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
      for (const child of children) process.kill(child, 'SIGSTOP')
      const resume = () => {
        if (isPaused) for (const each of [...children, pid]) process.kill(each, 'SIGCONT')
        isPaused = false
      }
      t.after(resume)
      return resume
    },
  }
}

export interface OwnRedis {
  readonly server: OwnServer
  readonly url: string
  /** Opens counters with keys of their own, which are closed when the test ends. They are open for limits unless `lost`. */
  open(t: Closes, options?: Partial<RedisCountersOptions>, lost?: 'lost'): Promise<RedisCounters>
  /** Runs a command beside the counters. */
  run(...command: readonly string[]): Promise<unknown>
}

/** A machine that is busy with other tests is slow, not silent. */
const SILENCE_MS = 30_000

/** Starts a Redis for the tests of this `describe`, and stops it after them. */
export function ownRedis(command: string, args: readonly string[] = []): OwnRedis {
  let server: OwnServer | undefined
  let prefixes = 0
  const started = (): OwnServer => {
    if (server === undefined) throw new Error('Redis was not started')
    return server
  }
  const url = (): string => `redis://127.0.0.1:${started().port}`
  before(async () => {
    server = await startRedis(command, args)
  })
  after(() => server?.stop())
  return {
    get server() {
      return started()
    },
    get url() {
      return url()
    },
    async open(t, options = {}, lost) {
      const opened = { url: url(), prefix: `p${prefixes++}`, silenceMs: SILENCE_MS, ...options }
      if (lost === undefined) await reopened({ ...opened, silenceMs: SILENCE_MS })
      const counters = await openRedisCounters(opened)
      t.after(() => counters.close())
      return counters
    },
    async run(...words) {
      const client = createClient({ url: url() })
      client.on('error', () => undefined)
      await client.connect()
      try {
        return await client.sendCommand([...words])
      } finally {
        client.destroy()
      }
    },
  }
}

/** Waits longer for its answer than a test may want to afterwards: a busy disk is no silence. */
async function reopened(options: RedisCountersOptions): Promise<void> {
  const counters = await openRedisCounters(options)
  try {
    await counters.reopen()
  } finally {
    counters.close()
  }
}
