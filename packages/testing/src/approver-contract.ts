import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ApprovalBinding, ApprovalStore, ApprovalVerdict, ApproverRule } from '@toolgate/core/stores'

const NOW = 1_000_000
const BINDING: ApprovalBinding = {
  tenant: 'acme',
  user: 'vera',
  tool: 'pay',
  definitionHash: 'd1',
  inputHash: 'i1',
  run: undefined,
}

/** Defines the tests of approvals that need several people, or that people change. Every approval store passes them. */
export function approverContract(name: string, make: (t: TestContext) => Promise<ApprovalStore>): void {
  const ask = async (t: TestContext, approver: ApproverRule) => {
    const store = await make(t)
    const { id } = await store.request({ ...BINDING, approver }, { amount: 150, to: 'bob' }, NOW)
    let atMs = NOW
    const say = async (by: string, more: Partial<ApprovalVerdict> = {}) =>
      store.decide(id, { decision: 'approve', by, atMs: ++atMs, ...more })
    return { store, id, say, now: async () => store.get(id, atMs) }
  }
  const TWO: ApproverRule = { by: 'other', count: 2 }
  const MIXED: ApproverRule = { by: 'other', roles: { finance: 1, security: 1 } }
  const as = (...roles: string[]) => ({ fills: { roles, isPlain: false } })

  describe(`${name} (approver contract)`, () => {
    it('stays pending until the last needed person has approved, and keeps each yes', async (t) => {
      const { store, id, say, now } = await ask(t, TWO)
      const first = await say('ada', { reason: 'fine' })
      assert.deepEqual([first.status, first.decidedBy], ['pending', undefined])
      assert.deepEqual(first.approvedBy, [{ by: 'ada', atMs: NOW + 1, reason: 'fine' }])
      assert.deepEqual(await now(), first)
      assert.equal(await store.consume(id, NOW + 1), false)
      const second = await say('bob')
      assert.deepEqual([second.status, second.decidedBy, second.approvedBy?.length], ['approved', 'bob', 2])
      assert.deepEqual(await now(), second)
      assert.equal(await store.consume(id, NOW + 2), true)
    })

    it('counts a person once, under any of their names', async (t) => {
      const { say, now } = await ask(t, TWO)
      await say('ada', { behind: ['corp/1'] })
      for (const [by, behind] of [['ada'], ['corp/1'], ['robot', ['ada']], ['robot', ['corp/1']]] as const)
        await assert.rejects(say(by, behind ? { behind } : {}), { code: 'approval_decided' })
      assert.equal((await now())?.approvedBy?.length, 1)
    })

    it('takes no yes from the people behind the call, under any of their names', async (t) => {
      const store = await make(t)
      const binding = { ...BINDING, aliases: ['corp/7'], keyMadeBy: 'owner', behind: ['host'], approver: TWO }
      const { id, aliases } = await store.request(binding, {}, NOW)
      assert.deepEqual(aliases, ['corp/7'])
      const wrong = [{ by: 'vera' }, { by: 'corp/7' }, { by: 'x', behind: ['corp/7'] }, { by: 'x', behind: ['host'] }]
      for (const who of [...wrong, { by: 'owner' }])
        await assert.rejects(async () => store.decide(id, { decision: 'approve', atMs: NOW, ...who }), {
          code: 'approval_needs_other',
        })
    })

    it('asks again where other names of the user are known', async (t) => {
      const store = await make(t)
      const one = await store.request(BINDING, {}, NOW)
      assert.notEqual((await store.request({ ...BINDING, aliases: ['corp/7'] }, {}, NOW)).id, one.id)
    })

    it('ends with one rejection at any time', async (t) => {
      const { say } = await ask(t, TWO)
      await say('ada')
      assert.equal((await say('vera', { decision: 'reject' })).status, 'rejected')
      await assert.rejects(say('bob'), { code: 'approval_decided' })
    })

    it('lets a person take back their own yes, and no other one', async (t) => {
      const { say, now } = await ask(t, { ...TWO, count: 3 })
      await say('ada')
      await say('bob')
      await assert.rejects(say('eve', { decision: 'revoke' }), { code: 'approval_not_revocable' })
      const left = await say('ada', { decision: 'revoke' })
      assert.deepEqual([left.status, left.approvedBy?.map(({ by }) => by)], ['pending', ['bob']])
      const none = await say('bob', { decision: 'revoke' })
      assert.equal('approvedBy' in none, false)
      assert.deepEqual(await now(), none)
    })

    it('needs each role of another person', async (t) => {
      const { say } = await ask(t, MIXED)
      await assert.rejects(say('eve', as()), { code: 'approval_forbidden' })
      assert.equal((await say('ada', as('finance', 'security'))).status, 'pending')
      // She moves to the other place.
      assert.equal((await say('bob', as('finance'))).status, 'approved')
      const again = await ask(t, MIXED)
      await again.say('ada', as('finance'))
      assert.equal((await again.say('bob', as('finance'))).status, 'pending')
      assert.equal((await again.say('cem', as('security'))).status, 'approved')
    })

    it('needs an approver beside the roles, where rules demand both', async (t) => {
      const { say } = await ask(t, { ...MIXED, roles: { finance: 1 }, count: 1 })
      assert.equal((await say('ada', as('finance'))).status, 'pending')
      assert.equal((await say('bob', { fills: { roles: [], isPlain: true } })).status, 'approved')
    })

    it('takes each login that is recent enough', async (t) => {
      const { say } = await ask(t, { ...TWO, loginMs: 1000 })
      await say('ada', { loginAt: NOW })
      await assert.rejects(say('bob', { loginAt: NOW - 5000 }), { code: 'approval_needs_login' })
      assert.equal((await say('bob', { loginAt: NOW })).status, 'approved')
    })

    it('loses no yes of people who decide at once, and counts none twice', async (t) => {
      const { say, now } = await ask(t, { ...TWO, count: 3 })
      const names = ['ada', 'bob', 'cem', 'dan', 'eve'].flatMap((one) => [one, one, one])
      const said = await Promise.allSettled(names.map(async (by) => say(by)))
      assert.equal(said.filter(({ status }) => status === 'fulfilled').length, 3)
      const { status, approvedBy = [] } = (await now()) ?? {}
      assert.deepEqual([status, new Set(approvedBy.map(({ by }) => by)).size, approvedBy.length], ['approved', 3, 3])
    })

    it('does not both take back a yes and complete it', async (t) => {
      const { say, now } = await ask(t, TWO)
      await say('ada')
      await Promise.allSettled([say('bob'), say('ada', { decision: 'revoke' })])
      const { status, approvedBy = [] } = (await now()) ?? {}
      const names = approvedBy.map(({ by }) => by).join(' ')
      assert.ok(
        ['approved ada bob', 'pending bob', 'revoked ada bob'].includes(`${status} ${names}`),
        `${status} ${names}`,
      )
    })

    it('keeps what an approver changed', async (t) => {
      const { say, now } = await ask(t, { edit: true })
      const changed = await say('ada', { input: { amount: 100 } })
      assert.deepEqual(
        [changed.status, changed.edit],
        ['approved', { by: 'ada', atMs: NOW + 1, input: { amount: 100 } }],
      )
      assert.deepEqual(await now(), changed)
    })

    it('takes no change where a rule does not allow it, nor one with a masked part', async (t) => {
      const strict = await ask(t, TWO)
      await assert.rejects(strict.say('ada', { input: { amount: 1 } }), { code: 'approval_edit_refused' })
      const { say, now } = await ask(t, { edit: true })
      for (const note of ['[redacted:secret]', 'a\n[hidden here: 12 characters, which are more than one word]'])
        await assert.rejects(say('ada', { input: { to: { note } } }), {
          code: 'approval_edit_refused',
          message: /"to"/,
        })
      assert.equal((await now())?.status, 'pending')
    })

    it('lets all approve the same input', async (t) => {
      const edited = await ask(t, { ...TWO, edit: true })
      await edited.say('ada', { input: { amount: 100 } })
      for (const input of [undefined, { amount: 99 }])
        await assert.rejects(edited.say('bob', input ? { input } : {}), {
          code: 'approval_edit_refused',
          message: /ada changed amount/,
        })
      assert.equal((await edited.say('bob', { input: { amount: 100 } })).status, 'approved')
      const plain = await ask(t, { ...TWO, edit: true })
      await plain.say('ada')
      await assert.rejects(plain.say('bob', { input: { amount: 100 } }), { code: 'approval_edit_refused' })
      const back = await ask(t, { ...TWO, edit: true })
      await back.say('ada', { input: { amount: 100 } })
      assert.equal('edit' in (await back.say('ada', { decision: 'revoke' })), false)
    })
  })
}
