import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

const LEASE_MS = 2000

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the replicas of a Postgres schema', () => {
    const postgres = ownPostgres(paths)

    async function open(t: TestContext, onNotice: () => void = () => {}, leaseMs = LEASE_MS) {
      const stores = await postgres.open(t)
      return { ...stores, replicas: stores.openReplicas({ leaseMs, answerMs: 5000, onNotice }) }
    }

    const replica = (id: string, incarnation = 'one') => ({
      id,
      incarnation,
      version: '1',
      url: 'http://10.0.0.7:8787',
    })

    it('have an id each: a live one keeps it, and it is free once its owner left or is no longer live', async (t) => {
      await postgres.empty()
      const { replicas } = await open(t)
      assert.equal(await replicas.join(replica('a')), true)
      assert.equal(await replicas.join(replica('a')), true)
      assert.equal(await replicas.join(replica('a', 'two')), false)
      await replicas.leave(replica('a', 'two'))
      assert.equal(await replicas.join(replica('a', 'two')), false)
      await replicas.leave(replica('a'))
      assert.equal(await replicas.join(replica('a', 'two')), true)
      const impatient = (await open(t, undefined, 0)).replicas
      assert.equal(await impatient.join(replica('a', 'three')), true)
      assert.equal((await replicas.renew(replica('a', 'two'), 0)).isTaken, true)
      const [row, ...others] = await replicas.list()
      assert.deepEqual([row?.incarnation, row?.url, row?.isLive, others], ['three', 'http://10.0.0.7:8787', true, []])
    })

    it('are listed with their latest word, of which only known fields are read', async (t) => {
      await postgres.empty()
      const { replicas } = await open(t)
      await replicas.join(replica('a'))
      assert.deepEqual((await replicas.list())[0]?.word, {})
      const word = { configuration: { id: 'c', since: 5 }, file: 'f', refuses: 'no', isStopping: true } as const
      await replicas.renew(replica('a'), 0, word)
      assert.deepEqual((await replicas.list())[0]?.word, word)
      for (const text of [
        'nonsense',
        '[]',
        'null',
        '{"configuration":{"id":1},"file":2,"refuses":[],"isStopping":"yes"}',
      ]) {
        await postgres.run(`UPDATE toolgate.replicas SET word = '${text}'`)
        assert.deepEqual((await replicas.list())[0]?.word, {}, text)
      }
      await replicas.renew(replica('a'), 0, word)
      await replicas.join(replica('a'))
      assert.deepEqual((await replicas.list())[0]?.word, {})
    })

    it('name what a role may not read of the timeline unknown, and renew as any other', async (t) => {
      await postgres.empty()
      const role = 'managed'
      await postgres.run(`CREATE ROLE ${role} LOGIN; GRANT CREATE ON DATABASE postgres TO ${role}`)
      const timelineOf = async () => {
        const url = postgres.url.replace('//postgres@', `//${role}@`)
        const stores = await postgres.open(t, { url })
        const replicas = stores.openReplicas({ leaseMs: LEASE_MS, answerMs: 5000, onNotice: () => {} })
        assert.equal(await replicas.join(replica('a')), true)
        const renewed = await replicas.renew(replica('a'), 0)
        await replicas.accept(0)
        assert.deepEqual([renewed.isTaken, (await replicas.renew(replica('a'), 0)).isAccepted], [false, true])
        return renewed.timeline
      }
      assert.match(await timelineOf(), /^\d+\/0{7}1$/)
      const functions = ['pg_control_system()', 'pg_walfile_name(pg_lsn)']
      t.after(async () => {
        for (const name of functions) await postgres.run(`GRANT EXECUTE ON FUNCTION ${name} TO PUBLIC`)
      })
      await postgres.run(`REVOKE EXECUTE ON FUNCTION ${functions[0]} FROM PUBLIC`)
      assert.match(await timelineOf(), /^unknown\/0{7}1$/)
      await postgres.run(`REVOKE EXECUTE ON FUNCTION ${functions[1]} FROM PUBLIC`)
      assert.equal(await timelineOf(), 'unknown/unknown')
    })

    it('see one revision that every change of copied state counts, and no other change', async (t) => {
      await postgres.empty()
      const { replicas, state } = await open(t)
      const revision = async () => (await replicas.renew(replica('a'), 0)).revision
      const before = await revision()
      await state.set('gateway/tasks/1', 1)
      await state.set('key-used:a', 1)
      await state.set('pin-definitions:a', {})
      assert.equal(await state.take('gateway/tasks/1'), 1)
      assert.equal(await revision(), before)
      await state.set('halt:a', 1)
      await state.set('halt:a', 2)
      assert.equal(await state.add('halt:a', 3), false)
      assert.equal(await state.add('key:a', 3), true)
      assert.equal(await state.take('halt:a'), 2)
      assert.equal(await revision(), before + 4)
      assert.equal(await replicas.revision(), before + 4)
    })

    it('confirm the revision that they have applied', async (t) => {
      await postgres.empty()
      const { replicas, state } = await open(t)
      await state.set('halt:a', 1)
      const revision = await replicas.revision()
      await replicas.renew(replica('a'), revision)
      await replicas.renew(replica('b'), revision - 1)
      assert.deepEqual(await replicas.confirmations(revision), { applied: 1, missing: 1 })
      await replicas.renew(replica('b'), revision)
      assert.deepEqual(await replicas.confirmations(revision), { applied: 2, missing: 0 })
      await replicas.leave(replica('a'))
      assert.deepEqual(await replicas.confirmations(revision), { applied: 1, missing: 0 })
    })

    it('are told of changes by other replicas', async (t) => {
      await postgres.empty()
      const told = Promise.withResolvers<void>()
      const [{ replicas }, { state }] = [await open(t, told.resolve), await open(t)]
      await replicas.renew(replica('a'), 0)
      await state.set('halt:a', 1)
      await told.promise
    })

    it('accept the first timeline, and another one when a person does, with a revision above all that were seen', async (t) => {
      await postgres.empty()
      const { replicas } = await open(t)
      const first = await replicas.renew(replica('a'), 0)
      assert.match(first.timeline, /^\d+\/00000001$/)
      assert.deepEqual([first.isAccepted, first.isTaken], [true, false])
      assert.equal((await replicas.renew(replica('a'), 0)).isAccepted, true)
      await postgres.run("UPDATE toolgate.replica_state SET timeline = '1/00000001'")
      assert.equal((await replicas.renew(replica('a'), 0)).isAccepted, false)
      await replicas.accept(41)
      const accepted = await replicas.renew(replica('a'), 0)
      assert.deepEqual([accepted.isAccepted, accepted.revision], [true, 42])
    })

    it('leave what was read of the state as it is where the database has lost changes', async (t) => {
      await postgres.empty()
      const [{ replicas }, { state }] = [await open(t), await open(t)]
      await replicas.renew(replica('a'), 0)
      await state.set('halt:a', 1)
      assert.equal((await state.list('halt:')).length, 1)
      await postgres.run("DELETE FROM toolgate.state WHERE key = 'halt:a'")
      await postgres.run('UPDATE toolgate.replica_state SET revision = revision - 2')
      await assert.rejects(async () => state.list('halt:'), {
        code: 'state_unavailable',
        detail: /this process has seen/,
      })
      await replicas.accept(100)
      assert.deepEqual(await state.list('halt:'), [])
    })

    it('renew again after the server was killed, and fail meanwhile', async (t) => {
      await postgres.empty()
      const { replicas } = await open(t)
      await replicas.renew(replica('a'), 0)
      postgres.server.child.kill('SIGKILL')
      await assert.rejects(
        async () => {
          for (;;) await replicas.renew(replica('a'), 0)
        },
        { code: 'state_unavailable' },
      )
      await postgres.server.restart()
      for (;;) {
        const renewed = await replicas.renew(replica('a'), 0).catch(() => undefined)
        if (renewed) break
        await sleep(50)
      }
    })

    it('are made once by several that start at once', async (t) => {
      await postgres.empty()
      const all = await Promise.all(Array.from({ length: 6 }, () => open(t)))
      const joined = await Promise.all(all.map(({ replicas }, i) => replicas.join(replica('a', `of-${i}`))))
      assert.equal(joined.filter(Boolean).length, 1)
    })
  })
})
