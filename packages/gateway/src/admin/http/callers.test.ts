import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, memoryAudit } from '@toolgate/core'
import { countFor, createNamedCallers, findCaller, maySee, queryFor } from './callers.ts'

describe('maySee', () => {
  it('lets a person of a tenant see that tenant, and one without a tenant see all', () => {
    const [acme, root] = [{ user: 'vera', tenant: 'acme' }, { user: 'owner' }]
    assert.deepEqual(
      [{ tenant: 'acme' }, { tenant: 'other' }, {}].map((one) => maySee(acme, one)),
      [true, false, false],
    )
    assert.ok([{ tenant: 'acme' }, {}].every((one) => maySee(root, one)))
  })
})

describe('createNamedCallers', () => {
  const keyOf = (caller: Caller) => ({ keyHash: Buffer.alloc(32), for: 'mcp' as const, caller })
  const beta = [keyOf({ user: 'vera', tenant: 'beta' }), keyOf({ user: 'vera', tenant: 'beta', roles: ['admin'] })]
  const all = [keyOf({ user: 'vera', tenant: 'acme' }), ...beta, keyOf({ user: 'owner' })]
  let inFile = all
  const callers = createNamedCallers(() => inFile)
  const namesFor = (person: Caller) => [...callers(person).keys()]

  it('names the callers of a tenant as if there were no other tenant', () => {
    const person = { user: 'ben', tenant: 'beta' }
    inFile = beta
    const alone = namesFor(person)
    inFile = all
    assert.deepEqual(namesFor(person), alone)
    assert.deepEqual(alone, ['vera', 'vera#2'])
    assert.deepEqual(namesFor({ user: 'owner' }), ['vera', 'vera#2', 'vera#3', 'owner'])
    assert.deepEqual(namesFor({ user: 'zoe', tenant: 'zeta' }), [])
  })

  it('are found by the name that the person sees', () => {
    const found = (as: string, person: Caller) => findCaller(callers, { as }, person).caller
    assert.deepEqual(found('vera', { tenant: 'beta' }), { user: 'vera', tenant: 'beta' })
    assert.deepEqual(found('vera#2', {}), { user: 'vera', tenant: 'beta' })
    assert.throws(() => found('vera#3', { tenant: 'beta' }), /known are vera, vera#2\./)
    assert.throws(() => found('owner', { tenant: 'beta' }), /known are vera, vera#2\./)
  })
})

describe('queryFor', () => {
  const audit = memoryAudit()
  for (let i = 0; i < 5000; i++) {
    audit.write({
      event: 'tool_call',
      wallMs: i,
      tool: 't',
      tool_call_id: String(i),
      policy_revision: 1,
      catalog_revision: 1,
      tenant: i % 1500 === 0 ? 'acme' : 'other',
    })
  }

  it('returns only the records of the tenant to a person of a tenant, newest first, however far apart they are', async () => {
    const records = await queryFor({ tenant: 'acme' }, audit, { limit: 3 })
    assert.deepEqual(
      records.map(({ tool_call_id: id }) => id),
      ['4500', '3000', '1500'],
    )
    const rest = await queryFor({ tenant: 'acme' }, audit, { limit: 3, beforeSeq: 1501 })
    assert.deepEqual(
      rest.map(({ tool_call_id: id }) => id),
      ['0'],
    )
  })

  it('passes the query of a person without a tenant on as it is', async () => {
    assert.equal((await queryFor({ user: 'owner' }, audit, { limit: 3 }))[0]?.tool_call_id, '4999')
  })
})

describe('countFor', () => {
  it('counts for a person of a tenant the records of that tenant alone, and for one without a tenant all', async () => {
    const audit = memoryAudit()
    for (const tenant of ['acme', 'other', undefined, 'acme'])
      audit.write({ event: 'tool_result', wallMs: 1, policy_revision: 1, catalog_revision: 1, tenant })
    const doneFor = async (person: Caller) =>
      (await countFor(person, audit, { since: 0, until: 2, bucketMs: 2 })).buckets[0]?.done
    assert.deepEqual([await doneFor({ tenant: 'acme' }), await doneFor({ user: 'owner' })], [2, 4])
  })
})
