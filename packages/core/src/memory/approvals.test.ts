import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ApprovalBinding } from '../ports.ts'
import { approvalStoreContract } from '../testing/approval-store.ts'
import { memoryApprovals } from './approvals.ts'

approvalStoreContract('memoryApprovals', () => memoryApprovals())

const NOW = 1_700_000_000_000

function binding(fields: Partial<ApprovalBinding> = {}): ApprovalBinding {
  return { tenant: 'acme', user: 'vera', tool: 'pay', definitionHash: 'd', inputHash: 'i', run: undefined, ...fields }
}

describe('memoryApprovals', () => {
  it('lets an approval live for ten minutes, or as long as it is told', async () => {
    assert.equal((await memoryApprovals().request(binding(), {}, NOW)).expiresAt, NOW + 600_000)
    assert.equal((await memoryApprovals({ ttlMs: 5 }).request(binding(), {}, NOW)).expiresAt, NOW + 5)
  })

  it('uses ids that cannot be guessed, or those it is given', async () => {
    assert.match((await memoryApprovals().request(binding(), {}, NOW)).id, /^[\da-f-]{36}$/)
    assert.equal((await memoryApprovals({ randomId: () => 'a1' }).request(binding(), {}, NOW)).id, 'a1')
  })

  it('refuses a user of a tenant the 101st pending one, and keeps the others', async () => {
    const store = memoryApprovals()
    for (let i = 0; i < 100; i++) await store.request(binding({ inputHash: `${i}` }), {}, NOW)
    const another = async (fields: Partial<ApprovalBinding>): Promise<unknown> =>
      store.request(binding({ inputHash: 'new', ...fields }), {}, NOW)
    await assert.rejects(another({}), { code: 'approval_forbidden' })
    await another({ user: 'ada' })
    await another({ tenant: undefined })
    await store.request(binding({ inputHash: '0' }), {}, NOW)
    assert.equal((await store.list({ status: 'pending', limit: 1000 }, NOW)).length, 102)
  })

  it('refuses a user of a tenant more than 8 million characters of pending inputs', async () => {
    const store = memoryApprovals()
    const ask = async (inputHash: string, length: number, user = 'vera') =>
      store.request(binding({ inputHash, user }), { text: 'x'.repeat(length) }, NOW)
    const first = await ask('a', 4_000_000)
    await assert.rejects(ask('b', 4_000_000), { code: 'approval_forbidden', message: /8000000 characters/ })
    await ask('b', 3_900_000)
    await ask('a', 4_000_000)
    await ask('b', 4_000_000, 'ada')
    await store.decide(first.id, { decision: 'reject', by: 'ada', atMs: NOW })
    await ask('c', 4_000_000)
  })

  it('lets a user ask again once one was decided, or all have expired', async () => {
    const store = memoryApprovals({ ttlMs: 1000 })
    const ids: string[] = []
    for (let i = 0; i < 100; i++) ids.push((await store.request(binding({ inputHash: `${i}` }), {}, NOW)).id)
    await store.decide(ids[5] ?? '', { decision: 'reject', by: 'ada', atMs: NOW })
    await store.request(binding({ inputHash: 'next' }), {}, NOW)
    await assert.rejects(async () => store.request(binding({ inputHash: 'more' }), {}, NOW), {
      code: 'approval_forbidden',
    })
    for (let i = 0; i < 100; i++) await store.request(binding({ inputHash: `later-${i}` }), {}, NOW + 1000)
  })

  it('forgets an approval once it has been over for as long as it lived', async () => {
    const store = memoryApprovals({ ttlMs: 1000 })
    const { id } = await store.request(binding(), {}, NOW)
    await store.request(binding({ inputHash: 'b' }), {}, NOW + 1999)
    assert.equal((await store.get(id, NOW + 1999))?.status, 'expired')
    await store.request(binding({ inputHash: 'c' }), {}, NOW + 2000)
    assert.equal(await store.get(id, NOW + 2000), undefined)
  })

  it('keeps 10,000 at most: finished ones go first, live ones never', async () => {
    const store = memoryApprovals()
    const { id } = await store.request(binding(), {}, NOW)
    for (let i = 1; i < 10_000; i++) await store.request(binding({ user: `u${i}` }), {}, NOW)
    await assert.rejects(async () => store.request(binding({ user: 'last' }), {}, NOW), { code: 'approval_forbidden' })
    await store.decide(id, { decision: 'approve', by: 'ada', atMs: NOW })
    await assert.rejects(async () => store.request(binding({ user: 'last' }), {}, NOW), { code: 'approval_forbidden' })
    await store.consume(id, NOW)
    await store.request(binding({ user: 'last' }), {}, NOW)
    assert.equal(await store.get(id, NOW), undefined)
  })

  it('leaves a newer approval in place when an older one of its binding is given back', async () => {
    const store = memoryApprovals()
    const older = await store.request(binding(), {}, NOW)
    await store.decide(older.id, { decision: 'approve', by: 'ada', atMs: NOW })
    await store.consume(older.id, NOW)
    const newer = await store.request(binding(), {}, NOW)
    await store.decide(newer.id, { decision: 'reject', by: 'ada', atMs: NOW })
    await store.giveBack(older.id)
    assert.equal((await store.request(binding(), {}, NOW)).id, newer.id)
  })

  it('cannot be changed through what it gave', async () => {
    const approval = await memoryApprovals().request(binding(), {}, NOW)
    assert.throws(() => Object.assign(approval, { status: 'approved' }), TypeError)
  })
})
