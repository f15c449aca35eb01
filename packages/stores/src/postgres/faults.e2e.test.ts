import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApprovalBinding } from '@toolgate/core/stores'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'
import type { PostgresStores } from './open-stores.ts'

const UNAVAILABLE = { code: 'state_unavailable' }

/** Does it until Postgres answers again. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch {
      await sleep(10)
    }
  }
}

function bindingOf(inputHash: string): ApprovalBinding {
  return { tenant: undefined, user: 'vera', tool: 't', definitionHash: 'd', inputHash, run: undefined }
}

async function approve({ approvals }: PostgresStores, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const { id } = await approvals.request(bindingOf(`${i}`), {}, Date.now())
    ids.push((await approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })).id)
  }
  return ids
}

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('openPostgresStores', () => {
    const postgres = ownPostgres(paths)

    const kill = async (): Promise<void> => {
      const ended = once(postgres.server.child, 'exit')
      postgres.server.child.kill('SIGKILL')
      await ended
    }

    it('spends no approval twice and loses nothing acknowledged when Postgres is killed amid its work', async (t) => {
      await postgres.empty()
      const stores = await postgres.open(t, { approvals: { ttlMs: 3_600_000 } })
      const ids = await approve(stores, 60)
      const spend = async (name: string) =>
        Promise.allSettled(ids.map(async (id, i) => stores.approvals.consume(id, Date.now(), `${name}-${i}`)))
      const set = async () => Promise.allSettled(ids.map(async (id) => stores.state.set(id, 1)))
      const amid = [spend('first'), set()] as const
      await sleep(15)
      await kill()
      const [first, written] = await Promise.all(amid)
      await assert.rejects(async () => stores.state.get('a'), UNAVAILABLE)
      await postgres.server.restart()
      await again(async () => stores.state.get('a'))
      const second = await spend('second')
      for (const [i, id] of ids.entries()) {
        const [one, other] = [first[i], second[i]]
        const spent = [one, other].filter((each) => each?.status === 'fulfilled' && each.value).length
        assert.ok(spent <= 1, 'it was spent once at most')
        // A spend whose answer never came is one, or it is not: never both.
        if (one?.status === 'fulfilled') assert.equal(spent, 1)
        if (written[i]?.status === 'fulfilled') assert.equal(await stores.state.get(id), 1)
      }
    })

    it('lets no more through than the limit when Postgres is killed amid takes', async (t) => {
      await postgres.empty()
      const { counters } = await postgres.open(t)
      const uses = [{ key: 'a', max: 100, windowMs: 3_600_000 }]
      const takeMany = async () => {
        const answers = await Promise.allSettled(Array.from({ length: 150 }, async () => counters.take(uses)))
        return answers.filter((answer) => answer.status === 'fulfilled' && answer.value.allowed).length
      }
      const amid = takeMany()
      await sleep(15)
      await kill()
      const during = await amid
      await postgres.server.restart()
      await again(async () => counters.peek(uses))
      const after = await takeMany()
      assert.ok(during + after <= 100, `${during} and ${after} were allowed`)
      assert.equal((await counters.take(uses)).allowed, false)
    })

    it('refuses while Postgres is paused, and goes on with it', async (t) => {
      await postgres.empty()
      const { state } = await postgres.open(t, { statementTimeoutMs: 100, connectTimeoutMs: 200, maxConnections: 3 })
      await state.set('a', 1)
      postgres.server.child.kill('SIGSTOP')
      const [child] = [postgres.server.child]
      try {
        // The server's own processes for connections go on; new connections do not come to be.
        const waiting = await Promise.allSettled(Array.from({ length: 20 }, async () => state.get('a')))
        assert.ok(waiting.some(({ status }) => status === 'rejected'))
      } finally {
        child.kill('SIGCONT')
      }
      assert.equal(await again(async () => state.get('a')), 1)
    })

    it('refuses statements beyond those that may wait, at once', async (t) => {
      await postgres.empty()
      const { state, database } = await postgres.open(t, {
        maxConnections: 1,
        connectTimeoutMs: 60_000,
        statementTimeoutMs: 60_000,
      })
      const slow = database.query({ name: 'slow', text: 'SELECT pg_sleep(1)' })
      const asked = await Promise.allSettled(Array.from({ length: 1100 }, async () => state.get('a')))
      const refused = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason as { detail: string }] : []))
      assert.ok(refused.length >= 99)
      assert.ok(refused.every(({ detail }) => /are waiting for a connection/.test(detail)))
      await slow
    })

    it('ends a statement that takes too long, and goes on', async (t) => {
      await postgres.empty()
      const { state, database } = await postgres.open(t, { statementTimeoutMs: 100 })
      const slow = database.query({ name: 'slow', text: 'SELECT pg_sleep(60)' })
      await assert.rejects(slow, { ...UNAVAILABLE, detail: /statement timeout/ })
      assert.equal(await state.get('a'), undefined)
    })

    it('goes on when its connections are cut', async (t) => {
      await postgres.empty()
      const { state } = await postgres.open(t)
      await Promise.all(Array.from({ length: 20 }, async (_, i) => state.set(`${i}`, i)))
      await postgres.run(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL',
      )
      assert.equal(await again(async () => state.get('7')), 7)
      await Promise.all(Array.from({ length: 20 }, async (_, i) => again(async () => state.set(`${i}`, -i))))
      assert.equal(await state.get('7'), -7)
    })

    it('refuses a server that has become read-only, as a standby is, and goes on when it takes writes', async (t) => {
      await postgres.empty()
      const { state } = await postgres.open(t)
      await state.set('a', 1)
      const set = async (value: 'on' | 'off'): Promise<void> => {
        await postgres.run(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
        await postgres.run('SELECT pg_reload_conf()')
      }
      await set('on')
      for (;;) {
        const error: unknown = await Promise.resolve(state.set('a', 2)).catch((reason: unknown) => reason)
        if (error !== undefined && /the server is read-only/.test((error as { detail: string }).detail)) break
        await sleep(10)
      }
      await assert.rejects(async () => state.get('a'), UNAVAILABLE, 'not even a read: it may be an old one')
      await set('off')
      await again(async () => state.set('a', 3))
      assert.equal(await state.get('a'), 3)
    })

    it('loses its connections when it is closed, and refuses what comes then', async (t) => {
      await postgres.empty()
      const { state, lock, close } = await postgres.open(t)
      const other = await postgres.open(t)
      await lock.acquire('mine')
      await close()
      await assert.rejects(async () => state.get('a'), UNAVAILABLE)
      await (await other.lock.acquire('mine', { deadlineMs: 10_000 })).release()
    })
  })
})
