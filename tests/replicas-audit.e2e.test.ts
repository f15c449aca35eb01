import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findAuditProblems, loadConfig, type ReadyBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { ownPostgres } from './support/own-stores.ts'
import { MODERN, textOf } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the audit of gateways that share stores', () => {
    const postgres = ownPostgres(paths)

    it('is one by default: each replica reads what all have recorded, and it verifies until someone changes it', async (t) => {
      const folder = tempFolder()
      t.after(() => folder.remove())
      const file = join(folder.path, 'toolgate.yaml')
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
audit: { checkpoints: { everySeconds: 1 } }
stores: { postgres: "${postgres.url}" }
`,
      )
      const config = loadConfig(file)
      assert.equal(config.audit.store, 'postgres')
      const [a, b] = [await startTestGateway(config), await startTestGateway(config)]
      for (const gateway of [a, b, a])
        assert.equal(textOf(await gateway.call('viewer', MODERN, 'own__echo', { word: 'hello' })), 'hello')
      const seen = await Promise.all(
        [a, b].map(async ({ url }) => {
          const { out } = await runCommand(url, 'audit', 'query', '--event', 'tool_result', '--json')
          return (JSON.parse(out) as { records: { replica: string; seq: number }[] }).records
        }),
      )
      assert.deepEqual(seen[0], seen[1])
      assert.equal(seen[0]?.length, 3)
      assert.equal(new Set(seen[0]?.map(({ replica }) => replica)).size, 2)
      await Promise.all([a.close(), b.close()])
      const verify = async () => runCommand(a.url, 'audit', 'verify', '--config', file)
      const good = await verify()
      assert.deepEqual([good.code, good.err], [0, ''])
      assert.match(good.out, /^ok .* in 2 chains/)
      await postgres.run(
        "DELETE FROM toolgate.audit WHERE event = 'tool_result' AND seq = (SELECT max(seq) FROM toolgate.audit WHERE event = 'tool_result')",
      )
      const bad = await verify()
      assert.equal(bad.code, 8)
      assert.match(bad.out, /Replica .*, start .*: Record \d+ is missing/)
    })

    for (const [audit, code, reason] of [
      ['{ durable: disk, path: local }', 'unshipped', /have not reached the database/],
      ['{ durable: shared }', 'silent', /the database does not answer/],
    ] as const)
      it(`refuses calls, says why and goes on by itself where Postgres is paused: ${audit}`, async (t) => {
        const folder = tempFolder()
        t.after(() => folder.remove())
        const file = join(folder.path, 'toolgate.yaml')
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
audit: ${audit}
stores: { postgres: "${postgres.url}" }
`,
        )
        await postgres.empty()
        const config = loadConfig(file)
        const gateway = await startTestGateway(config)
        t.after(() => gateway.close())
        if (code === 'unshipped')
          await assert.rejects(
            async () => startTestGateway(config),
            /audit\.path: .*local cannot be used: another process writes to it/,
          )
        const say = async () => textOf(await gateway.call('viewer', MODERN, 'own__echo', { word: 'hello' }))
        assert.equal(await say(), 'hello')
        const resume = postgres.pause(t)
        const ready = async () =>
          (
            await fetch(`${gateway.url}/readyz`, { headers: { authorization: `Bearer ${KEYS.console}` } })
          ).json() as Promise<ReadyBody>
        // The lease is still held when the disk is the first to refuse, or it is not: both refuse.
        let body = await ready()
        for (; body.audit === undefined; body = await ready()) await say()
        assert.equal(body.status, 'refusing')
        assert.equal(body.audit.code, code)
        assert.match(body.audit.message ?? '', reason)
        assert.notEqual(await say(), 'hello')
        const metrics = await (
          await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${KEYS.console}` } })
        ).text()
        assert.ok(metrics.includes(`toolgate_audit_refuses_calls{reason="${code}"} 1`))
        if (code === 'unshipped') assert.match(metrics, /toolgate_audit_unshipped_records [1-9]/)
        const bare = (await (await fetch(`${gateway.url}/readyz`)).json()) as ReadyBody
        assert.deepEqual(bare.audit, { code })
        const backMs = performance.now()
        resume()
        while ((await ready()).status !== 'ready') await sleep(5)
        t.diagnostic(`ready ${Math.round(performance.now() - backMs)} ms after Postgres`)
        assert.equal(await say(), 'hello')
        const said = gateway.log.map(({ message }) => message)
        assert.ok(
          said.indexOf('calls are recorded again') > said.indexOf('calls are refused, as they cannot be recorded'),
        )
        const { out } = await runCommand(gateway.url, 'audit', 'query', '--event', 'tool_call', '--json')
        assert.equal((JSON.parse(out) as { records: unknown[] }).records.length >= 2, true)
        await gateway.close()
        assert.equal((await runCommand(gateway.url, 'audit', 'verify', '--config', file)).code, 0)
      })

    it('says at the start that its signing key is in the database, unless there is a file', async () => {
      const config = { store: 'postgres', mode: 'required' } as const
      const [problem, ...others] = await findAuditProblems(config)
      assert.deepEqual([problem?.code, others], ['key_in_database', []])
      assert.match(problem?.message ?? '', /whoever can read the state there can sign another audit/)
      assert.deepEqual(await findAuditProblems({ ...config, checkpoints: { keyFile: '/run/log.key' } }), [])
    })

    it('is declared in full or not at all', () => {
      const folder = tempFolder()
      const file = join(folder.path, 'toolgate.yaml')
      const problemOf = (audit: string, stores = 'stores: { postgres: "postgres://a@127.0.0.1/b" }') => {
        writeFileSync(file, `servers: {}\npolicy: [{ allow: ["*"] }]\naudit: ${audit}\n${stores}\n`)
        try {
          loadConfig(file)
          return ''
        } catch (error) {
          return JSON.stringify(error, undefined, 1) + String(error)
        }
      }
      try {
        assert.equal(problemOf('{ preview: false }'), '')
        assert.equal(problemOf('{ witness: { file: a.notes } }'), '')
        assert.match(problemOf('{ witness: { file: a.notes } }', ''), /a witness for the store "sqlite"/)
        for (const audit of [
          '{ path: a.db }',
          '{ durable: shared, path: a }',
          '{ mode: batched }',
          '{ durable: disk, mode: required }',
          '{ checkpoints: false }',
          '{ checkpoints: { path: a } }',
          '{ checkpoints: { everyRecords: 9 } }',
        ])
          assert.match(problemOf(audit), /for the store .*postgres/, audit)
        assert.match(problemOf('{ witness: { url: "https://w.example" } }'), /a url without a key/)
        assert.match(problemOf('{ witness: { url: "w.example", key: "a+b+c" } }'), /expected http:/)
        assert.match(problemOf('{ store: postgres }', ''), /without .*stores/)
        for (const audit of ['{ durable: disk, path: a, retain: 9d }', '{ durable: shared, retain: 36h }'])
          assert.equal(problemOf(audit), '', audit)
        for (const store of ['sqlite', 'jsonl', 'memory'])
          assert.match(
            problemOf(`{ store: ${store}, durable: disk }`),
            /durable.*for the store .*expected stores.postgres/,
          )
        assert.match(problemOf('{ durable: disks }'), /durable/)
        assert.match(problemOf('{ durable: disk }', ''), /found .*disk.* for the store .*sqlite/)
      } finally {
        folder.remove()
      }
    })
  })
})
