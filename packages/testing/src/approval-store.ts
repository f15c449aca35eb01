import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Approval, ToolgateError } from '@toolgate/core'
import { approverContract } from './approver-contract.ts'
import type { ApprovalBinding, ApprovalFilter, ApprovalStore, ApprovalVerdict } from '@toolgate/core/stores'

/**
 * Defines the tests that every approval store passes: approvals are bound, used once, and expire.
 * @example
 * approvalStoreContract('memoryApprovals', async () => memoryApprovals())
 */
export function approvalStoreContract(name: string, make: (t: TestContext) => Promise<ApprovalStore>): void {
  approverContract(name, make)
  describe(`${name} (approval store contract)`, () => {
    it('makes a pending approval with what it is bound to and when it ends', async (t) => {
      const store = await make(t)
      const approval = await store.request(BINDING, { path: '/a' }, NOW)
      const { id, expiresAt, ...rest } = approval
      assert.deepEqual(rest, { ...BINDING, status: 'pending', input: { path: '/a' }, requestedAt: NOW })
      assert.ok(id.length > 0)
      assert.ok(expiresAt > NOW)
    })

    it('gives the same approval for the same binding while it lives', async (t) => {
      const store = await make(t)
      const first = await store.request(BINDING, {}, NOW)
      const second = await store.request({ ...BINDING }, {}, NOW + 1)
      assert.deepEqual(second, first)
    })

    const differences: readonly Partial<ApprovalBinding>[] = [
      { tenant: 'other' },
      { tenant: undefined },
      { user: 'other' },
      { user: undefined },
      { user: '' },
      { tool: 'other' },
      { definitionHash: 'other' },
      { inputHash: 'other' },
      { run: 'other' },
      { run: undefined },
      { tenant: 'acme","vera' },
      { keyMadeBy: 'owner' },
      { behind: ['owner'] },
    ]
    for (const difference of differences) {
      it(`makes another approval when the binding differs by ${JSON.stringify(difference, undefinedToo)}`, async (t) => {
        const store = await make(t)
        const first = await store.request(BINDING, {}, NOW)
        const other = await store.request({ ...BINDING, ...difference }, {}, NOW)
        assert.notEqual(other.id, first.id)
      })
    }

    it('keeps what is demanded of the approver, and why it is asked for', async (t) => {
      const store = await make(t)
      const approver = { by: 'other', loginMs: 60_000 } as const
      const { id } = await store.request({ ...BINDING, approver }, {}, NOW, { why: 'the policy asks' })
      const { approver: kept, why } = (await store.get(id, NOW)) ?? {}
      assert.deepEqual([kept, why], [approver, 'the policy asks'])
      const weaker = await store.request({ ...BINDING, approver: { loginMs: 60_000 } }, {}, NOW)
      const none = await store.request(BINDING, {}, NOW)
      assert.equal(new Set([id, weaker.id, none.id]).size, 3)
    })

    it('takes an approval only from whom it demands, and a rejection from all', async (t) => {
      const store = await make(t)
      const { id } = await store.request({ ...BINDING, approver: { by: 'other', loginMs: 60_000 } }, {}, NOW)
      const loginAt = NOW - 60_000
      for (const wrong of [{ by: 'vera', loginAt }, { loginAt: loginAt - 1 }, { loginAt: NOW + 1 }, {}])
        await assert.rejects(async () => store.decide(id, { ...verdict('approve'), ...wrong }), isToolgateError)
      assert.equal((await store.get(id, NOW))?.status, 'pending')
      assert.equal((await store.decide(id, { ...verdict('approve'), loginAt })).status, 'approved')
      assert.equal((await store.decide(id, { ...verdict('revoke'), by: 'vera' })).status, 'revoked')
    })

    it('takes an approval by another person neither from the user nor from the maker of the key', async (t) => {
      const store = await make(t)
      const binding = { ...BINDING, keyMadeBy: 'owner', approver: { by: 'other' } } as const
      const { id, keyMadeBy } = await store.request(binding, {}, NOW)
      assert.equal(keyMadeBy, 'owner')
      for (const by of ['vera', 'owner'])
        await assert.rejects(async () => store.decide(id, { ...verdict('approve'), by }), {
          code: 'approval_needs_other',
        })
      assert.equal((await store.decide(id, verdict('approve'))).keyMadeBy, 'owner')
    })

    it('takes it from nobody else who stands behind the call either', async (t) => {
      const store = await make(t)
      const binding = { ...BINDING, keyMadeBy: 'runner', behind: ['owner', 'root'], approver: { by: 'other' } } as const
      const { id } = await store.request(binding, {}, NOW)
      assert.deepEqual((await store.get(id, NOW))?.behind, ['owner', 'root'])
      for (const by of ['vera', 'runner', 'owner', 'root'])
        await assert.rejects(async () => store.decide(id, { ...verdict('approve'), by }), {
          code: 'approval_needs_other',
        })
      assert.deepEqual((await store.decide(id, verdict('approve'))).behind, ['owner', 'root'])
    })

    it('keeps what asked, and asks again where something else does', async (t) => {
      const store = await make(t)
      const asked = ['policy p, mail:send', 'label untrusted']
      const first = await store.request({ ...BINDING, asked }, {}, NOW)
      assert.deepEqual((await store.get(first.id, NOW))?.asked, asked)
      assert.equal((await store.request({ ...BINDING, asked }, {}, NOW)).id, first.id)
      for (const other of [undefined, asked.slice(1), [...asked, 'label private']])
        assert.notEqual((await store.request({ ...BINDING, asked: other }, {}, NOW)).id, first.id)
    })

    it('shows the input as it was when the approval was asked for', async (t) => {
      const store = await make(t)
      const input = { amount: 1 }
      const { id } = await store.request(BINDING, input, NOW)
      input.amount = 1_000_000
      assert.deepEqual((await store.get(id, NOW))?.input, { amount: 1 })
    })

    for (const wrong of [{ approve: true }, { decision: 'approved' }, { decision: 'yes' }, { decision: true }, {}])
      it(`takes ${JSON.stringify(wrong)} for neither a yes nor a no`, async (t) => {
        const store = await make(t)
        const { id } = await store.request(BINDING, {}, NOW)
        const said = { ...wrong, by: 'owner', atMs: NOW + 1 } as unknown as ApprovalVerdict
        await assert.rejects(async () => store.decide(id, said), { name: 'ConfigError' })
        assert.equal((await store.get(id, NOW + 1))?.status, 'pending')
      })

    it('refuses a filter with an unknown field, which would list too much', async (t) => {
      const store = await make(t)
      await store.request(BINDING, {}, NOW)
      await assert.rejects(async () => store.list({ tennant: 'acme' } as ApprovalFilter, NOW), /did you mean "tenant"/)
    })

    it('records who decided, when and why', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      const decided = await store.decide(id, { decision: 'approve', by: 'ada', reason: 'looks right', atMs: NOW + 5 })
      const { status, decidedBy, decidedAt, reason } = decided
      assert.deepEqual([status, decidedBy, decidedAt, reason], ['approved', 'ada', NOW + 5, 'looks right'])
      assert.deepEqual(await store.get(id, NOW + 5), decided)
    })

    it('gives the approval that was approved or rejected to the next request of its binding', async (t) => {
      for (const decision of ['approve', 'reject'] as const) {
        const store = await make(t)
        const { id } = await store.request(BINDING, {}, NOW)
        await store.decide(id, verdict(decision))
        const again = await store.request(BINDING, {}, NOW + 1)
        assert.deepEqual([again.id, again.status], [id, decision === 'approve' ? 'approved' : 'rejected'])
      }
    })

    it('lets nobody decide twice', async (t) => {
      for (const decision of ['approve', 'reject'] as const) {
        const store = await make(t)
        const { id } = await store.request(BINDING, {}, NOW)
        await store.decide(id, verdict(decision))
        for (const second of ['approve', 'reject'] as const) {
          await assert.rejects(async () => store.decide(id, verdict(second)), { code: 'approval_decided' })
        }
      }
    })

    it('lets one of many who decide at once decide', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, async () => store.decide(id, verdict('approve'))),
      )
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
    })

    it('knows no approval that was not asked for', async (t) => {
      const store = await make(t)
      assert.equal(await store.get('nothing', NOW), undefined)
      assert.equal(await store.consume('nothing', NOW), false)
      await store.giveBack('nothing')
      await assert.rejects(async () => store.decide('nothing', verdict('approve')), { code: 'approval_unknown' })
      await assert.rejects(async () => store.decide('__proto__', verdict('approve')), { code: 'approval_unknown' })
      await assert.rejects(async () => store.decide('nothing', verdict('revoke')), { code: 'approval_unknown' })
    })

    it('is used by exactly one of 100 who try at once', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      const results = await Promise.all(Array.from({ length: 100 }, async () => store.consume(id, NOW)))
      assert.equal(results.filter(Boolean).length, 1)
      assert.equal((await store.get(id, NOW))?.status, 'consumed')
    })

    it('cannot be used while it is pending or after it was rejected', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      assert.equal(await store.consume(id, NOW), false)
      await store.decide(id, verdict('reject'))
      assert.equal(await store.consume(id, NOW), false)
    })

    it('can be revoked while it is approved, and is then not used', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      const verdictOf = { decision: 'revoke', by: 'eve', reason: 'wrong account', atMs: NOW + 7 } as const
      const revoked = await store.decide(id, verdictOf)
      const { status, decidedBy, decidedAt, reason } = revoked
      assert.deepEqual([status, decidedBy, decidedAt, reason], ['revoked', 'eve', NOW + 7, 'wrong account'])
      assert.deepEqual(await store.get(id, NOW + 7), revoked)
      assert.equal(await store.consume(id, NOW + 7), false)
      await store.giveBack(id)
      assert.equal((await store.get(id, NOW + 7))?.status, 'revoked')
      assert.deepEqual(idsOf(await store.list({ status: 'revoked' }, NOW + 7)), [id])
    })

    it('drops the reason of the approval when it is revoked without one', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      await store.decide(id, { ...verdict('approve'), reason: 'looks right' })
      assert.equal((await store.decide(id, verdict('revoke'))).reason, undefined)
    })

    it('answers the next request of its binding with the revoked one until it expires', async (t) => {
      const store = await make(t)
      const { id, expiresAt } = await approved(store)
      await store.decide(id, verdict('revoke'))
      const again = await store.request(BINDING, {}, expiresAt - 1)
      assert.deepEqual([again.id, again.status], [id, 'revoked'])
      assert.equal((await store.request(BINDING, {}, expiresAt)).status, 'pending')
      assert.equal((await store.get(id, expiresAt))?.status, 'revoked')
    })

    for (const [first, second] of [
      ['revoke', 'consume'],
      ['consume', 'revoke'],
    ] as const) {
      it(`is either revoked or used, when both are tried at once, ${first} first`, async (t) => {
        const store = await make(t)
        const { id } = await approved(store)
        const attempts = {
          revoke: async () => isFulfilled(async () => store.decide(id, verdict('revoke'))),
          consume: async () => store.consume(id, NOW),
        }
        const [one, other] = await Promise.all([attempts[first](), attempts[second]()])
        assert.notEqual(one, other, 'exactly one of them succeeds')
        const winner = one ? first : second
        assert.equal((await store.get(id, NOW))?.status, winner === 'revoke' ? 'revoked' : 'consumed')
      })
    }

    it('is revoked by one of many who try at once', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, async () => store.decide(id, verdict('revoke'))),
      )
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
    })

    it('cannot be revoked unless it is approved', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      const revoke = async () => store.decide(id, verdict('revoke'))
      await assert.rejects(revoke, { code: 'approval_not_revocable', message: /pending/ })
      await store.decide(id, verdict('approve'))
      await store.consume(id, NOW)
      await assert.rejects(revoke, { code: 'approval_not_revocable', message: /consumed/ })
      await store.giveBack(id)
      await revoke()
      await assert.rejects(revoke, { code: 'approval_not_revocable', message: /revoked/ })
      await assert.rejects(async () => store.decide(id, verdict('approve')), { code: 'approval_decided' })
      const another = await make(t)
      const late = await approved(another)
      const tooLate = { ...verdict('revoke'), atMs: late.expiresAt }
      const expected = { code: 'approval_not_revocable', message: /expired/ }
      await assert.rejects(async () => another.decide(late.id, tooLate), expected)
    })

    it('asks anew once it was used', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      await store.consume(id, NOW)
      const next = await store.request(BINDING, {}, NOW)
      assert.notEqual(next.id, id)
      assert.equal(next.status, 'pending')
    })

    it('can be used again, once, after it was given back', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      await store.consume(id, NOW)
      await store.giveBack(id)
      assert.equal((await store.request(BINDING, {}, NOW)).id, id)
      assert.equal(await store.consume(id, NOW), true)
      assert.equal(await store.consume(id, NOW), false)
    })

    it('answers a use that is asked for twice by one name as it did, and no other', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      assert.equal(await store.consume(id, NOW, 'first'), true)
      assert.equal(await store.consume(id, NOW, 'first'), true)
      for (const other of ['second', undefined]) assert.equal(await store.consume(id, NOW, other), false)
    })

    it('is given back by the use that consumed it, once', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      await store.consume(id, NOW, 'first')
      await store.giveBack(id, 'second')
      assert.equal(await store.consume(id, NOW, 'second'), false)
      await store.giveBack(id, 'first')
      assert.equal(await store.consume(id, NOW, 'second'), true)
      await store.giveBack(id, 'first')
      assert.equal((await store.get(id, NOW))?.status, 'consumed')
    })

    it('stays as it is when it is given back without having been used', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW)
      await store.giveBack(id)
      assert.equal((await store.get(id, NOW))?.status, 'pending')
      await store.decide(id, verdict('reject'))
      await store.giveBack(id)
      assert.equal((await store.get(id, NOW))?.status, 'rejected')
    })

    it('lives until the millisecond before its expiry and not at it', async (t) => {
      const store = await make(t)
      const { id, expiresAt } = await approved(store)
      assert.equal((await store.get(id, expiresAt - 1))?.status, 'approved')
      assert.equal((await store.get(id, expiresAt))?.status, 'expired')
      assert.equal(await store.consume(id, expiresAt), false)
    })

    it('stays expired once that was seen, when the clock goes back', async (t) => {
      const seeing: readonly ((store: ApprovalStore, approval: Approval) => unknown)[] = [
        (store, { id, expiresAt }) => store.get(id, expiresAt),
        (store, { expiresAt }) => store.list({}, expiresAt),
        (store, { expiresAt }) => store.list({ status: 'approved' }, expiresAt),
        (store, { id, expiresAt }) => store.consume(id, expiresAt),
        (store, { id, expiresAt }) =>
          assert.rejects(async () => store.decide(id, { ...verdict('revoke'), atMs: expiresAt })),
      ]
      for (const [i, see] of seeing.entries()) {
        const store = await make(t)
        const approval = await approved(store)
        await see(store, approval)
        const before = approval.expiresAt - 1
        assert.equal(await store.consume(approval.id, before), false, `${i}`)
        assert.equal((await store.get(approval.id, before))?.status, 'expired')
        assert.deepEqual(idsOf(await store.list({ status: 'expired' }, before)), [approval.id])
        assert.deepEqual(await store.list({ status: 'approved' }, before), [])
        const next = await store.request(BINDING, {}, before)
        assert.notEqual(next.id, approval.id)
      }
    })

    it('expires while it is pending, and can then not be decided', async (t) => {
      const store = await make(t)
      const { id, expiresAt } = await store.request(BINDING, {}, NOW)
      const late = { ...verdict('approve'), atMs: expiresAt }
      await assert.rejects(async () => store.decide(id, late), { code: 'approval_decided', message: /expired/ })
      const back = { ...late, atMs: expiresAt - 1 }
      await assert.rejects(async () => store.decide(id, back), { code: 'approval_decided', message: /expired/ })
    })

    it('is no longer given to a request at its expiry, whatever was decided', async (t) => {
      for (const decision of [undefined, 'approve', 'reject'] as const) {
        const store = await make(t)
        const { id, expiresAt } = await store.request(BINDING, {}, NOW)
        if (decision) await store.decide(id, verdict(decision))
        assert.equal((await store.request(BINDING, {}, expiresAt - 1)).id, id)
        const next = await store.request(BINDING, {}, expiresAt)
        assert.notEqual(next.id, id)
        assert.equal(next.status, 'pending')
      }
    })

    it('stays expired when it is given back after its expiry', async (t) => {
      const store = await make(t)
      const { id, expiresAt } = await approved(store)
      await store.consume(id, expiresAt - 1)
      await store.giveBack(id)
      assert.equal(await store.consume(id, expiresAt), false)
    })

    it('is over when the clock goes back to before it was asked for, and lives on when it goes back a little', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      assert.equal((await store.get(id, NOW - 1000))?.status, 'approved')
      assert.equal(await store.consume(id, NOW - 3_600_000), false)
      const next = await store.request(BINDING, {}, NOW - 3_600_000)
      assert.notEqual(next.id, id)
      assert.equal(next.status, 'pending')
      assert.equal((await store.get(id, NOW - 3_600_000))?.status, 'expired')
    })

    it('is over when the clock goes on a year', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      assert.equal(await store.consume(id, NOW + 365 * 86_400_000), false)
    })

    it('lists the newest first, up to a limit', async (t) => {
      const store = await make(t)
      const ids = await requestMany(store, 5)
      assert.deepEqual(idsOf(await store.list({}, NOW)), ids.toReversed())
      assert.deepEqual(idsOf(await store.list({ limit: 2 }, NOW)), ids.toReversed().slice(0, 2))
    })

    it('keeps what the run has done, for the person who decides', async (t) => {
      const store = await make(t)
      const trail = {
        read: [{ label: 'untrusted', calls: [{ tool: 'web:fetch', atMs: NOW - 5 }] }],
        sends: [{ field: 'to', value: 'eve@evil.example', origin: 'untrusted' }],
      } as const
      const { id } = await store.request(BINDING, {}, NOW, { trail })
      assert.deepEqual((await store.get(id, NOW))?.trail, trail)
      assert.equal((await store.request(BINDING, {}, NOW, {})).id, id, 'it is not bound to it')
      assert.ok(!('trail' in (await store.request({ ...BINDING, tool: 'other' }, {}, NOW))))
    })

    it('keeps who asked first, for the host', async (t) => {
      const store = await make(t)
      const asker = { id: 'a key', app: 'research', session: 's1' }
      const { id } = await store.request(BINDING, {}, NOW, { asker })
      await store.request(BINDING, {}, NOW, { asker: { id: 'another' } })
      assert.deepEqual((await store.get(id, NOW))?.asker, asker)
      assert.ok(!('asker' in (await store.request({ ...BINDING, tool: 'other' }, {}, NOW))))
    })

    it('lists those of one chat, and says in which each was asked for first', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, {}, NOW, { chat: 'c1' })
      const other = await store.request({ ...BINDING, tool: 'other' }, {}, NOW, { chat: '\ud800' })
      const none = await store.request({ ...BINDING, tool: 'none' }, {}, NOW)
      assert.deepEqual(idsOf(await store.list({ chat: 'c1' }, NOW)), [id])
      assert.deepEqual(idsOf(await store.list({ chat: '\ud800' }, NOW)), [other.id])
      assert.deepEqual(idsOf(await store.list({ chat: 'c2' }, NOW)), [])
      assert.equal((await store.get(id, NOW))?.chat, 'c1')
      assert.ok(!('chat' in none))
      assert.equal((await store.request(BINDING, {}, NOW, { chat: 'c2' })).chat, 'c1')
    })

    it('lists those of one status, as it is at that time', async (t) => {
      const store = await make(t)
      const [a, b, c, d] = (await requestMany(store, 4)) as [string, string, string, string]
      await store.decide(a, verdict('approve'))
      await store.decide(b, verdict('reject'))
      await store.decide(c, verdict('approve'))
      await store.consume(c, NOW)
      assert.deepEqual(idsOf(await store.list({ status: 'approved' }, NOW)), [a])
      assert.deepEqual(idsOf(await store.list({ status: 'rejected' }, NOW)), [b])
      assert.deepEqual(idsOf(await store.list({ status: 'consumed' }, NOW)), [c])
      assert.deepEqual(idsOf(await store.list({ status: 'pending' }, NOW)), [d])
      const end = (await store.get(d, NOW))?.expiresAt ?? 0
      assert.deepEqual(idsOf(await store.list({ status: 'expired' }, end)), [d, a])
      assert.deepEqual(idsOf(await store.list({ status: 'pending' }, end)), [])
    })

    it('lists those of one tenant, user or tool, and of several at once', async (t) => {
      const store = await make(t)
      const ask = async (fields: Partial<ApprovalBinding>) =>
        (await store.request({ ...BINDING, ...fields }, {}, NOW)).id
      const vera = await ask({})
      const ada = await ask({ user: 'ada' })
      const other = await ask({ tenant: 'other' })
      const shell = await ask({ tool: 'shell' })
      const nobody = await ask({ user: undefined, tenant: undefined })
      assert.deepEqual(idsOf(await store.list({ user: 'vera' }, NOW)), [shell, other, vera])
      assert.deepEqual(idsOf(await store.list({ tenant: 'acme' }, NOW)), [shell, ada, vera])
      assert.deepEqual(idsOf(await store.list({ tool: 'shell' }, NOW)), [shell])
      assert.deepEqual(idsOf(await store.list({ tenant: 'acme', user: 'vera', status: 'pending' }, NOW)), [shell, vera])
      assert.deepEqual(idsOf(await store.list({ user: '' }, NOW)), [])
      assert.deepEqual(idsOf(await store.list({ user: 'vera', limit: 2 }, NOW)), [shell, other])
      assert.equal(idsOf(await store.list({}, NOW))[0], nobody)
    })

    it('lists page by page, over the history too', async (t) => {
      const store = await make(t)
      const ids = await requestMany(store, 5)
      for (const id of ids) await store.decide(id, verdict('reject'))
      const pages: string[][] = []
      for (let before: string | undefined; ; before = pages.at(-1)?.at(-1)) {
        const page = idsOf(await store.list({ limit: 2, ...(before === undefined ? {} : { before }) }, NOW))
        if (page.length === 0) break
        pages.push(page)
      }
      assert.deepEqual(pages.flat(), ids.toReversed())
      assert.deepEqual(await store.list({ before: 'nothing' }, NOW), [])
    })

    it('shows what was decided by whom when it is over', async (t) => {
      const store = await make(t)
      const { id } = await approved(store)
      await store.consume(id, NOW)
      const [over] = await store.list({}, NOW)
      assert.deepEqual([over?.status, over?.decidedBy, over?.decidedAt, over?.input], ['consumed', 'ada', NOW, {}])
    })

    it('refuses a user of a tenant the 101st pending one, and keeps the others', async (t) => {
      const store = await make(t)
      await requestMany(store, 100)
      const another = async (fields: Partial<ApprovalBinding>): Promise<unknown> =>
        store.request({ ...BINDING, inputHash: 'new', ...fields }, {}, NOW)
      await assert.rejects(another({}), { code: 'approval_too_many' })
      await another({ user: 'ada' })
      await another({ tenant: undefined })
      await another({ inputHash: 'input-0' })
      assert.equal((await store.list({ status: 'pending', limit: 1000 }, NOW)).length, 102)
    })

    it('refuses a user of a tenant more than 8 million characters of pending inputs', async (t) => {
      const store = await make(t)
      const ask = async (inputHash: string, length: number, user = 'vera') =>
        store.request({ ...BINDING, inputHash, user }, { text: 'x'.repeat(length) }, NOW)
      const first = await ask('a', 4_000_000)
      await assert.rejects(ask('b', 4_000_000), { code: 'approval_too_many', message: /8000000 characters/ })
      await ask('b', 3_900_000)
      await ask('a', 4_000_000)
      await ask('b', 4_000_000, 'ada')
      await store.decide(first.id, verdict('reject'))
      await ask('c', 4_000_000)
    })

    it('lets a user ask again once one was decided, or all have expired', async (t) => {
      const store = await make(t)
      const ids = await requestMany(store, 100)
      await store.decide(ids[5] as string, verdict('reject'))
      const ask = async (inputHash: string, nowMs: number) => store.request({ ...BINDING, inputHash }, {}, nowMs)
      const next = await ask('next', NOW)
      await assert.rejects(ask('more', NOW), { code: 'approval_too_many' })
      for (let i = 0; i < 100; i++) await ask(`later-${i}`, next.expiresAt)
    })

    it('gives an id that was given back to the next request of its binding, unless there is a newer one', async (t) => {
      const store = await make(t)
      const older = await approved(store)
      await store.consume(older.id, NOW)
      const newer = await store.request(BINDING, {}, NOW)
      await store.decide(newer.id, verdict('reject'))
      await store.giveBack(older.id)
      assert.equal((await store.request(BINDING, {}, NOW)).id, newer.id)
    })

    it('gives approvals that cannot be changed', async (t) => {
      const store = await make(t)
      const { id } = await store.request(BINDING, { list: [1] }, NOW)
      const approval = (await store.get(id, NOW)) as Approval
      assert.throws(() => Object.assign(approval, { status: 'approved' }), TypeError)
    })
  })
}

const NOW = 1_700_000_000_000
const BINDING: ApprovalBinding = {
  tenant: 'acme',
  user: 'vera',
  tool: 'files:write_file',
  definitionHash: 'definition',
  inputHash: 'input',
  run: 'run',
}

function verdict(decision: ApprovalVerdict['decision']): ApprovalVerdict {
  return { decision, by: 'ada', atMs: NOW }
}

function isToolgateError(error: unknown): boolean {
  return error instanceof ToolgateError && error.code.startsWith('approval_needs_')
}

async function isFulfilled(work: () => Promise<unknown>): Promise<boolean> {
  const [result] = await Promise.allSettled([work()])
  return result.status === 'fulfilled'
}

async function approved(store: ApprovalStore): Promise<Approval> {
  const { id } = await store.request(BINDING, {}, NOW)
  return store.decide(id, verdict('approve'))
}

async function requestMany(store: ApprovalStore, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await store.request({ ...BINDING, inputHash: `input-${i}` }, {}, NOW)).id)
  return ids
}

function idsOf(approvals: readonly Approval[]): string[] {
  return approvals.map((approval) => approval.id)
}

function undefinedToo(_key: string, value: unknown): unknown {
  return value === undefined ? 'absent' : value
}
