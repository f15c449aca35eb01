import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { ConfigError } from '@toolgate/core'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { freePort } from '../../../../tests/support/own-server.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'
import { openPostgresStores, type PostgresStoresOptions } from './open-stores.ts'
import { checkServerSettings, SCHEMA_VERSION } from './schema.ts'

/** What openPostgresStores says of a URL. It never contains the password. */
async function problemOf(url: string, options: Partial<PostgresStoresOptions> = {}): Promise<string> {
  const error = await openPostgresStores({ url, ...options }).then(
    () => assert.fail('it was opened'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ConfigError)
  assert.doesNotMatch(JSON.stringify([error.message, error.detail, String(error.cause), error.stack]), /s3cret/)
  return error.message
}

describe('openPostgresStores', () => {
  it('refuses what is no URL of a Postgres, and a schema that is no plain name', async () => {
    for (const url of ['', 'localhost/db', 'mysql://localhost/db', 5 as unknown as string])
      assert.equal(
        await problemOf(url),
        'openPostgresStores.url: must be a URL such as postgres://user:password@host:5432/database',
      )
    for (const schema of ['', 'a b', 'a"; drop', 'A', 'x'.repeat(42)])
      assert.match(await problemOf('postgres://localhost/db', { schema }), /^openPostgresStores\.schema: must be/)
  })

  it('refuses counters that survive something else', async () => {
    const counters = { survives: 'nothing' } as unknown as { survives: 'disk' }
    assert.equal(
      await problemOf('postgres://localhost/db', { counters }),
      'openPostgresStores.counters.survives: must be "disk" or "process"',
    )
  })

  it('says where nothing listens, without the password', async () => {
    const port = await freePort()
    assert.equal(
      await problemOf(`postgres://vera:s3cret@127.0.0.1:${port}/toolgate?password=s3cret`),
      `openPostgresStores.url: postgres://vera@127.0.0.1:${port}/toolgate: nothing listens there`,
    )
    assert.match(await problemOf('postgres://vera:s3cret@no-such-host.invalid/toolgate'), /: the host is unknown$/)
  })

  it('refuses a server that is too old, has another encoding, or takes no writes', () => {
    const settings = { number: 150_004, version: '15.4', encoding: 'UTF8', read_only: 'off' }
    checkServerSettings(settings)
    for (const [wrong, problem] of [
      [{ number: 120_016, version: '12.16' }, 'the server has version 12.16; Toolgate needs 13 or later'],
      [{ encoding: 'SQL_ASCII' }, 'the database has the encoding SQL_ASCII; Toolgate needs UTF8'],
      [{ read_only: 'on' }, 'the server is read-only: a standby, or a role that may not write'],
    ] as const)
      assert.throws(() => checkServerSettings({ ...settings, ...wrong }), { name: 'ConfigError', message: problem })
  })
})

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('openPostgresStores with a server', () => {
    const postgres = ownPostgres(paths)
    const urlOf = (login: string, database = 'postgres') =>
      `postgres://${login}@127.0.0.1:${postgres.server.port}/${database}`
    before(async () => {
      await postgres.run("CREATE ROLE vera LOGIN PASSWORD 's3cret'; CREATE ROLE reader LOGIN PASSWORD 's3cret'")
      const file = join(postgres.server.folder, 'data/pg_hba.conf')
      writeFileSync(file, `host all vera,reader 127.0.0.1/32 scram-sha-256\n${readFileSync(file, 'utf8')}`)
      await postgres.run('SELECT pg_reload_conf()')
    })

    it('refuses a wrong password, database or user, and a user that may make no schema', async () => {
      assert.match(await problemOf(urlOf('vera:s3cret2')), /: the password is wrong$/)
      assert.match(await problemOf(urlOf('vera:s3cret', 'missing')), /: database "missing" does not exist$/)
      assert.match(await problemOf(urlOf('nobody')), /: role "nobody" does not exist$/)
      assert.match(await problemOf(urlOf('vera:s3cret')), /: permission denied for database postgres$/)
      assert.match(await problemOf(`${urlOf('vera:s3cret')}?sslmode=require`), /does not support SSL/)
    })

    it('uses a schema that was made for its user, or by others', async (t) => {
      await postgres.run('CREATE SCHEMA vera AUTHORIZATION vera')
      const { state } = await postgres.open(t, { url: urlOf('vera:s3cret'), schema: 'vera' })
      await state.set('a', 1)
      assert.equal(await state.get('a'), 1)
    })

    it('is made once by ten replicas that start at the same time', async (t) => {
      await postgres.empty()
      const all = await Promise.all(Array.from({ length: 10 }, () => postgres.open(t, { maxConnections: 2 })))
      await all[0]?.state.set('a', 1)
      for (const { state } of all) assert.equal(await state.get('a'), 1)
      assert.deepEqual(await postgres.run('SELECT version FROM toolgate.schema_version'), [{ version: SCHEMA_VERSION }])
    })

    it('refuses a schema of a later version, naming both, and leaves it as it is', async (t) => {
      await (await postgres.open(t)).state.set('a', 1)
      await postgres.run('UPDATE toolgate.schema_version SET version = 99')
      assert.match(
        await problemOf(postgres.url),
        new RegExp(`the schema toolgate has version 99; this program knows ${SCHEMA_VERSION}$`),
      )
      assert.deepEqual(await postgres.run('SELECT version FROM toolgate.schema_version'), [{ version: 99 }])
      await postgres.run(`UPDATE toolgate.schema_version SET version = ${SCHEMA_VERSION}`)
    })

    it('makes nothing where it cannot make all', async () => {
      await postgres.empty()
      await postgres.run('CREATE SCHEMA toolgate; CREATE TABLE toolgate.limit_uses ()')
      assert.match(await problemOf(postgres.url), /relation "limit_uses" already exists$/)
      const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'toolgate'"
      assert.deepEqual(await postgres.run(tables), [{ tablename: 'limit_uses' }])
    })

    it('shows its name to the people who watch the server', async (t) => {
      await postgres.empty()
      await (await postgres.open(t, { applicationName: 'gateway-7' })).state.get('a')
      const [row] = await postgres.run(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'gateway-7'",
      )
      assert.equal(row?.['n'], 1)
    })
  })
})
