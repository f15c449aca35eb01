import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '@toolgate/gateway'
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
        for (const audit of [
          '{ path: a.db }',
          '{ mode: batched }',
          '{ retain: 9d }',
          '{ checkpoints: false }',
          '{ checkpoints: { path: a } }',
          '{ checkpoints: { everyRecords: 9 } }',
        ])
          assert.match(problemOf(audit), /for the store .*postgres/, audit)
        assert.match(problemOf('{ store: postgres }', ''), /without .*stores/)
      } finally {
        folder.remove()
      }
    })
  })
})
