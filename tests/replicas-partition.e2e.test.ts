import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import { loadConfig, type ReadyBody, type ReplicasBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { ownPostgres, ownRedis } from './support/own-stores.ts'
import { signalAll } from './support/processes.ts'
import { MODERN, textOf } from './support/rpc.ts'
import { startTcpProxy, type TcpProxy, type Weather } from './support/tcp-proxy.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const HOUR_MS = 3_600_000

withBinaries(['postgres', 'initdb', 'redis-server'], (paths) => {
  describe('replicas on a network that fails', () => {
    const postgres = ownPostgres(paths)
    const redis = ownRedis(paths['redis-server'], ['--appendonly', 'yes'])
    const opened: TestGateway[] = []
    let folder: ReturnType<typeof tempFolder>
    beforeEach(async () => {
      await postgres.empty()
      await redis.run('FLUSHALL')
      folder = tempFolder()
    })
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((gateway) => gateway.close()))
      folder.remove()
    })

    interface Through {
      readonly postgresPort?: number
      readonly redisPort?: number
      readonly wallMs?: () => number
    }
    /** Starts a replica, perhaps with proxies before its engines and with a wall clock of its own. */
    const start = async (id: string, through: Through = {}) => {
      const { postgresPort = postgres.server.port, redisPort = redis.server.port, wallMs } = through
      const file = join(folder.path, `${id}.yaml`)
      writeFileSync(
        file,
        `
listen: { port: 0 }
drainMs: 250
servers: { own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy: [{ allow: ["*"] }]
limits: ["own:pid:30/86400"]
audit: { store: memory }
stores: { postgres: "postgres://postgres@127.0.0.1:${postgresPort}/postgres", redis: "redis://127.0.0.1:${redisPort}" }
replica: { id: ${id} }
`,
      )
      const clock = wallMs && { monotonicMs: () => performance.now(), wallMs }
      const gateway = await startTestGateway(loadConfig(file), undefined, clock)
      opened.push(gateway)
      return gateway
    }
    const proxyTo = async (t: TestContext, port: number): Promise<TcpProxy> => {
      const proxy = await startTcpProxy(port)
      t.after(() => proxy.close())
      return proxy
    }
    const call = async (gateway: TestGateway, tool = 'own__echo') =>
      textOf(await gateway.call('viewer', MODERN, tool, { word: 'hello' }))
    const runs = async (gateway: TestGateway) => (await call(gateway)).includes('hello')
    const metricsOf = async ({ url }: TestGateway) =>
      (await send(`${url}/metrics`, { method: 'GET', headers: { authorization: `Bearer ${KEYS.console}` } })).text
    /** Takes a use of the limit. A Redis that is slow on a busy machine is asked again. */
    const take = (gateway: TestGateway) => until(async () => /^\d+$/.test(await call(gateway, 'own__pid')))
    const useUp = (gateway: TestGateway) => until(async () => /rate limited/.test(await call(gateway, 'own__pid')))
    const rowOf = async (gateway: TestGateway, id: string) =>
      ((await gateway.api('/api/replicas')).body as ReplicasBody).replicas.find((row) => row.id === id)

    /** Checks that a replica refuses for the silence of the database, and says so everywhere. */
    const checkRefuses = async (gateway: TestGateway) => {
      assert.match(await call(gateway), /unavailable: the rules cannot be confirmed now/)
      // The lease may lapse before the question is given up that should have renewed it.
      const ready = async () => {
        const { status, body } = await gateway.api('/readyz')
        return { status, replica: (body as ReadyBody).replica }
      }
      await until(async () => (await ready()).replica?.problem === 'silent')
      const { status, replica } = await ready()
      assert.equal(status, 503)
      assert.match(
        JSON.stringify(replica),
        /"reason":"the database does not answer \(.*\); it was last confirmed \d+ ms/,
      )
      assert.match(await metricsOf(gateway), /^toolgate_replica_starts_calls 0$/m)
    }

    for (const weather of ['silent', 'deaf', 'reset'] as const satisfies readonly Weather[])
      it(`start no call against a halt that the other one answered, while Postgres is ${weather} for one`, async (t) => {
        const proxy = await proxyTo(t, postgres.server.port)
        const [a, b] = [await start('a'), await start('b', { postgresPort: proxy.port })]
        assert.deepEqual([await runs(a), await runs(b)], [true, true])
        proxy.set(weather)
        const halted = await runCommand(a.url, 'halt', '--user', 'viewer', '--reason', 'leak')
        assert.equal(halted.code, 0, halted.err)
        for (let tries = 0; tries < 5; tries++) assert.equal(await runs(b), false)
        await checkRefuses(b)
        assert.equal((await rowOf(a, 'b'))?.isLive, false)
        proxy.set('fine')
        await until(async () => /unavailable: leak/.test(await call(b)))
        await runCommand(a.url, 'release', '--user', 'viewer')
        await until(() => runs(b))
        assert.equal((await rowOf(a, 'b'))?.isLive, true)
      })

    it('agree over a slow way to Postgres', async (t) => {
      const proxy = await proxyTo(t, postgres.server.port)
      const [a, b] = [await start('a'), await start('b', { postgresPort: proxy.port })]
      proxy.set('fine', 50)
      for (const [one, other] of [
        [a, b],
        [b, a],
      ] as const) {
        await until(() => runs(other))
        assert.equal((await runCommand(one.url, 'halt', '--user', 'viewer', '--reason', 'leak')).code, 0)
        assert.equal(await runs(other), false)
        await runCommand(one.url, 'release', '--user', 'viewer')
        await until(() => runs(other))
      }
    })

    it('start no call while Postgres stands still, each of its processes, and do when it goes on', async () => {
      const [a, b] = [await start('a'), await start('b')]
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
      const go = signalAll(postgres.server.child.pid ?? 0, 'SIGSTOP')
      try {
        await until(async () => !(await runs(a)) && !(await runs(b)))
        await checkRefuses(a)
        await checkRefuses(b)
      } finally {
        go('SIGCONT')
      }
      await until(async () => (await runs(a)) && (await runs(b)))
    })

    for (const weather of ['silent', 'deaf', 'reset'] as const satisfies readonly Weather[])
      it(`refuse limited calls, and no others, while Redis is ${weather} for one`, async (t) => {
        const proxy = await proxyTo(t, redis.server.port)
        const [a, b] = [await start('a'), await start('b', { redisPort: proxy.port })]
        await take(b)
        proxy.set(weather)
        const startedMs = performance.now()
        assert.match(await call(b, 'own__pid'), /the gate cannot decide now/)
        t.diagnostic(`refused after ${Math.round(performance.now() - startedMs)} ms; promised after 50 ms of silence`)
        assert.equal(await runs(b), true)
        await take(a)
        await until(async () => JSON.stringify((await b.api('/readyz')).body).includes('Redis does not answer'))
        assert.match(await metricsOf(b), /^toolgate_limits_refused 1$/m)
        proxy.set('fine')
        await take(b)
        await useUp(a)
        await useUp(b)
        await until(async () => /^toolgate_limits_refused 0$/m.test(await metricsOf(b)))
      })

    it('apply a halt, and grant no use of a limit again, where a clock is set back an hour and forth', async () => {
      let backMs = 0
      const [a, b] = [await start('a'), await start('b', { wallMs: () => Date.now() - backMs })]
      assert.equal(await runs(b), true)
      await useUp(b)
      for (const set of [HOUR_MS, 0]) {
        backMs = set
        const halted = await runCommand(a.url, 'halt', '--user', 'viewer', '--reason', 'leak')
        assert.equal(halted.code, 0, halted.err)
        assert.equal(await runs(b), false)
        await runCommand(a.url, 'release', '--user', 'viewer')
        await until(() => runs(b))
        assert.doesNotMatch(await call(b, 'own__pid'), /^\d+$/)
        await useUp(b)
      }
    })
  })
})
