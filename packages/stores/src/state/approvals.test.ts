import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ApprovalBinding } from '@toolgate/core/stores'
import { openScratchStores } from '../testing/open-scratch-stores.ts'

const NOW = 1_700_000_000_000
const DAY_MS = 86_400_000

function binding(user: string): ApprovalBinding {
  return { tenant: 'acme', user, tool: 'pay', definitionHash: 'd', inputHash: 'i', run: undefined }
}

describe('the approvals of openSqliteStores', () => {
  it('live for ten minutes, or as long as configured', async (t) => {
    const { approvals } = openScratchStores(t)
    assert.equal((await approvals.request(binding('vera'), {}, NOW)).expiresAt, NOW + 600_000)
    const brief = openScratchStores(t, { approvals: { ttlMs: 5 } })
    assert.equal((await brief.approvals.request(binding('vera'), {}, NOW)).expiresAt, NOW + 5)
  })

  it('are shown as history for 30 days after they were over', async (t) => {
    const { approvals } = openScratchStores(t)
    const { id, expiresAt } = await approvals.request(binding('vera'), {}, NOW)
    await approvals.request(binding('ada'), {}, expiresAt + 30 * DAY_MS - 1)
    assert.equal((await approvals.get(id, expiresAt + 30 * DAY_MS - 1))?.status, 'expired')
    await approvals.request(binding('eve'), {}, expiresAt + 30 * DAY_MS)
    assert.equal(await approvals.get(id, expiresAt + 30 * DAY_MS), undefined)
  })

  it('are kept up to a number: finished ones go first, live ones never', async (t) => {
    const { approvals } = openScratchStores(t, { approvals: { maxKept: 3 } })
    const ids: string[] = []
    for (const user of ['a', 'b', 'c']) ids.push((await approvals.request(binding(user), {}, NOW)).id)
    const another = async () => approvals.request(binding('d'), {}, NOW)
    await assert.rejects(another, { code: 'approval_too_many', message: /Try again later/ })
    await approvals.decide(ids[1] as string, { decision: 'approve', by: 'ada', atMs: NOW })
    await assert.rejects(another, { code: 'approval_too_many' })
    await approvals.consume(ids[1] as string, NOW)
    const { id } = await another()
    assert.deepEqual(
      (await approvals.list({}, NOW)).map((approval) => approval.id),
      [id, ids[2], ids[0]],
    )
  })

  it('are kept up to 256 million characters of inputs', async (t) => {
    const { approvals } = openScratchStores(t)
    const input = { text: 'x'.repeat(7_900_000) }
    for (let i = 0; i < 32; i++) await approvals.request(binding(`u${i}`), input, NOW)
    await assert.rejects(async () => approvals.request(binding('more'), input, NOW), { code: 'approval_too_many' })
    await approvals.request(binding('more'), input, NOW + 600_000)
  })

  it('keep users with any names apart', async (t) => {
    const { approvals } = openScratchStores(t)
    for (const user of ['a', 'a\0', 'a\0b', 'a\uD800', 'a\uDBFF', '', '__proto__']) {
      const { id } = await approvals.request(binding(user), {}, NOW)
      const found = await approvals.list({ user }, NOW)
      assert.deepEqual(
        found.map((approval) => [approval.id, approval.user]),
        [[id, user]],
      )
    }
  })
})
