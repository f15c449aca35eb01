import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { auditEntry } from '@toolgate/testing'
import { withBinaries } from './support/binaries.ts'
import { runCommand } from './support/command.ts'
import { tempFolder } from './support/gateway.ts'
import { buildGo, type GoProgram } from './support/go.ts'
import { ownPostgres } from './support/own-stores.ts'

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('proofs about the audit of replicas', () => {
    const postgres = ownPostgres(paths)
    const folder = tempFolder()
    const at = (name: string): string => join(folder.path, name)
    const write = (name: string, text: string): string => {
      writeFileSync(at(name), text)
      return at(name)
    }
    const run = (...args: readonly string[]) => runCommand('http://127.0.0.1:1', 'audit', ...args)
    let config = ''
    let keys = ''
    let old = ''

    /** Two replicas with some 40 records each. `old` is a checkpoint in between. */
    before(async () => {
      await postgres.empty()
      config = write(
        'toolgate.yaml',
        `servers: {}\npolicy: [{ allow: ["*"] }]\nstores: { postgres: "${postgres.url}" }\n`,
      )
      const closing: (() => unknown)[] = []
      const stores = await postgres.open({ after: (work) => void closing.push(work) })
      const audits = [await stores.openAudit({ replica: 'a' }), await stores.openAudit({ replica: 'b' })]
      for (let i = 0; i < 40; i++) {
        await Promise.all(
          audits.map((audit) =>
            audit.write(auditEntry({ event: 'tool_result', tool_call_id: `${audit.chain.replica}-${i}` })),
          ),
        )
        if (i % 6 === 5) await audits[0]?.sign()
        if (i === 17) old = write('old.note', await newestNote())
      }
      await audits[0]?.sign()
      const [log] = await postgres.run("SELECT array_to_string(verifiers, E'\\n') AS keys FROM toolgate.audit_log")
      keys = write('log.pub', `${String(log?.['keys'])}\n`)
      copyFileSync(keys, at('guide-log.pub'))
      copyFileSync(old, at('guide-old.note'))
      // These are not signed.
      await audits[1]?.write(auditEntry({ event: 'tool_result', tool_call_id: 'late' }))
      await postgres.run("UPDATE toolgate.audit_log SET signer = 'nobody', signer_until = 'infinity'")
      for (const work of closing) await work()
    })
    after(() => folder.remove())

    const newestNote = async (): Promise<string> => {
      const [row] = await postgres.run('SELECT note FROM toolgate.audit_notes ORDER BY size DESC LIMIT 1')
      return String(row?.['note'])
    }

    it('proves the records of a call and one record, and checks the proofs without a database', async () => {
      const proved = await run('prove', '--call', 'b-20', '--config', config)
      assert.deepEqual([proved.code, proved.err], [0, ''])
      assert.equal(proved.out.match(/^c2sp\.org\/tlog-proof@v1$/gm)?.length, 1)
      const proof = write('b-20.tlog-proof', proved.out)
      const good = await run('check-proof', proof, '--public-key', keys)
      assert.equal(good.code, 0)
      assert.match(good.out, /^holds {2}\{.*"tool_call_id":"b-20"/)
      const { records } = JSON.parse((await run('verify', '--config', config, '--json')).out) as { records: number }
      assert.ok(records > 80)
      const one = await run('prove', '--record', '30', '--config', config)
      assert.equal((await run('check-proof', write('one', one.out), '--public-key', keys)).code, 0)
      const forged = write('forged', proved.out.replace(/^index \d+/m, 'index 0'))
      const bad = await run('check-proof', forged, '--public-key', keys)
      assert.deepEqual([bad.code, bad.out], [1, 'does not hold: the leaf is not in the signed log\n'])
    })

    it('says what is not there, and what is not signed yet', async () => {
      const unknown = await run('prove', '--call', 'nobody', '--config', config)
      assert.deepEqual([unknown.code, unknown.out, unknown.err], [1, '', 'The audit has no such record.\n'])
      const late = await run('prove', '--call', 'late', '--config', config)
      assert.deepEqual([late.code, late.out], [1, ''])
      assert.match(late.err, /^No checkpoint has signed 1 record of this yet/)
      for (const args of [[], ['--call', 'a-1', '--record', '3']]) {
        const { code, err } = await run('prove', ...args, '--config', config)
        assert.deepEqual([code, /--call.* or --(record|from)/.test(err)], [2, true])
      }
    })

    it('proves that the log goes on from an earlier checkpoint', async () => {
      const proved = await run('prove', '--from', old, '--config', config)
      assert.equal(proved.code, 0)
      assert.match(proved.out, /^old \d+\n/)
      const proof = write('growth', proved.out)
      assert.equal((await run('check-proof', proof, '--from', old, '--public-key', keys)).code, 0)
      const newest = write('newest.note', await newestNote())
      const other = await run('check-proof', proof, '--from', newest, '--public-key', keys)
      assert.deepEqual([other.code, other.out.startsWith('does not hold: it is from ')], [1, true])
      assert.equal((await run('check-proof', proof, '--public-key', keys)).code, 2)
      const forged = write('forged.note', readFileSync(old, 'utf8').replace(/^\d+$/m, '7'))
      const refused = await run('prove', '--from', forged, '--config', config)
      assert.deepEqual([refused.code, /not signed by a key of this log/.test(refused.err)], [6, true])
    })

    it('exports the whole audit to a folder, which is verified and proves records without a database', async () => {
      const exported = at('exported')
      const { code, out } = await run('export', '--folder', exported, '--config', config)
      assert.deepEqual([code, out.endsWith(` records in ${exported}\n`)], [0, true])
      const verify = async (...args: readonly string[]) =>
        run('verify', '--offline', exported, '--public-key', keys, ...args)
      const good = await verify('--witness', old)
      assert.deepEqual([good.code, good.err], [0, ''])
      assert.match(good.out, /^ok {2}\d+ records in 2 chains\n/)
      assert.match(good.out, /\nThe witness has 1 checkpoint, the last over \d+ leaves\.\n$/)
      const proved = await run('prove', '--call', 'a-3', '--offline', exported)
      assert.equal((await run('check-proof', write('a-3', proved.out), '--public-key', keys)).code, 0)
      const leaves = join(exported, 'leaves.jsonl')
      writeFileSync(leaves, readFileSync(leaves, 'utf8').replace('"live"', '"left"'))
      const bad = await verify()
      assert.deepEqual([bad.code, /Leaves \d+ to \d+ of the log/.test(bad.out)], [6, true])
      assert.equal((await verify('--witness', at('nothing'))).code, 2)
      assert.equal((await run('export', '--folder', exported, '--config', config)).code, 2)
      assert.equal((await run('export', '--folder', at('part'), '--tool', 'x', '--config', config)).code, 2)
    })

    it('is proved by the commands of the guide', async () => {
      const guide =
        readFileSync(join(import.meta.dirname, '../docs/guide/audit-proofs.md'), 'utf8') +
        readFileSync(join(import.meta.dirname, '../docs/guide/audit-replicas.md'), 'utf8')
      const blocks = guide.matchAll(/(?:## Export|## Proofs)\n[^`]*```sh\n([^`]*)```/g)
      const commands = blocks.flatMap(([, block = '']) => block.split('\n').filter(Boolean)).toArray()
      assert.equal(commands.length, 6)
      for (const command of commands) {
        const [words = ''] = command.split('#')
        const args = words.trim().split(/\s+/).slice(2)
        const here = args.map((arg) => arg.replace(/^\.\//, `${at('guide')}-`).replace('call_7', 'b-7'))
        const needsFile = !args.includes('--offline') && args[0] !== 'check-proof'
        const { code, err } = await run(...here, ...(needsFile ? ['--config', config] : []))
        assert.deepEqual([code, err], [0, ''], command)
        // The guide gives the proof a name that one can read.
        if (args.includes('--call')) {
          const proofs = `${at('guide')}-proofs`
          for (const name of readdirSync(proofs)) renameSync(join(proofs, name), join(proofs, 'b-7.tlog-proof'))
        }
      }
    })

    it('keeps what is for one kind of audit from the other', async () => {
      const file = write('files.yaml', 'servers: {}\npolicy: [{ allow: ["*"] }]\naudit: { path: a.db }\n')
      for (const args of [['verify', '--witness', old], ['prove'], ['export', '--folder', at('files')]])
        assert.equal((await run(...args, '--config', file)).code, 2, args.join(' '))
      for (const args of [
        ['--signed', '3'],
        ['--checkpoints', old],
      ])
        assert.equal((await run('verify', ...args, '--config', config)).code, 2, args.join(' '))
    })

    withBinaries(['go'], ({ go }) => {
      describe('read by the Go packages sumdb/note and sumdb/tlog', () => {
        let program: GoProgram | undefined
        before(() => {
          program = buildGo(go, 'c2sp')
        })
        after(() => program?.remove())
        const check = (...files: readonly string[]) => {
          const [key = ''] = readFileSync(keys, 'utf8').split('\n')
          return spawnSync(program?.file ?? '', [key, ...files], { encoding: 'utf8' })
        }

        it('holds for every record of a call, from the record to the signed root', async () => {
          const out = at('proofs')
          for (const call of ['a-0', 'a-15', 'b-16', 'b-39'])
            assert.equal((await run('prove', '--call', call, '--config', config, '--out', out)).code, 0)
          const files = readdirSync(out).filter((name) => name.endsWith('.tlog-proof'))
          assert.equal(files.length, 4)
          for (const name of files) {
            const { status, stdout, stderr } = check(join(out, name))
            assert.deepEqual([status, stderr], [0, ''])
            assert.match(stdout, /"tool_call_id":"[ab]-\d+"/)
            const text = readFileSync(join(out, name), 'utf8')
            const step = /^index \d+\n(.*)$/m.exec(text)?.[1] ?? ''
            assert.equal(check(write('wrong', text.replace(step, Buffer.alloc(32).toString('base64')))).status, 1)
          }
        })

        it('holds for the growth of the log', async () => {
          const proof = write('growth-for-go', (await run('prove', '--from', old, '--config', config)).out)
          const { status, stdout, stderr } = check(proof, old)
          assert.deepEqual([status, stderr], [0, ''])
          assert.match(stdout, /^\d+ to \d+\n$/)
          const newest = write('newest-for-go', await newestNote())
          assert.equal(check(proof, newest).status, 1)
        })
      })
    })
  })
})
