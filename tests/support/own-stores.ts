import { after, before, type TestContext } from 'node:test'
import { Client } from 'pg'
import { type OwnServer, startPostgres } from './own-server.ts'
import { openPostgresStores, type PostgresStores, type PostgresStoresOptions } from '@toolgate/stores/postgres'

export interface OwnPostgres {
  readonly server: OwnServer
  readonly url: string
  /** Opens stores that are closed when the test ends. */
  open(t: TestContext, options?: Partial<PostgresStoresOptions>): Promise<PostgresStores>
  /** Runs SQL beside the stores. */
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Drops the schema of the stores. */
  empty(): Promise<void>
}

/** Starts a Postgres for the tests of this `describe`, and stops it after them. */
export function ownPostgres(paths: { readonly postgres: string; readonly initdb: string }): OwnPostgres {
  let server: OwnServer | undefined
  const started = (): OwnServer => {
    if (server === undefined) throw new Error('Postgres was not started')
    return server
  }
  const url = (): string => `postgres://postgres@127.0.0.1:${started().port}/postgres`
  before(async () => {
    server = await startPostgres(paths)
  })
  after(() => server?.stop())

  async function run(sql: string) {
    const client = new Client(url())
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }

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
  }
}
