import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, memoryAudit } from '@toolgate/core'
import type { SeenPerson } from '@toolgate/core/stores'
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

describe('findCaller for people who signed in', () => {
  const A = 'https://a.example'
  const seen = (user: string, own: Partial<SeenPerson> = {}): SeenPerson => ({
    user,
    issuer: A,
    by: 'token',
    roles: ['viewer'],
    scopes: ['read'],
    rolesAt: 7,
    clients: [],
    firstSeenAt: 1,
    lastSeenAt: 9,
    ...own,
  })
  const all = [
    seen('a/nora', { tenant: 'acme' }),
    seen('a/vera', { tenant: 'acme' }),
    seen('a/vera', { tenant: 'beta', roles: ['admin'] }),
    seen('zoe', { roles: ['one'] }),
    seen('zoe', { issuer: 'https://b.example', roles: ['two'] }),
    seen('ben', { roles: ['admin'] }),
    seen('lea', { by: 'login', roles: [], rolesAt: undefined, consoleRoles: ['approver'], consoleRolesAt: 8 } as never),
    seen('owner', { issuer: 'key', by: 'key' }),
  ]
  const people = { list: () => all, of: (user: string) => all.filter((one) => one.user === user) }
  const ben = { keyHash: Buffer.alloc(32), for: 'mcp' as const, caller: { user: 'ben' } }
  const callers = createNamedCallers(() => [ben], people)
  const ROOT = { user: 'root' }
  const find = (as: string, person: Caller = ROOT) => findCaller(callers, { as }, person)

  it('has the roles of their latest token, and says where these are from', () => {
    const { name, caller, rolesFrom } = find('a/nora')
    assert.deepEqual(
      [name, caller],
      ['a/nora', { user: 'a/nora', tenant: 'acme', roles: ['viewer'], scopes: ['read'] }],
    )
    assert.deepEqual(rolesFrom, { by: 'token', issuer: A, at: 7 })
    assert.deepEqual(find('lea').caller.roles, ['approver'])
    assert.deepEqual(find('lea').rolesFrom, { by: 'login', issuer: A, at: 8 })
  })

  it('names one of several by the tenant or the issuer, and never merges two', () => {
    assert.deepEqual(
      callers.signedIn(ROOT).map(({ name, caller }) => [name, caller.roles]),
      [
        ['a/nora', ['viewer']],
        ['a/vera of acme', ['viewer']],
        ['a/vera of beta', ['admin']],
        [`zoe from ${A}`, ['one']],
        ['zoe from https://b.example', ['two']],
        [`ben from ${A}`, ['admin']],
        ['lea', ['approver']],
      ],
    )
    for (const { name, caller } of callers.signedIn(ROOT)) assert.deepEqual(find(name).caller, caller)
    assert.throws(() => find('zoe'), { code: 'caller_unknown' })
    assert.deepEqual(find('ben').caller, { user: 'ben' }, 'a caller of the file keeps its name')
  })

  it('takes nobody for another whose name they gave themselves', () => {
    const own = [
      seen('a/vera of acme', { roles: ['own'] }),
      seen('zoe from https://b.example', { roles: ['own'] }),
      seen('"a/vera of acme"', { roles: ['quoted'] }),
      seen('"', { roles: ['quote'] }),
    ]
    const both = [...own, ...all]
    const crowd = { list: () => both, of: (user: string) => both.filter((one) => one.user === user) }
    const named = createNamedCallers(() => [ben], crowd)
    const rows = named.signedIn(ROOT)
    assert.deepEqual(
      rows.slice(0, 2).map(({ name }) => name),
      ['"a/vera of acme"', '"zoe from https://b.example"'],
    )
    assert.equal(new Set(rows.map(({ name }) => name)).size, rows.length)
    for (const { name, caller } of rows) assert.deepEqual(findCaller(named, { as: name }, ROOT).caller, caller, name)
    assert.equal(findCaller(named, { as: 'a/vera of acme' }, ROOT).caller.tenant, 'acme')
  })

  it('shows a person of a tenant nobody of another, not even in a name', () => {
    const acme = { user: 'boss', tenant: 'acme' }
    assert.equal(find('a/vera', acme).caller.tenant, 'acme')
    for (const name of ['a/vera of beta', 'lea', 'zoe', `zoe from ${A}`])
      assert.throws(() => find(name, acme), /^ApiFault: No caller is named "[^"]+"; known are a\/nora, a\/vera\./)
  })

  it('names the nearest if nobody has the name', () => {
    assert.throws(() => find('a/norra'), /Did you mean "a\/nora"\?/)
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
