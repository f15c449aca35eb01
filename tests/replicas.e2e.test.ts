import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test'
import { ConfigError } from '@toolgate/core'
import { loadConfig, type ReadyBody, type ReplicasBody, type StartedRunBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { freePort, startRedis } from './support/own-server.ts'
import { ownPostgres } from './support/own-stores.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const HOST = 'host-key-of-the-runner'
const BOUND_MS = 2000
const CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toolgate'"

interface FileOptions {
  readonly policy?: string
  readonly replica?: string
  readonly stores?: string
  readonly limits?: string
}

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('replicas', () => {
    const postgres = ownPostgres(paths)
    const opened: TestGateway[] = []
    let folder: ReturnType<typeof tempFolder>

    const fileOf = ({
      policy = '[{ allow: ["*"] }]',
      replica = '',
      limits = '',
      stores = `postgres: "${postgres.url}"`,
    }: FileOptions = {}) => `
listen: { port: 0 }
drainMs: 250
servers: { own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
  - { key: ${HOST}, for: host, user: runner }
policy: ${policy}
audit: { store: memory }
stores: { ${stores} }
${replica}
${limits}
`
    const write = (name: string, options?: FileOptions) => {
      const file = join(folder.path, name)
      writeFileSync(file, fileOf(options))
      return file
    }
    const start = async (file: string) => {
      const gateway = await startTestGateway(loadConfig(file))
      opened.push(gateway)
      return gateway
    }
    const startTwo = async (options?: FileOptions) => {
      const file = write('toolgate.yaml', options)
      return [await start(file), await start(file)] as const
    }
    const startOther = (id: string) => start(write(`${id}.yaml`, { replica: `replica: { id: ${id} }` }))
    const call = async (gateway: Pick<TestGateway, 'mcpUrl'>, key: string = KEYS.viewer) => {
      const message = toMessage(MODERN, 'tools/call', { name: 'own__echo', arguments: { word: 'hello' } })
      const headers = { ...message.headers, authorization: `Bearer ${key}` }
      const answer = await send(gateway.mcpUrl, { headers, body: JSON.stringify(message.body) })
      return answer.status === 200 ? textOf(answer.json() as RpcAnswer) : String(answer.status)
    }
    const runs = async (gateway: Pick<TestGateway, 'mcpUrl'>, key?: string) =>
      (await call(gateway, key)).includes('hello')

    const replicasOf = async (gateway: TestGateway) =>
      ((await gateway.api('/api/replicas')).body as ReplicasBody).replicas
    const metricsOf = async ({ url }: TestGateway) =>
      (await send(`${url}/metrics`, { method: 'GET', headers: { authorization: `Bearer ${KEYS.console}` } })).text

    /** A replica in a process of its own, which is killed after the test. */
    const spawnReplica = async (t: TestContext, file: string, env: Readonly<Record<string, string>> = {}) => {
      const script = join(import.meta.dirname, 'support/run-replica.ts')
      const child = spawn(process.execPath, ['--conditions=toolgate-source', script, file], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ...env },
      })
      t.after(() => child.kill('SIGKILL'))
      const { url } = JSON.parse(String((await once(child.stdout, 'data'))[0])) as { url: string }
      return { child, url, mcpUrl: `${url}/mcp` }
    }

    beforeEach(async () => {
      await postgres.empty()
      folder = tempFolder()
    })
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((gateway) => gateway.close()))
      folder.remove()
    })

    it('refuse on all of them what one has halted, when the halt is answered, and go on when it is released', async () => {
      const [a, b] = await startTwo()
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
      const halted = await runCommand(a.url, 'halt', '--user', 'viewer', '--reason', 'leak')
      assert.equal(halted.code, 0, halted.err)
      assert.match(halted.out, /^In force on all 2 replicas\.$/m)
      assert.match(await call(b), /unavailable: leak/)
      await runCommand(b.url, 'release', '--user', 'viewer')
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
    })

    it('accept a key that was made by another, and no longer once it is revoked', async () => {
      const [a, b] = await startTwo()
      const key = (await runCommand(a.url, 'keys', 'create', '--user', 'viewer', '--id', 'second')).out.trim()
      assert.equal(await runs(b, key), true)
      assert.equal((await runCommand(b.url, 'keys', 'revoke', 'second')).code, 0)
      assert.deepEqual([await call(a, key), await call(b, key)], ['401', '401'])
    })

    it('share what a run has done, and accept its token nowhere once one has ended it', async () => {
      const [a, b] = await startTwo({ policy: `[{ deny: [{ match: "*", when: "'untrusted' in run.labels" }] }]` })
      const post = (body: object) => a.api('/api/runs', { key: HOST, method: 'POST', body })
      const started = async (body: object) => (await post(body)).body as StartedRunBody
      const root = await started({ user: 'viewer' })
      const [child, other] = [await started({ parent: root.id }), await started({ user: 'viewer' })]
      assert.equal(await runs(a, root.token), true)
      for (const { token } of [root, child]) assert.match(await call(b, token), /BLOCKED/)
      assert.equal(await runs(b, other.token), true)
      assert.equal((await b.api(`/api/runs/${root.id}`, { key: HOST, method: 'DELETE' })).status, 200)
      for (const gateway of [a, b])
        assert.deepEqual(await Promise.all([root, child].map(({ token }) => call(gateway, token))), ['401', '401'])
      assert.match(await call(a, other.token), /BLOCKED/)
    })

    it('spend an approval once: asked by one, approved through another', async () => {
      const [a, b] = await startTwo({ policy: '[{ allow: ["*"], ask: ["own:echo"] }]' })
      assert.match(await call(a), /[Ww]aiting for approval/)
      const [pending] = ((await b.api('/api/approvals')).body as { approvals: { id: string }[] }).approvals
      assert.equal(
        (await b.api(`/api/approvals/${pending?.id}`, { method: 'POST', body: { decision: 'approve' } })).status,
        200,
      )
      const answers = await Promise.all([a, b, a, b].map((gateway) => call(gateway)))
      assert.equal(answers.filter((text) => text.includes('hello')).length, 1, answers.join('\n'))
    })

    it('run what is published, and report a file that differs', async () => {
      const a = await start(write('a.yaml'))
      const b = await start(write('b.yaml', { policy: '[{ deny: ["*"], allow: ["*"] }]' }))
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
      assert.ok(b.log.some(({ message }) => /runs the published configuration .*: the file differs/.test(message)))
      const plain = await runCommand(b.url, 'reload')
      assert.match(plain.out, /nothing has changed[^]*the file differs/)
      assert.equal(await runs(b), true)
    })

    it('all switch to a file that one publishes, when that is answered; a broken file changes nothing', async () => {
      const [a, b] = await startTwo()
      const file = write('toolgate.yaml', { policy: '[{ allow: ["own:pid"] }]' })
      const planned = await runCommand(a.url, 'reload', '--publish', '--dry-run')
      assert.match(planned.out, /this would change[^]*viewer loses own:echo/)
      assert.equal(await runs(b), true)
      const published = await runCommand(a.url, 'reload', '--publish')
      assert.match(published.out, /^published [0-9a-f]{16}: it is in force on all replicas\nrevision 2\n/)
      assert.deepEqual([await runs(a), await runs(b)], [false, false])
      writeFileSync(file, 'policy: nonsense')
      const broken = await runCommand(b.url, 'reload', '--publish')
      assert.equal(broken.code === 0, false)
      assert.deepEqual([await runs(a), await runs(b)], [false, false])
    })

    it('all go back to an earlier policy when one does, and list the same revisions', async () => {
      const [a, b] = await startTwo()
      write('toolgate.yaml', { policy: '[{ allow: ["own:pid"] }]' })
      assert.equal((await runCommand(a.url, 'reload', '--publish')).code, 0)
      assert.deepEqual([await runs(a), await runs(b)], [false, false])
      const restored = await runCommand(b.url, 'policy', 'restore', '1')
      assert.match(restored.out, /^published [0-9a-f]{16}: it is in force on all replicas\n/)
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
      const [ofA, ofB] = await Promise.all([a, b].map(({ url }) => runCommand(url, 'policy')))
      assert.equal(ofA?.out, ofB?.out)
      assert.match(ofA?.out ?? '', /^3 .*\n2 .*\n1 /m)
    })

    it('publish what was previewed at any of them, and of two at the same time one', async () => {
      const policies = ['own:pid', 'own:echo'].map((deny) => `[{ allow: ["*"], deny: ["${deny}"] }]`)
      const files = ['a.yaml', 'b.yaml'].map((name) => write(name))
      const [a, b] = await Promise.all(files.map(start))
      assert.ok(a && b)
      const post = (gateway: TestGateway, body: object) =>
        gateway.api('/api/reload', { method: 'POST', body: { publish: true, ...body } })
      const previewOf = async (gateway: TestGateway) =>
        ((await post(gateway, { dryRun: true })).body as { preview: string }).preview
      for (const [place, name] of ['a.yaml', 'b.yaml'].entries()) write(name, { policy: policies[place] ?? '' })
      const [ofA, ofB] = [await previewOf(a), await previewOf(b)]
      assert.equal((await post(b, { preview: ofA })).status, 409)
      const answers = await Promise.all([post(a, { preview: ofA }), post(b, { preview: ofB })])
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409], JSON.stringify(answers))
      const isOfA = answers[0]?.status === 200
      assert.deepEqual([await runs(a), await runs(b)], [isOfA, isOfA])
      for (const name of ['a.yaml', 'b.yaml']) write(name)
      assert.equal((await post(b, { preview: await previewOf(a) })).status, 200)
    })

    it('publish only what every live replica can run, or what is forced', async (t) => {
      const file = write('toolgate.yaml')
      const a = await spawnReplica(t, file, { ONLY_HERE: 'own:pid' })
      const b = await startOther('eu-2')
      writeFileSync(file, fileOf({ policy: '[{ allow: ["${ONLY_HERE}"] }]' }))
      for (const more of [[], ['--dry-run']]) {
        const refused = await runCommand(a.url, 'reload', '--publish', ...more)
        assert.notEqual(refused.code, 0)
        assert.match(refused.err, /nothing was published\. eu-2 cannot run it: .*ONLY_HERE/s)
      }
      assert.deepEqual([await runs(a), await runs(b)], [true, true])
      const [kept] = await postgres.run("SELECT count(*) FROM toolgate.state WHERE key LIKE 'proposed:%'")
      assert.equal(Number(kept?.['count']), 0)
      const forced = await runCommand(a.url, 'reload', '--publish', '--force')
      assert.equal(forced.code, 0, forced.err)
      assert.match(forced.out, /published [0-9a-f]{16}[^]*eu-2 cannot run it: .*ONLY_HERE/)
      assert.equal(await runs(a), false)
      assert.doesNotMatch(await call(a), /cannot be confirmed/)
      await until(async () => /the rules cannot be confirmed/.test(await call(b)))
      const shown = await until(async () => {
        const { out } = await runCommand(a.url, 'replicas', 'list')
        return /eu-2 +refuses/.test(out) ? out : undefined
      })
      assert.match(shown, /eu-2 starts no call: it cannot apply the shared state \(.*ONLY_HERE/)
      await assert.rejects(startOther('eu-3'), {
        path: 'stores',
        problem: /^the published configuration [0-9a-f]{16} cannot be run here: .*ONLY_HERE/s,
      })
      assert.deepEqual(await postgres.run("SELECT id FROM toolgate.replicas WHERE id = 'eu-3'"), [])
    })

    it('have an id each: the second with one refuses to start, and leaves nothing behind', async () => {
      const file = write('toolgate.yaml', { replica: 'replica: { id: eu-1 }' })
      const first = await start(file)
      await assert.rejects(startTestGateway(loadConfig(file)), {
        path: 'replica.id',
        problem: 'a live replica has the id "eu-1" already',
      })
      assert.equal(await runs(first), true)
      await first.close()
      assert.equal(await runs(await start(file)), true)
    })

    it('name a database or a Redis that cannot be used at the start, and leave nothing open', async () => {
      const startWith = (stores: string) => startTestGateway(loadConfig(write('toolgate.yaml', { stores })))
      const { port } = new URL(postgres.url)
      const unused = await freePort()
      await assert.rejects(startWith(`postgres: "postgres://postgres:top-secret@127.0.0.1:${unused}/postgres"`), {
        path: 'stores.postgres',
        problem: `postgres://postgres@127.0.0.1:${unused}/postgres: nothing listens there`,
      })
      await assert.rejects(startWith(`postgres: "postgres://postgres@127.0.0.1:${port}/other"`), {
        path: 'stores.postgres',
        problem: `postgres://postgres@127.0.0.1:${port}/other: database "other" does not exist`,
      })
      await assert.rejects(
        startWith(`postgres: "${postgres.url}", redis: "redis://:top-secret@127.0.0.1:${unused}"`),
        (error) => {
          assert.ok(error instanceof ConfigError)
          assert.deepEqual([error.path, error.message.includes('top-secret')], ['stores.redis', false])
          return true
        },
      )
      await start(write('toolgate.yaml'))
      await postgres.run('UPDATE toolgate.schema_version SET version = 99')
      await assert.rejects(startTestGateway(loadConfig(write('toolgate.yaml'))), /schema toolgate has version 99/)
      await postgres.run('UPDATE toolgate.schema_version SET version = (SELECT 2)')
      const connections = async () => Number((await postgres.run(CONNECTIONS))[0]?.['count'])
      await Promise.all(opened.splice(0).map((gateway) => gateway.close()))
      await until(async () => (await connections()) === 0)
    })

    it('know a person who logged in at one of them, until they log out at another', async () => {
      const [a, b] = await startTwo()
      const post = (gateway: TestGateway, path: string, body: object, cookie = '') =>
        send(`${gateway.url}${path}`, {
          headers: { 'content-type': 'application/json', origin: gateway.url, cookie },
          body: JSON.stringify(body),
        })
      const login = await post(a, '/api/login', { key: KEYS.console })
      const cookie = String(login.headers['set-cookie']).split(';')[0] ?? ''
      const sessionAt = async (gateway: TestGateway) =>
        (await send(`${gateway.url}/api/session`, { method: 'GET', headers: { cookie } })).status
      assert.deepEqual([await sessionAt(a), await sessionAt(b)], [200, 200])
      assert.equal((await post(b, '/api/logout', {}, cookie)).status, 200)
      assert.deepEqual([await sessionAt(a), await sessionAt(b)], [401, 401])
    })

    it('count limits together', async () => {
      const [a, b] = await startTwo({ limits: 'limits: ["*:3/60"]' })
      const answers = await Promise.all([a, b, a, b, a, b].map((gateway) => call(gateway)))
      assert.equal(answers.filter((text) => text.includes('hello')).length, 3)
      assert.match(answers.join('\n'), /rate limited \(3\/60\)/)
    })

    it('start no call after a pause beyond the lease before they have asked, though the calls were there first', async (t) => {
      const file = write('toolgate.yaml')
      const a = await start(file)
      const paused = await spawnReplica(t, file)
      assert.equal(await runs(paused), true)
      paused.child.kill('SIGSTOP')
      const waiting = Array.from({ length: 5 }, () => call(paused))
      const halted = await runCommand(a.url, 'halt', '--user', 'viewer', '--reason', 'leak')
      assert.equal(halted.code, 0, halted.err)
      const { id } = (await replicasOf(a)).find(({ isLive }) => !isLive) ?? { id: '' }
      assert.ok(halted.out.includes(`Not confirmed by ${id}; in force there by `), halted.out)
      assert.match(halted.out, /by \d\d:\d\d:\d\dZ at the latest\.$/m)
      assert.match((await runCommand(a.url, 'replicas')).out, / lost /)
      paused.child.kill('SIGCONT')
      for (const text of await Promise.all(waiting))
        assert.match(text, /unavailable: (leak|the rules cannot be confirmed)/)
      await until(async () => /unavailable: leak/.test(await call(paused)))
      await runCommand(a.url, 'release', '--user', 'viewer')
      assert.equal(await runs(paused), true)
    })

    it('free the id of one that was killed once its lease has run out', async (t) => {
      const file = write('toolgate.yaml', { replica: 'replica: { id: eu-1 }' })
      const killed = await spawnReplica(t, file)
      assert.equal(await runs(killed), true)
      killed.child.kill('SIGKILL')
      assert.equal(await runs(await start(file)), true)
    })

    it('are listed, with what each has applied', async () => {
      const [a] = await startTwo()
      const other = await start(write('other.yaml', { replica: 'replica: { id: eu-3, url: "http://10.0.0.3:8787" }' }))
      const { self, replicas } = (await a.api('/api/replicas')).body as ReplicasBody
      assert.equal(replicas.length, 3)
      assert.deepEqual(
        replicas.filter(({ isSelf }) => isSelf).map(({ id }) => id),
        [self?.id],
      )
      assert.deepEqual(
        [self?.problem, self?.configuration.file === undefined, replicas.every(({ isLive }) => isLive)],
        [undefined, true, true],
      )
      assert.deepEqual(
        replicas.map(({ configuration, file }) => [configuration?.id, file !== undefined]),
        replicas.map(({ id }) => [self?.configuration.id, id === 'eu-3']),
      )
      assert.equal(replicas.find(({ id }) => id === 'eu-3')?.url, 'http://10.0.0.3:8787')
      const shown = await runCommand(other.url, 'replicas')
      assert.match(shown.out, /eu-3 \(asked\) +live/)
      assert.match(shown.out, /the file of eu-3 is another one \([0-9a-f]{16}\)/)
      assert.match(await metricsOf(other), /^toolgate_config_file_differs\{file="[0-9a-f]{16}"\} 1$/m)
      assert.match(await metricsOf(a), /^toolgate_config_published\{id="[0-9a-f]{16}"\} 1$/m)
    })

    it('refuse on a new timeline of the database until a person accepts it', async () => {
      const [a, b] = await startTwo()
      await postgres.run("UPDATE toolgate.replica_state SET timeline = '1/00000001'")
      await until(async () => !(await runs(a)) && !(await runs(b)))
      assert.match((await runCommand(b.url, 'replicas')).out, /starts no call: the database has a new timeline/)
      const late = await start(write('toolgate.yaml'))
      assert.equal(await runs(late), false)
      assert.equal((await a.api('/api/replicas/accept', { method: 'POST', body: { what: 'database' } })).status, 200)
      await until(async () => (await runs(a)) && (await runs(b)) && (await runs(late)))
    })

    it('start no call once the database is gone, and do within a second after it is back', async () => {
      const [a, b] = await startTwo()
      postgres.server.child.kill('SIGKILL')
      const [codeA, codeB] = await Promise.all(
        [a, b].map((gateway) =>
          until(async () => {
            const text = await call(gateway)
            return text.includes('hello') ? undefined : text
          }),
        ),
      )
      // A call that was already decided when the lease ended is not started either.
      const refused = /unavailable: the rules cannot be confirmed now|failed: this replica lost touch with the others/
      assert.match(codeA ?? '', refused)
      assert.match(codeB ?? '', refused)
      const ready = await a.api('/readyz')
      assert.equal(ready.status, 503)
      const { status, replica } = ready.body as ReadyBody
      assert.deepEqual([status, replica?.problem], ['refusing', 'silent'])
      assert.match(
        JSON.stringify(replica),
        /"reason":"the database does not answer \(.*\); it was last confirmed \d+ ms ago"/,
      )
      const unknown = JSON.parse((await send(`${a.url}/readyz`, { method: 'GET' })).text) as ReadyBody
      assert.deepEqual(Object.keys(unknown.replica ?? {}), ['id', 'problem'])
      assert.match(await metricsOf(a), /^toolgate_replica_starts_calls 0$/m)
      await postgres.server.restart()
      await until(async () => (await runs(a)) && (await runs(b)), BOUND_MS * 5)
      assert.equal((await a.api('/readyz')).status, 200)
    })
  })
})

withBinaries(['postgres', 'initdb', 'redis-server'], (paths) => {
  describe('replicas with Redis', () => {
    const postgres = ownPostgres(paths)
    const file = (url: string) => `
listen: { port: 0 }
drainMs: 250
servers: { own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy: [{ allow: ["*"] }]
limits: ["own:echo:3/3600"]
audit: { store: memory }
stores: { postgres: "${postgres.url}", redis: "${url}" }
`
    it('count limits together, refuse limited calls while Redis is silent, and count anew only when a person says so', async (t) => {
      const folder = tempFolder()
      t.after(() => folder.remove())
      const redis = await startRedis(paths['redis-server'])
      t.after(() => redis.stop())
      const name = join(folder.path, 'toolgate.yaml')
      writeFileSync(name, file(`redis://127.0.0.1:${redis.port}`))
      const [a, b] = [await startTestGateway(loadConfig(name)), await startTestGateway(loadConfig(name))]
      t.after(() => Promise.all([a.close(), b.close()]))
      const call = async (gateway: TestGateway, tool = 'own__echo') =>
        textOf(await gateway.call('viewer', MODERN, tool, { word: 'hello' }))
      const answers = await Promise.all([a, b, a, b, a].map((gateway) => call(gateway)))
      assert.equal(answers.filter((text) => text === 'hello').length, 3)
      redis.child.kill('SIGSTOP')
      assert.match(await call(a), /the gate cannot decide now/)
      assert.match(await call(b, 'own__pid'), /^\d+$/)
      await until(
        async () =>
          (await b.api('/readyz')).body &&
          JSON.stringify((await b.api('/readyz')).body).includes('Redis does not answer'),
      )
      redis.child.kill('SIGCONT')
      await until(async () => /rate limited/.test(await call(a)))
      await redis.restart()
      await until(async () => /Redis has lost its counts/.test((await runCommand(a.url, 'replicas')).out))
      assert.match(await call(b), /the gate cannot decide now/)
      await runCommand(a.url, 'replicas', 'accept', '--limits')
      await until(async () => (await call(b)) === 'hello')
    })
  })
})
