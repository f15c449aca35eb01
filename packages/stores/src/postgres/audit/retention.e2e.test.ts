import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { auditEntry } from '@toolgate/testing'
import { tempFolder } from '../../../../../tests/support/gateway.ts'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'
import {
  exportSharedAudit,
  openExportedAudit,
  proveRecords,
  readNotes,
  verifySharedAudit,
} from '@toolgate/stores/verify'
import { killAfterLines } from '../../testing/kill-after-lines.ts'

const PRUNER = fileURLToPath(new URL('../../testing/shared-pruner.ts', import.meta.url))
const RETAIN = { retainMs: 1 }

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the retention of the audit that replicas share', () => {
    const postgres = ownPostgres(paths)

    /** Two replicas with 41 records each, all of them signed. */
    async function openTwo(t: TestContext) {
      await postgres.empty()
      const stores = await postgres.open(t)
      const [a, b] = [
        await stores.openAudit({ replica: 'a', ...RETAIN }),
        await stores.openAudit({ replica: 'b', ...RETAIN }),
      ]
      const call = async (id: string, on = a) => {
        await on.write(auditEntry({ tool_call_id: id }))
        await on.write(auditEntry({ event: 'tool_result', tool_call_id: id }))
      }
      for (let i = 0; i < 20; i++) await Promise.all([a, b].map(async (on) => call(`${on.chain.replica}${i}`, on)))
      await a.sign()
      // The records are older than what is kept then.
      await sleep(20)
      return { stores, a, b, call }
    }

    const seqsOf = async (replica: string) => {
      const rows = await postgres.run(`SELECT seq FROM toolgate.audit WHERE chain =
        (SELECT id FROM toolgate.audit_chains WHERE replica = '${replica}') ORDER BY seq`)
      return rows.map(({ seq }) => Number(seq))
    }
    const kindsOf = ({ findings }: { findings: readonly { kind: string; replica?: string; seq?: number }[] }) =>
      findings.map(({ kind, replica, seq }) => [kind, replica, seq])

    it('removes what checkpoints have signed, says so first, and what is left verifies and goes on', async (t) => {
      const { stores, a, b, call } = await openTwo(t)
      await call('unsigned')
      await a.prune()
      assert.deepEqual([await seqsOf('a'), await seqsOf('b')], [[42, 43, 44, 45], []])
      const [second, first] = await a.query({ event: 'audit_pruned' })
      assert.match(first?.detail ?? '', /^records 1 to 41 of the replica a, start .*, signed by the checkpoint of .*Z$/)
      assert.match(second?.detail ?? '', /of the replica b/)
      const verdict = await stores.verifyAudit()
      assert.deepEqual([verdict.findings, verdict.records], [[], 4])
      assert.deepEqual(
        verdict.chains.map(({ lastSeq, prunedSeq }) => [lastSeq, prunedSeq]),
        [
          [45, 41],
          [41, 41],
        ],
      )
      await call('later', b)
      await a.sign()
      await sleep(20)
      await Promise.all([a.prune(), b.prune()])
      // A round does not go on with the records of its own.
      assert.ok((await seqsOf('a')).length <= 4)
      await call('last', b)
      await b.close()
      await a.sign()
      const after = await stores.verifyAudit()
      assert.deepEqual(after.findings, [])
      assert.deepEqual((await a.query({ call: 'last' })).length, 2)
    })

    it('keeps a call that runs, and removes it when it has ended', async (t) => {
      const { stores, a, call } = await openTwo(t)
      await a.write(auditEntry({ tool_call_id: 'long' }))
      await call('beside')
      await a.sign()
      await sleep(20)
      await a.prune()
      assert.deepEqual((await seqsOf('a')).slice(0, 3), [42, 43, 44])
      await a.write(auditEntry({ event: 'tool_result', tool_call_id: 'long' }))
      await a.prune()
      assert.ok(!(await seqsOf('a')).includes(42))
      assert.match((await a.query({ event: 'audit_pruned', limit: 1 }))[0]?.detail ?? '', /do not end there: long$/)
      assert.deepEqual((await stores.verifyAudit()).findings, [])
    })

    const A = "chain = (SELECT id FROM toolgate.audit_chains WHERE replica = 'a')"
    for (const [what, sql, problem] of [
      [
        'was changed',
        `UPDATE toolgate.audit SET record = replace(record, 'files:', 'mail:') WHERE ${A} AND seq = 7`,
        /record 7 or one before it was changed/,
      ],
      ['is missing', `DELETE FROM toolgate.audit WHERE ${A} AND seq = 7`, /record 8 or one before it was changed/],
      ['is missing at the end', `DELETE FROM toolgate.audit WHERE ${A} AND seq > 39`, /records before 41 are missing/],
      [
        'has another leaf',
        `UPDATE toolgate.audit_leaves SET leaf = replace(leaf, '"seq":41', '"seq":40') WHERE ${A}`,
        /not those that a checkpoint has signed/,
      ],
    ] as const)
      it(`removes nothing of a chain where a record ${what}, and says so`, async (t) => {
        const { stores, a } = await openTwo(t)
        await postgres.run(sql)
        const before = await seqsOf('a')
        await assert.rejects(async () => a.prune(), problem)
        assert.deepEqual(await seqsOf('a'), before)
        assert.notEqual((await stores.verifyAudit()).status, 'ok')
      })

    it('does not hide what somebody else removes', async (t) => {
      const { stores, a, call } = await openTwo(t)
      await call('kept')
      await a.prune()
      await postgres.run(`DELETE FROM toolgate.audit WHERE ${A} AND seq = 42`)
      assert.deepEqual(kindsOf(await stores.verifyAudit())[0], ['missing', 'a', 42])
      await postgres.run(`UPDATE toolgate.audit_chains SET pruned_seq = 42 WHERE replica = 'a'`)
      assert.deepEqual(kindsOf(await stores.verifyAudit())[0], ['missing', 'a', 42])
    })

    it('does not hide the removal of everything that is left of a chain', async (t) => {
      const { stores, a, b, call } = await openTwo(t)
      await a.prune()
      await call('kept', b)
      await a.sign()
      const B = "SELECT id FROM toolgate.audit_chains WHERE replica = 'b'"
      await postgres.run(`DELETE FROM toolgate.audit WHERE chain = (${B})`)
      await postgres.run(`UPDATE toolgate.audit_chains SET seq = pruned_seq WHERE replica = 'b'`)
      assert.deepEqual(
        kindsOf(await stores.verifyAudit()).map(([kind, replica]) => [kind, replica]),
        [['truncated', 'b']],
      )
    })

    it('does not keep verification going where the checkpoints after a removal are gone', async (t) => {
      const { stores, a } = await openTwo(t)
      await a.prune()
      await postgres.run('DELETE FROM toolgate.audit_notes WHERE size > (SELECT min(size) FROM toolgate.audit_notes)')
      assert.notEqual((await stores.verifyAudit()).status, 'ok')
    })

    it('may run while the audit is exported, and an export says why it proves nothing', async (t) => {
      const { stores, a } = await openTwo(t)
      const folder = tempFolder()
      t.after(() => folder.remove())
      const exported = join(folder.path, 'exported')
      let isPruned = false
      const chains = async () => {
        if (!isPruned) await a.prune()
        isPruned = true
        return stores.auditSource.chains()
      }
      await exportSharedAudit({ ...stores.auditSource, chains }, exported)
      assert.deepEqual((await verifySharedAudit(openExportedAudit(exported))).findings, [])
      await a.write(auditEntry({ tool_call_id: 'kept' }))
      await a.sign()
      // An export without its newest checkpoints, whose further leaves say that records were removed.
      const cut = join(folder.path, 'cut')
      cpSync(exported, cut, { recursive: true })
      const notes = await Array.fromAsync(readNotes(join(cut, 'notes.txt')))
      writeFileSync(join(cut, 'notes.txt'), notes[0] ?? '')
      assert.equal((await verifySharedAudit(openExportedAudit(cut))).status, 'gap')
      const again = join(folder.path, 'again')
      await exportSharedAudit(stores.auditSource, again)
      await assert.rejects(proveRecords(openExportedAudit(again), { call: 'kept' }), /retention has removed hashes/)
    })

    it('may run while the audit is verified against its witness', async (t) => {
      const { stores, a } = await openTwo(t)
      const notes = (await Array.fromAsync(stores.auditSource.notes())).flat().map(({ note }) => note)
      let isPruned = false
      const chains = async () => {
        if (!isPruned) await a.prune()
        isPruned = true
        return stores.auditSource.chains()
      }
      async function* witness() {
        yield* notes
      }
      const verdict = await verifySharedAudit({ ...stores.auditSource, chains }, { witness: witness() })
      assert.deepEqual([verdict.findings, verdict.witness?.count], [[], 1])
    })

    it('trusts no leaf that the checkpoints have not signed', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const a = await stores.openAudit({ replica: 'a', retainMs: 3_600_000 })
      await a.write(auditEntry({ tool_call_id: 'young' }))
      await a.write(auditEntry({ event: 'tool_result', tool_call_id: 'young' }))
      await a.sign()
      const kept = await postgres.run('SELECT index, leaf FROM toolgate.audit_leaves')
      // Whoever can write to the database makes the leaves old, and would make them young again afterwards.
      await postgres.run(`UPDATE toolgate.audit_leaves SET leaf = regexp_replace(leaf, '"ts":"20', '"ts":"19')`)
      await assert.rejects(async () => a.prune(), /leaves of the log are not those that a checkpoint has signed/)
      for (const { index, leaf } of kept)
        await postgres.run(`UPDATE toolgate.audit_leaves SET leaf = '${String(leaf)}' WHERE index = ${String(index)}`)
      assert.deepEqual(await seqsOf('a'), [1, 2, 3])
      await a.prune()
      assert.deepEqual((await stores.verifyAudit()).findings, [])
    })

    it('goes on after it was killed at random steps, and nothing is broken', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      for (let run = 0; run < 4; run++) {
        const child = spawn(process.execPath, ['--conditions=toolgate-source', PRUNER, postgres.url], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        child.stdout.setEncoding('utf8')
        killAfterLines(child, randomInt(2, 8))
        await once(child, 'close')
        assert.deepEqual(
          (await stores.verifyAudit()).findings.filter(({ kind }) => kind !== 'unsigned'),
          [],
        )
      }
      const audit = await stores.openAudit({ replica: 'last', ...RETAIN, log: { everyMs: 100 } })
      const leftOver =
        'SELECT count(*) FROM toolgate.audit AS kept JOIN toolgate.audit_chains ON id = chain WHERE kept.seq <= pruned_seq'
      // The lease of the killed one must run out first.
      const pruned = async () =>
        (await audit.query({ event: 'audit_pruned' })).some(({ replica }) => replica === 'last')
      while (!(await pruned())) {
        await audit.sign()
        await sleep(20)
        await audit.prune()
      }
      assert.deepEqual(await postgres.run(leftOver), [{ count: '0' }])
      assert.deepEqual((await stores.verifyAudit()).findings, [])
      const [kept] = await postgres.run('SELECT count(*) FROM toolgate.audit')
      assert.ok(Number(kept?.['count']) < 1000)
    })
  })
})
