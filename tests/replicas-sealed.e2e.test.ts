import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { type AuditEvidenceBody, loadConfig, type ReadyBody, type ReplicasBody } from '@toolgate/gateway'
import { withBinaries } from './support/binaries.ts'
import { runCommandIn } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { ownPostgres } from './support/own-stores.ts'
import { MODERN, textOf } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const MARK = 'marker-81f0aa'
const key = randomBytes(32).toString('hex')
const env = { TOOLGATE_INPUT_KEY: key }
// A gateway reads the file again with the variables of its process.
process.env['TOOLGATE_INPUT_KEY'] = key

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('a sealed input in the audit of replicas', () => {
    const postgres = ownPostgres(paths)

    it('opens on any machine with the file and the key, and leaves who did in a chain that is no replica', async (t) => {
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
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver, operator] }
policy: [{ allow: ["*"] }]
audit: { preview: false, checkpoints: { everySeconds: 1 }, inputs: { keep: sealed, key: "\${TOOLGATE_INPUT_KEY}", keepFor: 7d } }
stores: { postgres: "${postgres.url}" }
`,
      )
      const config = loadConfig(file, { env })
      const gateways = [await startTestGateway(config), await startTestGateway(config)] as const
      t.after(() => Promise.all(gateways.map((gateway) => gateway.close())))
      for (const [i, gateway] of gateways.entries()) {
        const said = await gateway.call('viewer', MODERN, 'own__echo', { word: 'hello', text: `${MARK} ${i}` })
        assert.equal(textOf(said), 'hello')
      }
      const recordsOf = async ({ api }: TestGateway, event: string) =>
        ((await api(`/api/audit?event=${event}`)).body as { readonly records: readonly AuditRecord[] }).records
      const calls = (await recordsOf(gateways[0], 'tool_call')).toReversed()
      assert.equal(calls.length, 2)

      for (const [i, record] of calls.entries()) {
        const which = i === 0 ? (record.tool_call_id ?? '') : String(record.seq)
        const { code, out, err } = await runCommandIn(env, 'audit', 'open', which, '--config', file)
        assert.deepEqual([code, out, err], [0, `{"word":"hello","text":"${MARK} ${i}"}\n`, ''])
      }
      const wrong = { TOOLGATE_INPUT_KEY: 'f'.repeat(64) }
      const refused = await runCommandIn(wrong, 'audit', 'open', String(calls[0]?.seq), '--config', file, '--json')
      assert.equal(
        (JSON.parse(refused.err || refused.out) as { error: { code: string } }).error.code,
        'input_wrong_key',
      )

      // Both see it at once, and nothing looks like a replica that is gone.
      for (const gateway of gateways) {
        const opened = (await recordsOf(gateway, 'input_opened')).toReversed()
        assert.deepEqual(
          opened.map(({ user_id: user, tool, detail }) => [user, tool, detail]),
          calls.map(({ seq, tool_call_id: id }) => [userInfo().username, 'own:echo', `record ${seq}, call ${id}`]),
        )
        const { replicas } = (await gateway.api('/api/replicas')).body as ReplicasBody
        assert.equal(replicas.length, 2)
        assert.ok(
          replicas.every(({ isLive, refuses }) => isLive && refuses === undefined),
          JSON.stringify(replicas),
        )
        assert.equal(((await gateway.api('/readyz')).body as ReadyBody).status, 'ready')
        const evidence = (await gateway.api('/api/audit/evidence')).body as AuditEvidenceBody
        assert.deepEqual(
          evidence.problems.map(({ code }) => code),
          ['key_in_database'],
        )
      }
      const seen = { ...env, TOOLGATE_URL: gateways[0].url }
      const { out: queried } = await runCommandIn(seen, 'audit', 'query', '--event', 'input_opened')
      assert.match(queried, /^SEQ +REPLICA +DAY +TIME.*\n\d+ +toolgate-audit-open /)

      const verify = async () => runCommandIn(env, 'audit', 'verify', '--config', file)
      const meanwhile = await verify()
      assert.deepEqual([meanwhile.code, meanwhile.err], [0, ''], meanwhile.out)
      await Promise.all(gateways.map((gateway) => gateway.close()))
      assert.match((await verify()).out, /^ok .* in 4 chains/)
      // With no gateway, it signs its chain itself.
      assert.equal((await runCommandIn(env, 'audit', 'open', String(calls[1]?.seq), '--config', file)).code, 0)
      const last = await verify()
      assert.deepEqual([last.code, last.err], [0, ''])
      assert.match(last.out, /^ok .* in 5 chains/)
      assert.match(last.out, /^Sealed inputs: 2 present, 0 gone by retention\.$/m)
      assert.match(last.out, /^ {2}toolgate-audit-open \(no replica: the command, which opened inputs\), start /m)
      const exported = join(folder.path, 'evidence')
      const { out } = await runCommandIn(env, 'audit', 'export', '--folder', exported, '--config', file, '--json')
      assert.equal((JSON.parse(out) as { readonly inputs: number }).inputs, 2)
      const offline = await runCommandIn({}, 'audit', 'verify', '--offline', exported)
      assert.equal(offline.code, 0)
      assert.match(offline.out, /^Sealed inputs: 2 present, 0 gone by retention\.$/m)
      const states = await postgres.run('SELECT status, leaf_status FROM toolgate.audit_chains')
      assert.deepEqual(
        states,
        Array.from({ length: 5 }, () => ({ status: 'left', leaf_status: 'left' })),
      )
    })
  })
})
