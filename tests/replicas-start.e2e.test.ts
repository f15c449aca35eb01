import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { before, beforeEach, describe, it, type TestContext } from 'node:test'
import { withBinaries } from './support/binaries.ts'
import { tempFolder, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { freePort } from './support/own-server.ts'
import { ownPostgres, ownRedis } from './support/own-stores.ts'
import { PROGRAMS, startReplicaSet } from './support/replica-set.ts'

const MAIN = path.join(import.meta.dirname, '../packages/cli/src/main.ts')

withBinaries(PROGRAMS, (paths) => {
  describe('toolgate serve with stores', () => {
    const postgres = ownPostgres(paths)
    const redis = ownRedis(paths['redis-server'], ['--requirepass', 's3cret', '--appendonly', 'yes'])
    const place = (port: number, database = 'postgres', login = 'vera') =>
      `postgres://${login}@127.0.0.1:${port}/${database}`
    before(async () => {
      await postgres.run("CREATE ROLE vera LOGIN SUPERUSER PASSWORD 's3cret'")
      const file = path.join(postgres.server.folder, 'data/pg_hba.conf')
      writeFileSync(file, `host all vera 127.0.0.1/32 scram-sha-256\n${readFileSync(file, 'utf8')}`)
      await postgres.run('SELECT pg_reload_conf()')
    })
    beforeEach(() => postgres.empty())

    /** Starts the command with these stores, in a folder of its own. */
    const serve = async (t: TestContext, stores: string, id = 'eu-1') => {
      const folder = tempFolder()
      t.after(() => folder.remove())
      const port = await freePort()
      const file = path.join(folder.path, 'toolgate.yaml')
      writeFileSync(
        file,
        `
listen: { port: ${port} }
servers: {}
callers: [{ key: ${KEYS.console}, for: console, user: owner, roles: [operator] }]
policy: [{ allow: ["*"] }]
stores: { ${stores} }
replica: { id: ${id} }
`,
      )
      const child = spawn(process.execPath, ['--conditions=toolgate-source', MAIN, 'serve', '--config', file], {
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      t.after(() => child.kill('SIGKILL'))
      const ended = Promise.all([once(child, 'exit'), readText(child.stderr)]).then(([[code], err]) => ({
        code: code as number,
        err,
      }))
      return { port, ended, isReady: () => isReady(port) }
    }
    const isReady = (port: number) =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    const connections = async () =>
      Number(
        (await postgres.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toolgate'"))[0]?.['count'],
      )

    /** Checks that the command ends with this problem, has never listened, and leaves nothing. */
    const checkFails = async (t: TestContext, stores: string, problem: string) => {
      const { ended, isReady: listens } = await serve(t, stores)
      const { code, err } = await ended
      assert.equal(code, 2, err)
      assert.ok(err.includes(problem), err)
      assert.doesNotMatch(err, /s3cret/)
      assert.equal(await listens(), false)
      await until(async () => (await connections()) === 0)
    }

    it('names a Postgres that cannot be used, and starts nothing', async (t) => {
      const { port } = postgres.server
      const unused = await freePort()
      const at = (login: string, database?: string, on = port) => `postgres: "${place(on, database, login)}"`
      await checkFails(t, 'postgres: "mysql://localhost/db"', 'stores.postgres')
      await checkFails(
        t,
        at('vera:s3cret', undefined, unused),
        `stores.postgres: ${place(unused)}: nothing listens there`,
      )
      await checkFails(t, at('vera:s3cret2'), `stores.postgres: ${place(port)}: the password is wrong`)
      await checkFails(
        t,
        at('vera:s3cret', 'other'),
        `stores.postgres: ${place(port, 'other')}: database "other" does not exist`,
      )
      await postgres.run('CREATE SCHEMA toolgate; CREATE TABLE toolgate.schema_version AS SELECT 99 AS version')
      await checkFails(t, at('vera:s3cret'), 'the schema toolgate has version 99; this program knows')
      await postgres.empty()
      await postgres.run('CREATE SCHEMA toolgate; CREATE TABLE toolgate.limit_uses ()')
      await checkFails(t, at('vera:s3cret'), 'relation "limit_uses" already exists')
    })

    it('names a Redis that cannot be used, and starts nothing', async (t) => {
      const unused = await freePort()
      const at = (url: string) =>
        `postgres: "${place(postgres.server.port, 'postgres', 'vera:s3cret')}", redis: "${url}"`
      const own = `127.0.0.1:${redis.server.port}`
      await checkFails(t, at('http://localhost'), 'stores.redis')
      await checkFails(
        t,
        at(`redis://:s3cret@127.0.0.1:${unused}`),
        `stores.redis: redis://127.0.0.1:${unused}: nothing listens there`,
      )
      await checkFails(t, at(`redis://:s3cret2@${own}`), `stores.redis: redis://${own}: the password is wrong`)
      await checkFails(t, at(`redis://${own}`), `stores.redis: redis://${own}: the password is wrong`)
      assert.deepEqual(await postgres.run('SELECT id FROM toolgate.replicas'), [])
    })

    it('refuses the id of a live replica, and takes it once that one has ended', async (t) => {
      const stores = `postgres: "${place(postgres.server.port, 'postgres', 'vera:s3cret')}"`
      const first = await serve(t, stores)
      await until(first.isReady)
      const { code, err } = await (await serve(t, stores)).ended
      assert.deepEqual([code, err.includes('replica.id: a live replica has the id "eu-1" already')], [2, true], err)
      assert.equal(await first.isReady(), true)
    })
  })

  describe('replicas that start at once on an empty database', () => {
    it('end with one configuration and one key that signs', { timeout: 300_000 }, async (t) => {
      const set = await startReplicaSet(paths, { count: 4, audit: '{ checkpoints: { everySeconds: 1 } }' })
      t.after(() => set.stop())
      assert.deepEqual(
        await Promise.all(set.replicas.map(({ url }, n) => set.call(url, 'note', n))),
        set.replicas.map(() => 'note ran'),
      )
      const [first] = set.replicas
      assert.ok(first)
      const { replicas } = (await set.api(first, '/api/replicas')).body as {
        replicas: { configuration: { id: string } }[]
      }
      assert.deepEqual([replicas.length, new Set(replicas.map(({ configuration }) => configuration.id)).size], [4, 1])
      // Each signs the log once: the next one takes over when the signer ends.
      for (const { server } of set.replicas) {
        await until(async () => (await set.readAudit()).verdict.checkpoints.count > 0)
        await server.end()
      }
      const { verdict, verifiers } = await set.readAudit()
      assert.deepEqual([verdict.status, verdict.findings, verifiers.length], ['ok', [], 1])
    })
  })
})
