import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseLeaf } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { verifySharedAudit } from '@toolgate/stores/verify'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'

const REPLICA = fileURLToPath(new URL('../../testing/audit-replica.ts', import.meta.url))
const EVERY_MS = 200
/** It signs when a test says so. */
const NEVER_MS = 3_600_000

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('who signs the log of replicas', () => {
    const postgres = ownPostgres(paths)

    /** Starts a replica in a process of its own, which has signed. */
    async function start(t: TestContext, replica: string) {
      const args = ['--conditions=toolgate-source', REPLICA, postgres.url, replica, String(EVERY_MS)]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      return child
    }

    const signer = async (): Promise<string> =>
      String((await postgres.run('SELECT signer FROM toolgate.audit_log'))[0]?.['signer'])
    const leaves = async () => {
      const rows = await postgres.run('SELECT leaf FROM toolgate.audit_leaves ORDER BY index')
      return rows.flatMap(({ leaf }) => parseLeaf(String(leaf)) ?? [])
    }

    it('is another replica once the one that signed was killed, without an alarm', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const killed = await start(t, 'a')
      assert.match(await signer(), /^a\//)
      const b = await stores.openAudit({ replica: 'b', log: { everyMs: EVERY_MS } })
      await b.write(auditEntry({ event: 'tool_result' }))
      const ended = once(killed, 'exit')
      killed.kill('SIGKILL')
      await ended
      assert.equal((await stores.verifyAudit()).status, 'ok', 'before another signs')
      while (!(await leaves()).some((leaf) => leaf.type === 'lost')) await sleep(20)
      assert.match(await signer(), /^b\//)
      await b.sign()
      const verdict = await stores.verifyAudit()
      assert.deepEqual([verdict.status, verdict.findings], ['ok', []])
      assert.deepEqual(
        verdict.chains.map(({ replica, state, lastSeq, signedSeq }) => [replica, state, lastSeq === signedSeq]),
        [
          ['a', 'lost', true],
          ['b', 'live', true],
        ],
      )
      const abandoned = await b.query({ event: 'tool_abandoned' })
      assert.deepEqual(
        abandoned.map(({ tool_call_id: id, reason }) => [id, reason]),
        [['a-open', 'outcome_unknown']],
      )
    })

    it('adds a leaf for each chain that joins, leaves or is lost', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const open = (replica: string) => stores.openAudit({ replica, log: { everyMs: NEVER_MS } })
      const [a, b] = [await open('a'), await open('b')]
      await open('c')
      await a.sign()
      await b.close()
      await postgres.run("UPDATE toolgate.audit_chains SET renewed_at = '-infinity' WHERE replica = 'c'")
      await a.sign()
      const said = (await leaves()).flatMap((leaf) => (leaf.type === 'signed' ? [] : [`${leaf.replica} ${leaf.type}`]))
      assert.deepEqual(said.toSorted(), ['a joined', 'b joined', 'b left', 'c joined', 'c lost'])
      assert.equal((await stores.verifyAudit()).status, 'ok')
    })

    it('is said when nobody signs: unsigned since when, and how many records', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const a = await stores.openAudit({ replica: 'a', log: { everyMs: NEVER_MS } })
      await a.write(auditEntry({ event: 'tool_result' }))
      await a.sign()
      const ts = (await stores.verifyAudit()).checkpoints.lastTs ?? ''
      const verifyAt = async (laterMs: number) =>
        verifySharedAudit({ ...stores.auditSource, nowMs: async () => Date.parse(ts) + laterMs })
      assert.equal((await verifyAt(120_000)).status, 'ok', 'every record is signed')
      for (let i = 0; i < 3; i++) await a.write(auditEntry({ event: 'tool_result' }))
      assert.equal((await verifyAt(30_000)).status, 'ok', 'the next checkpoint may be on its way')
      const verdict = await verifyAt(120_000)
      assert.equal(verdict.status, 'unsigned')
      assert.deepEqual(
        verdict.findings.map(({ text }) => text),
        [`No checkpoint was signed since ${ts}. 3 records are unsigned.`],
      )
    })
  })
})
