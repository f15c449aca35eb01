import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { ownPostgres } from '../../../../tests/support/own-stores.ts'

const LEASE_MS = 60_000
const HOUR_AGO = "UPDATE toolgate.replicas SET renewed_at = renewed_at - interval '1 hour' WHERE id ="

withBinaries(['postgres', 'initdb'], (paths) => {
  describe('the owners of a Postgres schema', () => {
    const postgres = ownPostgres(paths)
    const replica = (id: string) => ({ id, incarnation: `${id}-1`, version: '1', url: `http://${id}:8787` })

    async function open(t: TestContext) {
      await postgres.empty()
      const replicas = (await postgres.open(t)).openReplicas({ leaseMs: LEASE_MS, answerMs: 5000, onNotice: () => {} })
      for (const id of ['a', 'b', 'c']) await replicas.join(replica(id))
      return replicas
    }

    it('are found by all, and stay while their replica is live', async (t) => {
      const { owners } = await open(t)
      assert.equal(await owners.find('s', 'b-1'), undefined)
      assert.equal(await owners.put('s', 'a-1', 'one'), true)
      assert.deepEqual(await owners.find('s', 'b-1'), { owner: 'a-1', url: 'http://a:8787', content: 'one', losses: 0 })
      assert.deepEqual(await owners.find('s', 'a-1'), { owner: 'a-1', content: 'one', losses: 0 })
      assert.equal(await owners.put('s', 'b-1', 'two'), false)
      await owners.remove('s', 'b-1')
      assert.deepEqual(await owners.keysOf('a-1'), ['s'])
      await owners.remove('s', 'a-1')
      assert.equal(await owners.find('s', 'b-1'), undefined)
    })

    it('are replaced once by whoever asks first after their replica is gone or has given up', async (t) => {
      const { owners } = await open(t)
      await owners.put('lost', 'a-1', 'one')
      await owners.put('free', 'a-1', 'two')
      await owners.free(['free', 'other'], 'a-1')
      assert.deepEqual(await owners.find('free', 'c-1'), { owner: 'c-1', content: 'two', taken: 'free', losses: 0 })
      await postgres.run(`${HOUR_AGO} 'a'`)
      const asked = await Promise.all(['b-1', 'c-1', 'b-1', 'c-1'].map((asker) => owners.find('lost', asker)))
      assert.equal(new Set(asked.map((one) => one?.owner)).size, 1)
      assert.equal(asked.filter((one) => one?.taken === 'lost').length, 1)
      // What is given up afterwards was lost no more often.
      await owners.free(['lost'], asked[0]?.owner ?? '')
      assert.deepEqual(
        [...asked, await owners.find('lost', 'c-1')].map((one) => one?.losses),
        [1, 1, 1, 1, 1],
      )
    })

    it('are looked at without being taken over', async (t) => {
      const { owners } = await open(t)
      assert.equal(await owners.look('s'), undefined)
      await owners.put('s', 'a-1', 'one')
      assert.deepEqual(await owners.look('s'), { owner: 'a-1', url: 'http://a:8787', content: 'one', losses: 0 })
      await postgres.run(`${HOUR_AGO} 'a'`)
      assert.equal(await owners.look('s'), undefined)
      assert.deepEqual(await owners.keysOf('a-1'), ['s'])
    })

    it('move to a replica that must have them, although another one is live', async (t) => {
      const { owners } = await open(t)
      await owners.put('s', 'a-1', 'one')
      await owners.move('s', 'b-1')
      assert.deepEqual(await owners.find('s', 'a-1'), { owner: 'b-1', url: 'http://b:8787', content: 'one', losses: 0 })
      assert.equal(await owners.put('s', 'a-1', 'two'), false)
      await owners.move('nothing', 'b-1')
      assert.deepEqual(await owners.keysOf('b-1'), ['s'])
    })

    it('stay for a week after their replica has given them up', async (t) => {
      const { owners } = await open(t)
      const ago = (time: string) => `UPDATE toolgate.owners SET used_at = used_at - interval '${time}' WHERE key =`
      for (const key of ['old', 'recent', 'asked']) await owners.put(key, 'a-1', 'one')
      await owners.free(['old', 'recent', 'asked'], 'a-1')
      await postgres.run(`${ago('8 days')} 'old'`)
      await postgres.run(`${ago('6 days')} 'recent'`)
      await owners.find('asked', 'b-1')
      assert.equal(await owners.find('old', 'b-1'), undefined)
      assert.equal((await owners.find('recent', 'b-1'))?.taken, 'free')
    })

    it('are made by whoever claims first', async (t) => {
      const { owners } = await open(t)
      const claimed = await Promise.all(['a-1', 'b-1', 'c-1'].map((asker) => owners.claim('home', asker, asker)))
      const [{ owner } = { owner: '' }] = claimed
      assert.ok(claimed.every((one) => one.owner === owner && one.content === owner))
    })

    it('learn that they were late, so that they do not go on with what others have taken over', async (t) => {
      const replicas = await open(t)
      assert.equal((await replicas.renew(replica('a'), 0)).wasLate, false)
      assert.equal((await replicas.renew(replica('a'), 0)).wasLate, false)
      await postgres.run(`${HOUR_AGO} 'a'`)
      assert.equal((await replicas.renew(replica('a'), 0)).wasLate, true)
      assert.equal((await replicas.renew(replica('a'), 0)).wasLate, false)
      await postgres.run("DELETE FROM toolgate.replicas WHERE id = 'a'")
      assert.equal((await replicas.renew(replica('a'), 0)).wasLate, true)
    })
  })
})
