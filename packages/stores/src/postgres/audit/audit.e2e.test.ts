import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { auditEntry } from '@toolgate/testing'
import { Client } from 'pg'
import { withBinaries } from '../../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../../tests/support/own-stores.ts'
import { beginChain } from './chain-store.ts'
import { sharedReader } from './reader.ts'
import { newChain, SharedSink } from './shared-sink.ts'

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the audit of replicas', () => {
    const postgres = ownPostgres(paths)

    /** Two replicas with 20 records each, of which the first 12 or so are signed. */
    async function openTwo(t: TestContext) {
      await postgres.empty()
      const stores = await postgres.open(t)
      const [a, b] = [await stores.openAudit({ replica: 'a' }), await stores.openAudit({ replica: 'b' })]
      const write = async (count: number) => {
        for (let i = 0; i < count; i++)
          await Promise.all(
            [a, b].map(async (one) => one.write(auditEntry({ tool_call_id: `${one.chain.replica}-${i}` }))),
          )
      }
      await write(12)
      await a.sign()
      await write(8)
      await a.sign()
      return { stores, a, b, write }
    }

    const kindsOf = ({ findings }: { findings: readonly { kind: string; replica?: string; seq?: number }[] }) =>
      findings.map(({ kind, replica, seq }) => [kind, replica, seq])

    it('verifies while it is written, and after a replica has left, or was lost', async (t) => {
      const { stores, a, b, write } = await openTwo(t)
      const verdict = await stores.verifyAudit()
      assert.deepEqual([verdict.status, verdict.records, verdict.findings], ['ok', 42, []])
      assert.deepEqual(
        verdict.chains.map(({ replica, state, lastSeq, signedSeq }) => [replica, state, lastSeq, signedSeq]),
        [
          ['a', 'live', 21, 21],
          ['b', 'live', 21, 21],
        ],
      )
      await write(1)
      await b.close()
      await a.sign()
      const left = await stores.verifyAudit()
      assert.deepEqual([left.status, left.chains.map(({ state }) => state)], ['ok', ['live', 'left']])
      await postgres.run(
        "UPDATE toolgate.audit_chains SET renewed_at = renewed_at - interval '1 hour', status = 'live'",
      )
      await a.sign()
      const lost = await stores.verifyAudit()
      assert.deepEqual([lost.status, lost.chains.map(({ state }) => state)], ['ok', ['live', 'lost']])
    })

    const B = "chain = (SELECT id FROM toolgate.audit_chains WHERE replica = 'b')"
    const tamperings: readonly [string, string, string, readonly unknown[]][] = [
      [
        'an edited record',
        `UPDATE toolgate.audit SET record = replace(record, 'files:read_file', 'files:list_file') WHERE ${B} AND seq = 5`,
        'tampered',
        ['edited', 'b', 5],
      ],
      ['a removed record', `DELETE FROM toolgate.audit WHERE ${B} AND seq = 5`, 'gap', ['missing', 'b', 5]],
      [
        'a signed tail that was cut off',
        `DELETE FROM toolgate.audit WHERE ${B} AND seq > 15`,
        'gap',
        ['truncated', 'b', 16],
      ],
      [
        'reordered records',
        `UPDATE toolgate.audit SET seq = CASE seq WHEN 5 THEN 1006 ELSE 1005 END WHERE ${B} AND seq IN (5, 6);
         UPDATE toolgate.audit SET seq = seq - 1000 WHERE ${B} AND seq IN (1005, 1006)`,
        'tampered',
        ['reordered', 'b', 5],
      ],
      [
        'an event that counts do not see',
        `UPDATE toolgate.audit SET event = 'audit_opened' WHERE ${B} AND seq = 5`,
        'tampered',
        ['edited', 'b', 5],
      ],
      [
        'a chain that was removed',
        `DELETE FROM toolgate.audit WHERE ${B}; DELETE FROM toolgate.audit_chains WHERE replica = 'b'`,
        'gap',
        ['truncated', 'b', 1],
      ],
      [
        'a leaf that was edited',
        `UPDATE toolgate.audit_leaves SET leaf = replace(leaf, '"live"', '"lost"') WHERE leaf LIKE '%"live"%'`,
        'tampered',
        ['rewritten', undefined, undefined],
      ],
      [
        'a leaf that was removed',
        'DELETE FROM toolgate.audit_leaves WHERE index = 2',
        'gap',
        ['missing', undefined, undefined],
      ],
      [
        'a checkpoint that was edited',
        `UPDATE toolgate.audit_notes SET note = replace(note, 'toolgate', 'tollgate')`,
        'tampered',
        ['forged', undefined, undefined],
      ],
      [
        'a cut log',
        `DELETE FROM toolgate.audit_notes WHERE size = (SELECT max(size) FROM toolgate.audit_notes)`,
        'gap',
        ['truncated', undefined, undefined],
      ],
    ]
    for (const [what, sql, status, finding] of tamperings)
      it(`finds ${what}, and where`, async (t) => {
        const { stores } = await openTwo(t)
        await postgres.run(sql)
        const verdict = await stores.verifyAudit()
        assert.equal(verdict.status, status)
        assert.ok(
          kindsOf(verdict).some((found) => JSON.stringify(found) === JSON.stringify(finding)),
          JSON.stringify(verdict.findings, undefined, 1),
        )
      })

    it('finds a whole chain that was written again with right hashes', async (t) => {
      const { stores, b } = await openTwo(t)
      await postgres.run(`DELETE FROM toolgate.audit WHERE ${B}; DELETE FROM toolgate.audit_chains WHERE replica = 'b'`)
      const { sealer, tree } = newChain({})
      const store = await beginChain(stores.database, b.chain, { end: sealer, root: tree.root() })
      const forger = new SharedSink({ store, sealing: {}, sealer, tree, nowMs: Date.now, maxWaiting: 100 })
      for (let i = 0; i < 21; i++) await forger.write(auditEntry())
      const verdict = await stores.verifyAudit()
      assert.equal(verdict.status, 'tampered')
      assert.deepEqual(kindsOf(verdict)[0], ['rewritten', 'b', 1])
    })

    it('trusts the given keys alone', async (t) => {
      const { stores } = await openTwo(t)
      const [row] = await postgres.run('SELECT verifiers FROM toolgate.audit_log')
      const own = row?.['verifiers'] as readonly string[]
      assert.equal((await stores.verifyAudit({ verifiers: own })).status, 'ok')
      assert.equal((await stores.verifyAudit({ verifiers: [] })).status, 'tampered')
    })

    it('is signed by one of several that try at once, and by another when that one is gone', async (t) => {
      const { stores, a, b, write } = await openTwo(t)
      for (let i = 0; i < 10; i++) {
        await write(1)
        await Promise.all([a.sign(), b.sign()])
      }
      assert.equal((await stores.verifyAudit()).checkpoints.count, 12)
      await a.close()
      await b.sign()
      const { status, chains } = await stores.verifyAudit()
      assert.deepEqual([status, chains[0]?.state], ['ok', 'left'])
    })

    it('refuses another record in the place of one, and names it', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const { sealer, tree } = newChain({})
      const store = await beginChain(
        stores.database,
        { replica: 'a', incarnation: 'one' },
        { end: sealer, root: tree.root() },
      )
      const open = (made = newChain({})) =>
        new SharedSink({ store, sealing: {}, ...made, nowMs: Date.now, maxWaiting: 100 })
      const [first, clone] = [open(), open()]
      await first.write(auditEntry())
      // The same record again is no other one.
      await clone.write(auditEntry())
      await first.write(auditEntry({ tool_call_id: 'mine' }))
      await assert.rejects(
        clone.write(auditEntry({ tool_call_id: 'its' })),
        (error: { code?: string; detail?: string }) => {
          assert.equal(error.code, 'audit_unavailable')
          assert.match(error.detail ?? '', /record 2 of this chain has another content/)
          return true
        },
      )
      await assert.rejects(clone.write(auditEntry()), { code: 'audit_unavailable' })
      await assert.rejects(stores.openAudit({ replica: 'a', incarnation: 'one' }), /has begun the chain one/)
    })

    it('loses nothing that it acknowledged when Postgres is killed amid a group, and goes on', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const audit = await stores.openAudit({ replica: 'a' })
      const acknowledged: string[] = []
      const writing = { isOver: false }
      let refused = 0
      const writers = Array.from({ length: 20 }, async (_, w) => {
        for (let i = 0; !writing.isOver; i++)
          await audit.write(auditEntry({ tool_call_id: `${w}-${i}` })).then(
            () => acknowledged.push(`${w}-${i}`),
            async () => {
              refused++
              await sleep(20)
            },
          )
      })
      await sleep(300)
      const ended = once(postgres.server.child, 'exit')
      postgres.server.child.kill('SIGKILL')
      await ended
      while (audit.problem === undefined) await sleep(10)
      await assert.rejects(audit.write(auditEntry()), { code: 'audit_unavailable' })
      // How a running call ended is kept meanwhile.
      await assert.rejects(audit.write(auditEntry({ event: 'tool_result', tool_call_id: 'ended' })))
      await postgres.server.restart()
      while (audit.problem !== undefined) await sleep(10)
      const before = acknowledged.length
      while (acknowledged.length < before + 20) await sleep(10)
      writing.isOver = true
      await Promise.all(writers)
      const kept = new Set<string | undefined>()
      for await (const { event, tool_call_id: id } of audit.exportRecords())
        if (event === 'tool_call' || id === 'ended') kept.add(id)
      assert.deepEqual(
        acknowledged.filter((id) => !kept.has(id)),
        [],
      )
      assert.ok(kept.has('ended') && refused > 0)
      await audit.sign()
      assert.equal((await stores.verifyAudit()).status, 'ok')
    })

    it('shows a reader no record before those with earlier places, which may commit later', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t)
      const [a] = [await stores.openAudit({ replica: 'a' }), await stores.openAudit({ replica: 'b' })]
      const reader = sharedReader(stores.database)
      const seqs = async () => (await reader.query({ afterSeq: 2 })).map(({ seq, replica }) => [seq, replica])
      const slow = new Client(postgres.url)
      await slow.connect()
      try {
        await slow.query('BEGIN')
        await slow.query(`
          SELECT toolgate.append_audit(id, seq, head, head, root, '{0}', '{tool_call}', ARRAY['{"seq":2}'])
          FROM toolgate.audit_chains WHERE replica = 'b'`)
        await a.write(auditEntry())
        assert.deepEqual(await seqs(), [])
        await slow.query('COMMIT')
      } finally {
        await slow.end()
      }
      assert.deepEqual(await seqs(), [
        [4, 'a'],
        [3, 'b'],
      ])
    })
  })
})
