import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { grantStoreContract } from '../../../testing/src/grant-store.ts'
import type { NewGrant } from '../ports/grants.ts'
import { parseGrantRules } from './grant-rules.ts'
import { memoryGrants } from './grants.ts'

grantStoreContract('memoryGrants', async () => ({ store: memoryGrants() }))

describe('memoryGrants', () => {
  it('keeps 10,000 grants: ended ones go first, live ones never', () => {
    const store = memoryGrants()
    const make = (i: number) =>
      store.create(
        {
          id: `g${i}`,
          tenant: undefined,
          user: `u${i}`,
          tool: 'pay',
          definitionHash: 'd',
          run: undefined,
          covers: 'tool',
          clauses: [],
          uses: 1,
          grantedBy: 'olga',
          grantedAt: 0,
          expiresAt: 1000,
        } satisfies NewGrant,
        0,
      )
    for (let i = 0; i < 10_000; i++) void make(i)
    assert.throws(() => make(10_000), { code: 'grant_too_many' })
    void store.take('g5', 0, 's')
    void make(10_000)
    assert.equal(store.get('g5', 0), undefined)
    assert.throws(() => make(10_001), { code: 'grant_too_many' })
  })
})

describe('parseGrantRules', () => {
  it('knows the bounds, and refuses others', () => {
    assert.deepEqual(parseGrantRules({ maxMs: 5 }), { maxMs: 5, maxUses: 100, by: undefined })
    assert.equal(parseGrantRules(undefined), undefined)
    for (const wrong of [{}, { maxMs: 0 }, { maxMs: 1.5 }, { maxMs: 1e12 }, { maxMs: 5, maxUses: 1001 }])
      assert.throws(() => parseGrantRules(wrong as { maxMs: number }), { code: 'config_invalid' })
    assert.throws(() => parseGrantRules({ maxMs: 5, by: 'me' as 'other' }), { code: 'config_invalid' })
    assert.throws(() => parseGrantRules({ maxMs: 5, maxUse: 3 } as { maxMs: number }), /did you mean "maxUses"/)
  })
})
