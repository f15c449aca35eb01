import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Grant, GrantFilter, GrantStore, NewGrant } from '@toolgate/core/stores'

const NOW = 1_700_000_000_000
const HOUR_MS = 3_600_000
const GRANT: NewGrant = {
  id: 'g1',
  tenant: 'acme',
  user: 'vera',
  tool: 'pay',
  definitionHash: 'd',
  run: undefined,
  covers: 'tool',
  clauses: ['c'],
  uses: 3,
  grantedBy: 'olga',
  grantedAt: NOW,
  expiresAt: NOW + HOUR_MS,
}
const REVOKED = { by: 'olga', atMs: NOW + 1 }

/**
 * Defines the tests that every grant store passes: a grant is used as often as it says, and not after its end.
 * `beside` opens the same store again, as another process does.
 * @example
 * grantStoreContract('memoryGrants', async () => ({ store: memoryGrants() }))
 */
export function grantStoreContract(name: string, make: (t: TestContext) => Promise<GrantsUnderTest>): void {
  describe(`${name} (grant store contract)`, () => {
    it('keeps all that a grant is bound to', async (t) => {
      const { store } = await make(t)
      const whole: NewGrant = {
        ...GRANT,
        run: 'r1',
        keyMadeBy: 'owner',
        behind: ['host', 'root'],
        approver: { by: 'other', loginMs: 60_000 },
        asked: ['clause p, pay', 'label private'],
        covers: 'fields',
        fields: { '/amount': { from: 0, upTo: 9_007_199_254_740_993n }, '/note': { any: true } },
        inputHash: 'h',
        input: { to: 'bob@corp', id: 1_915_883_588_174_806_058n },
        anyRun: true,
        byOther: true,
        reason: 'a \0 and \uD800',
      }
      const made = await store.create(whole, NOW)
      assert.deepEqual(made, { ...whole, used: 0, status: 'live' })
      assert.deepEqual(await store.get('g1', NOW), made)
      assert.deepEqual(await store.find({ tenant: 'acme', user: 'vera', tool: 'pay' }, NOW), [made])
      assert.deepEqual(await store.list({}, NOW), [made])
    })

    it('finds the live grants of a user for a tool, those that end first come first', async (t) => {
      const { store } = await make(t)
      await store.create({ ...GRANT, id: 'late', expiresAt: NOW + 3 }, NOW)
      await store.create({ ...GRANT, id: 'soon', expiresAt: NOW + 2 }, NOW)
      const others: readonly Partial<Grant>[] = [
        { tenant: 'other' },
        { tenant: undefined },
        { user: 'omar' },
        { user: 'acme","vera' },
        { tool: 'read' },
      ]
      for (const [i, other] of others.entries()) await store.create({ ...GRANT, id: `other${i}`, ...other }, NOW)
      const idsAt = async (nowMs: number) => idsOf(await store.find(GRANT, nowMs))
      assert.deepEqual(await idsAt(NOW), ['soon', 'late'])
      assert.deepEqual(await idsAt(NOW + 2), ['late'])
      assert.deepEqual(idsOf(await store.find({ ...GRANT, tenant: undefined }, NOW)), ['other1'])
    })

    it('makes one grant of an approval', async (t) => {
      const { store } = await make(t)
      await store.create(GRANT, NOW)
      await assert.rejects(async () => store.create(GRANT, NOW), { code: 'approval_decided' })
    })

    it('is used exactly as often as it says by 50 who try at once, through any process', async (t) => {
      const { store, beside } = await make(t)
      const other = (await beside?.()) ?? store
      await store.create({ ...GRANT, uses: 7 }, NOW)
      const takes = Array.from({ length: 50 }, async (_, i) => (i % 2 ? store : other).take('g1', NOW, `s${i}`))
      assert.equal((await Promise.all(takes)).filter(Boolean).length, 7)
      const { used, status } = (await store.get('g1', NOW)) ?? {}
      assert.deepEqual([used, status], [7, 'used'])
      assert.deepEqual(await other.find(GRANT, NOW), [])
    })

    it('takes a use with one name once, and returns it once', async (t) => {
      const { store } = await make(t)
      await store.create({ ...GRANT, uses: 2 }, NOW)
      assert.deepEqual([await store.take('g1', NOW, 'a'), await store.take('g1', NOW, 'a')], [true, true])
      assert.equal((await store.get('g1', NOW))?.used, 1)
      assert.equal(await store.take('g1', NOW, 'b'), true)
      assert.equal(await store.take('g1', NOW, 'c'), false)
      // The answer to the first request may have been lost.
      assert.equal(await store.take('g1', NOW, 'a'), true)
      await store.giveBack('g1', 'a')
      await store.giveBack('g1', 'a')
      await store.giveBack('g1', 'nobody')
      await store.giveBack('nothing', 'a')
      assert.equal((await store.get('g1', NOW))?.used, 1)
      assert.deepEqual([await store.take('g1', NOW, 'c'), await store.take('g1', NOW, 'd')], [true, false])
    })

    it('ends at its end, and stays ended where a clock is set back', async (t) => {
      const { store } = await make(t)
      await store.create(GRANT, NOW)
      assert.equal(await store.take('g1', NOW + HOUR_MS - 1, 'a'), true)
      assert.equal(await store.take('g1', NOW + HOUR_MS, 'b'), false)
      assert.equal(await store.take('g1', NOW, 'c'), false)
      assert.equal((await store.get('g1', NOW))?.status, 'expired')
      await store.giveBack('g1', 'a')
      assert.equal(await store.take('g1', NOW, 'd'), false)
    })

    it('does not live longer because it was made by a clock that is ahead', async (t) => {
      const { store } = await make(t)
      await store.create(GRANT, NOW)
      assert.equal(await store.take('g1', NOW - 5000, 'a'), true)
      assert.equal(await store.take('g1', NOW - 5001, 'b'), false)
      assert.deepEqual(await store.find(GRANT, NOW - 5001), [])
    })

    it('is not used after it was revoked, also where a use comes back', async (t) => {
      const { store, beside } = await make(t)
      const other = (await beside?.()) ?? store
      await store.create({ ...GRANT, uses: 1 }, NOW)
      await store.take('g1', NOW, 'a')
      const { status, revokedBy, revokedAt, revokeReason, used } = await other.revoke('g1', {
        ...REVOKED,
        reason: 'no',
      })
      assert.deepEqual([status, revokedBy, revokedAt, revokeReason, used], ['revoked', 'olga', NOW + 1, 'no', 1])
      await store.giveBack('g1', 'a')
      assert.equal(await store.take('g1', NOW + 1, 'b'), false)
      assert.deepEqual(await store.find(GRANT, NOW + 1), [])
      const again = await store.get('g1', NOW + HOUR_MS)
      assert.deepEqual([again?.status, again?.used, again?.revokeReason], ['revoked', 0, 'no'])
    })

    it('is revoked once, and neither unknown nor after its end', async (t) => {
      const { store } = await make(t)
      await store.create(GRANT, NOW)
      const results = await Promise.allSettled(Array.from({ length: 10 }, async () => store.revoke('g1', REVOKED)))
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
      await assert.rejects(async () => store.revoke('g1', REVOKED), { code: 'grant_ended' })
      for (const id of ['nothing', '__proto__', 'a\0b'])
        await assert.rejects(async () => store.revoke(id, REVOKED), { code: 'grant_unknown' })
      await store.create({ ...GRANT, id: 'g2' }, NOW)
      await assert.rejects(async () => store.revoke('g2', { by: 'olga', atMs: NOW + HOUR_MS }), { code: 'grant_ended' })
    })

    it('lets no use follow a revocation, however the two race', async (t) => {
      const { store, beside } = await make(t)
      const other = (await beside?.()) ?? store
      for (let round = 0; round < 10; round++) {
        const id = `race${round}`
        await store.create({ ...GRANT, id, uses: 100 }, NOW)
        const takes = Array.from({ length: 10 }, async (_, i) => store.take(id, NOW, `s${i}`))
        const revoked = await other.revoke(id, REVOKED)
        const taken = (await Promise.all(takes)).filter(Boolean).length
        assert.equal(revoked.used, taken)
        assert.equal((await store.get(id, NOW + 1))?.used, taken)
      }
    })

    it('knows no grant that was not made', async (t) => {
      const { store } = await make(t)
      assert.equal(await store.get('nothing', NOW), undefined)
      assert.equal(await store.take('nothing', NOW, 'a'), false)
      assert.deepEqual(await store.find(GRANT, NOW), [])
    })

    it('lists by tenant, user, tool and status, newest first, in pages', async (t) => {
      const { store } = await make(t)
      await store.create({ ...GRANT, id: 'a' }, NOW)
      await store.create({ ...GRANT, id: 'b', tenant: 'other' }, NOW)
      await store.create({ ...GRANT, id: 'c', user: 'omar', uses: 1 }, NOW)
      await store.create({ ...GRANT, id: 'd', tool: 'read', expiresAt: NOW + 5 }, NOW)
      await store.take('c', NOW, 's')
      await store.revoke('a', REVOKED)
      const ids = async (filter: GrantFilter) => idsOf(await store.list(filter, NOW + 5))
      assert.deepEqual(await ids({}), ['d', 'c', 'b', 'a'])
      assert.deepEqual(await ids({ tenant: 'acme' }), ['d', 'c', 'a'])
      assert.deepEqual(await ids({ user: 'omar' }), ['c'])
      assert.deepEqual(await ids({ tool: 'read' }), ['d'])
      const byStatus = [await ids({ status: 'live' }), await ids({ status: 'used' }), await ids({ status: 'revoked' })]
      assert.deepEqual([...byStatus, await ids({ status: 'expired' })], [['b'], ['c'], ['a'], ['d']])
      assert.deepEqual(await ids({ limit: 2 }), ['d', 'c'])
      assert.deepEqual(await ids({ before: 'c' }), ['b', 'a'])
      assert.deepEqual(await ids({ before: 'nothing' }), [])
      await assert.rejects(async () => store.list({ tennant: 'acme' } as GrantFilter, NOW), /did you mean "tenant"/)
    })

    it('lets a user have 100 live grants', async (t) => {
      const { store } = await make(t)
      for (let i = 0; i < 100; i++) await store.create({ ...GRANT, id: `g${i}`, tool: `t${i}` }, NOW)
      await assert.rejects(async () => store.create({ ...GRANT, id: 'more' }, NOW), { code: 'grant_too_many' })
      await store.create({ ...GRANT, id: 'other', user: 'omar' }, NOW)
      await store.revoke('g7', REVOKED)
      await store.create({ ...GRANT, id: 'more' }, NOW)
    })
  })
}

export interface GrantsUnderTest {
  readonly store: GrantStore
  /** Opens the same store once more. Absent: this process alone has it. */
  readonly beside?: () => Promise<GrantStore>
}

function idsOf(grants: readonly Grant[]): readonly string[] {
  return grants.map(({ id }) => id)
}
