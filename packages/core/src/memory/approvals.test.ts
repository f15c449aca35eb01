import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ApprovalBinding } from '../ports/ports.ts'
import { approvalStoreContract } from '../../../testing/src/approval-store.ts'
import { memoryApprovals } from './approvals.ts'

approvalStoreContract('memoryApprovals', async () => memoryApprovals())

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
    await assert.rejects(async () => store.request(binding({ user: 'last' }), {}, NOW), { code: 'approval_too_many' })
    await store.decide(id, { decision: 'approve', by: 'ada', atMs: NOW })
    await assert.rejects(async () => store.request(binding({ user: 'last' }), {}, NOW), { code: 'approval_too_many' })
    await store.consume(id, NOW)
    await store.request(binding({ user: 'last' }), {}, NOW)
    assert.equal(await store.get(id, NOW), undefined)
  })
})
