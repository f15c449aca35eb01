import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type AuditRecord, createSealer } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'
import { killAfterLines } from '../../testing/kill-after-lines.ts'
import { scratchFolder } from '../../testing/scratch-folder.ts'
import type { AuditProblem } from './audit-problem.ts'
import { findChain } from './chain-store.ts'

const WRITER = fileURLToPath(new URL('../../testing/disk-writer.ts', import.meta.url))

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the audit of a replica that writes to its own disk first', () => {
    const postgres = ownPostgres(paths)

    async function openOne(t: TestContext, disk = scratchFolder(t)) {
      await postgres.empty()
      const stores = await postgres.open(t)
      const problems: (AuditProblem | undefined)[] = []
      const audit = await stores.openAudit({ replica: 'a', disk, onProblem: (problem) => problems.push(problem) })
      return { stores, audit, disk, problems }
    }

    async function recordsOf(audit: { exportRecords(): AsyncIterable<AuditRecord> }): Promise<AuditRecord[]> {
      const all: AuditRecord[] = []
      for await (const record of audit.exportRecords()) all.push(record)
      return all
    }

    /** Checks that every acknowledged call is there once, with one end, and that the chains verify. */
    async function checkAll(
      stores: Awaited<ReturnType<typeof openOne>>['stores'],
      records: readonly AuditRecord[],
      acknowledged: readonly string[],
    ) {
      const count = (event: string) => {
        const counts = new Map<string, number>()
        for (const record of records)
          if (record.event === event)
            counts.set(record.tool_call_id ?? '', (counts.get(record.tool_call_id ?? '') ?? 0) + 1)
        return counts
      }
      const [begun, done, abandoned] = [count('tool_call'), count('tool_result'), count('tool_abandoned')]
      assert.deepEqual(
        acknowledged.filter((id) => begun.get(id) !== 1),
        [],
      )
      assert.deepEqual(
        [...begun.keys()].filter((id) => (done.get(id) ?? 0) + (abandoned.get(id) ?? 0) !== 1),
        [],
      )
      const verdict = await stores.verifyAudit()
      assert.deepEqual(
        verdict.findings.filter(({ kind }) => kind !== 'unsigned'),
        [],
      )
    }

    it('signs its last records also where it finds another replica lost just then', async (t) => {
      const { stores, audit } = await openOne(t)
      const lost = await stores.openAudit({ replica: 'lost', log: { everyMs: 3_600_000 } })
      await lost.write(auditEntry({ tool_call_id: 'left open' }))
      await audit.write(auditEntry({ event: 'tool_result' }))
      await audit.sign()
      await postgres.run(`UPDATE toolgate.audit_chains SET renewed_at = '-infinity' WHERE replica = 'lost'`)
      await audit.close()
      const own = `incarnation = '${audit.chain.incarnation}'`
      const rows = await postgres.run(
        `SELECT leaf_status, leaf_seq = seq AS signed FROM toolgate.audit_chains WHERE ${own}`,
      )
      assert.deepEqual(rows, [{ leaf_status: 'left', signed: true }])
    })

    it('refuses calls once a record has waited for Postgres for a second, keeps how others ended, and goes on by itself', async (t) => {
      const { stores, audit, disk, problems } = await openOne(t)
      await audit.write(auditEntry({ tool_call_id: 'before' }))
      await audit.flush()
      const resume = postgres.pause(t)
      await audit.write(auditEntry({ tool_call_id: 'unshipped' }))
      while (problems.length === 0) await sleep(10)
      assert.equal(problems[0]?.code, 'unshipped')
      await assert.rejects(
        async () => audit.write(auditEntry()),
        (error: { code?: string; detail?: string }) => {
          assert.equal(error.code, 'audit_unavailable')
          assert.match(error.detail ?? '', /records of the last \d+ ms have not reached the database/)
          return true
        },
      )
      await audit.write(auditEntry({ event: 'tool_blocked', tool_call_id: 'refused', reason: 'audit_failed' }))
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'unshipped' }))
      assert.equal(audit.unshipped?.records, 3)
      const local = readFileSync(join(disk, readdirSync(disk).find((name) => name.endsWith('.jsonl')) ?? ''), 'utf8')
      for (const id of ['before', 'unshipped', 'refused']) assert.match(local, new RegExp(`"tool_call_id":"${id}"`))
      const backMs = performance.now()
      resume()
      while (problems.length === 1) await sleep(1)
      t.diagnostic(`calls went on ${Math.round(performance.now() - backMs)} ms after Postgres`)
      assert.deepEqual([problems[1], audit.problem], [undefined, undefined])
      await audit.write(auditEntry({ tool_call_id: 'after' }))
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'after' }))
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'before' }))
      const records = await recordsOf(audit)
      await audit.sign()
      await postgres.run('UPDATE toolgate.audit_chains SET local_seq = seq + 5')
      assert.equal((await stores.verifyAudit()).chains[0]?.unshipped, 5)
      assert.equal(records.filter(({ tool_call_id: id }) => id === 'refused').length, 1)
      await checkAll(stores, records, ['before', 'unshipped', 'after'])
      await audit.close()
      assert.deepEqual(
        readdirSync(disk).filter((name) => name.includes('jsonl')),
        [],
      )
    })

    /** Runs a replica until it is killed, and returns the calls that it acknowledged. */
    async function runUntilKilled(disk: string, name: string, kill: (child: ChildProcess) => void) {
      const args = ['--conditions=toolgate-source', WRITER, postgres.url, disk, name]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
      kill(child)
      const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
      assert.equal(signal, 'SIGKILL')
      // What follows the last line break was not fully said.
      return output.split('\n').slice(0, -1)
    }

    it('loses nothing acknowledged and ends each call once when the replica is killed at random steps', async (t) => {
      await postgres.empty()
      const [stores, disk] = [await postgres.open(t), scratchFolder(t)]
      const acknowledged: string[] = []
      for (let run = 0; run < 5; run++)
        acknowledged.push(
          ...(await runUntilKilled(disk, `run${run}`, (child) => killAfterLines(child, randomInt(1, 400)))),
        )
      const audit = await stores.openAudit({ replica: 'r', disk })
      // The calls are ended beside new ones.
      while (chainsIn(disk).length > 1) await sleep(10)
      await audit.sign()
      await checkAll(stores, await recordsOf(audit), acknowledged)
      let states: readonly string[] = ['new']
      while (states.includes('new')) {
        await audit.sign()
        states = (await stores.verifyAudit()).chains.map(({ state }) => state)
      }
      assert.deepEqual(states, [...Array.from({ length: 5 }, () => 'left'), 'live'])
    })

    it('loses nothing acknowledged when Postgres is killed, and then the replica before it has shipped the rest', async (t) => {
      await postgres.empty()
      const [stores, disk] = [await postgres.open(t), scratchFolder(t)]
      const acknowledged = await runUntilKilled(disk, 'one', (child) => {
        child.stdout?.once('data', () => {
          postgres.server.child.kill('SIGKILL')
          // Calls are refused then, and no more is acknowledged.
          let printed = 0
          child.stdout?.on('data', () => printed++)
          const look = (before: number) =>
            setTimeout(() => (printed > before ? look(printed) : child.kill('SIGKILL')), 300)
          look(-1)
        })
      })
      const [name = ''] = chainsIn(disk)
      assert.notEqual(name, '')
      appendFileSync(join(disk, name), '{"catalog_revision":1,"event":"tool_c')
      await postgres.server.restart()
      const open = async () => stores.openAudit({ replica: 'r', disk })
      let audit = await open().catch(() => undefined)
      while (audit === undefined)
        audit = await sleep(50)
          .then(open)
          .catch(() => undefined)
      while (chainsIn(disk).length > 1) await sleep(10)
      await audit.sign()
      await checkAll(stores, await recordsOf(audit), acknowledged)
    })

    it('refuses a folder that another replica uses, one of another database, and records that were changed', async (t) => {
      const { stores, audit, disk } = await openOne(t)
      await assert.rejects(
        async () => stores.openAudit({ replica: 'b', disk }),
        /disk: .*another process writes to it.*Each replica needs a folder of its own/,
      )
      await audit.close()
      const chain = join(disk, 'f6b0a1f2-6d8e-4a52-9e1c-0d1f5a3b7c11.jsonl')
      const sealer = createSealer()
      writeFileSync(chain, `${sealer.seal(auditEntry())}\n`)
      await assert.rejects(
        async () => stores.openAudit({ replica: 'b', disk }),
        /f6b0a1f2.* cannot be shipped: its records are of a chain that this database does not have/,
      )
      rmSync(chain)
      await runUntilKilled(disk, 'one', (child) => killAfterLines(child, 50))
      const [name = ''] = chainsIn(disk)
      const text = readFileSync(join(disk, name), 'utf8')
      await postgres.run('DELETE FROM toolgate.audit WHERE seq > 3')
      await postgres.run(`UPDATE toolgate.audit_chains SET seq = 3, tree = NULL,
        head = substring((SELECT record FROM toolgate.audit WHERE seq = 3 AND chain = id) FROM '"hash":"([0-9a-f]+)"') WHERE status = 'live'`)
      writeFileSync(join(disk, name), text.replace('"seq":5,', '"seq":5,"session_id":"other",'))
      await assert.rejects(
        async () => stores.openAudit({ replica: 'b', disk }),
        /cannot be shipped: record 5 does not continue the chain, or was changed/,
      )
      writeFileSync(join(disk, name), text)
      const again = await stores.openAudit({ replica: 'b', disk })
      await again.sign()
      assert.deepEqual((await stores.verifyAudit()).findings, [])
    })

    it('goes on over closed files, which it removes, and from the tree that the database keeps', async (t) => {
      const { stores, audit, disk } = await openOne(t)
      const write = async (count: number, detail: string) => {
        for (let i = 0; i < count; i += 500)
          await Promise.all(
            Array.from({ length: 500 }, async () => audit.write(auditEntry({ event: 'tool_blocked', detail }))),
          )
      }
      // Two files, and more than what lies between two trees.
      await write(24_000, 'y'.repeat(900))
      await audit.flush()
      assert.deepEqual(chainsIn(disk).length, 1)
      assert.ok(statSync(join(disk, chainsIn(disk)[0] ?? '')).size < 16_000_000)
      const chain = await findChain(stores.database, audit.chain.incarnation)
      assert.equal(chain?.tree.size, chain?.end.seq)
      const [row] = await postgres.run('SELECT root, tree FROM toolgate.audit_chains')
      assert.deepEqual([chain?.tree.root(), typeof row?.['tree']], [row?.['root'], 'string'])
      await audit.sign()
      assert.deepEqual((await stores.verifyAudit()).findings, [])
    })
  })
})

/** The files with records in a folder. */
function chainsIn(disk: string): readonly string[] {
  return readdirSync(disk).filter((name) => /\.jsonl(\.\d|$)/.test(name))
}
