import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool, memoryAudit } from '@toolgate/core'
import type { SeenPerson } from '@toolgate/core/stores'
import type { People } from '../../auth/people.ts'
import type { KeyRow } from '../../model/key-row.ts'
import { CountedAudit } from '../overview/counted-audit.ts'
import { createListCosts } from '../overview/list-costs.ts'
import { createNamedCallers } from '../http/callers.ts'
import { heartOf } from '../../testing/heart.ts'
import type { Keys } from '../../auth/keys.ts'
import type { Connections } from '../../servers/connections/connections.ts'
import { peopleRoute } from './routes.ts'
import type { PeopleBody } from '../../model/rows.ts'

const OWNER: Caller = { user: 'owner', roles: ['approver'] }
const CALLERS: readonly (readonly [use: 'mcp' | 'console', caller: Caller])[] = [
  ['mcp', { user: 'vera', roles: ['viewer'] }],
  ['mcp', { user: 'vera', tenant: 'acme', roles: ['admin'] }],
  ['console', { user: 'vera', tenant: 'acme' }],
  ['console', OWNER],
]

describe('GET /api/people', () => {
  it('has one row for each user of a tenant: configured, logged in, and seen in the last week', async () => {
    const { people, total, tenants, roles, isComplete } = await ask('')
    assert.deepEqual(
      people.map(({ name, tenant, callers }) => [name, tenant, callers.map((one) => `${one.as} ${one.for}`)]),
      [
        ['gone', undefined, []],
        ['mail/nora', 'acme', []],
        ['mail/otto', 'other', []],
        ['owner', undefined, ['owner console']],
        ['vera', undefined, ['vera mcp']],
        ['vera', 'acme', ['vera#2 mcp', 'vera#3 console']],
      ],
    )
    assert.deepEqual([total, tenants, isComplete], [6, ['acme', 'other'], true])
    assert.deepEqual(roles, ['admin', 'approver', 'reader', 'viewer'])
    const [, nora, , owner, vera, ofAcme] = people
    assert.deepEqual([nora?.seenRoles, nora?.calls, nora?.refused], [['reader'], 2, 1])
    assert.deepEqual([owner?.isSelf, vera?.isSelf], [true, undefined])
    assert.deepEqual([vera?.callers[0]?.visible, ofAcme?.callers[0]?.visible], [1, 2])
    assert.ok((ofAcme?.callers[0]?.tokens ?? 0) > (vera?.callers[0]?.tokens ?? 0))
    assert.equal(ofAcme?.callers[1]?.visible, undefined, 'a person has no list')
  })

  it('has a row for each person who signed in, of two issuers too, with the roles of their latest token', async () => {
    const seen = { by: 'token', scopes: [], clients: ['app'], firstSeenAt: 1, lastSeenAt: 9, rolesAt: 9 } as const
    const noted: readonly SeenPerson[] = [
      { ...seen, user: 'mail/nora', tenant: 'acme', issuer: 'https://a.example', roles: ['admin'] },
      { ...seen, user: 'zoe', issuer: 'https://a.example', roles: ['one'], label: 'Zoe Z' },
      { ...seen, user: 'zoe', issuer: 'https://b.example', roles: ['admin'], firstSeenAt: 2 },
      { ...seen, user: 'vera', issuer: 'key', by: 'key', roles: [] },
    ]
    const { people, since, roles } = await ask('', OWNER, noted)
    const nora = people.find(({ name }) => name === 'mail/nora')
    assert.deepEqual([nora?.calls, nora?.seenRoles, nora?.visible, nora?.as], [2, ['admin'], 2, 'mail/nora'])
    assert.deepEqual(nora?.rolesFrom, { by: 'token', issuer: 'https://a.example', at: 9 })
    assert.deepEqual([nora?.clients, nora?.firstSeenAt, nora?.lastSeenAt, nora?.cameBy], [['app'], 1, 9, 'token'])
    assert.deepEqual(
      people.filter(({ name }) => name === 'zoe').map((one) => [one.as, one.issuer, one.seenRoles, one.visible]),
      [
        ['zoe from https://a.example', 'https://a.example', ['one'], 1],
        ['zoe from https://b.example', 'https://b.example', ['admin'], 2],
      ],
    )
    const vera = people.find(({ name, tenant }) => name === 'vera' && tenant === undefined)
    assert.deepEqual([vera?.cameBy, vera?.lastSeenAt, vera?.issuer, vera?.callers.length], ['key', 9, undefined, 1])
    assert.equal(since, 1)
    const called = await ask('text=zoe%20Z', OWNER, noted)
    assert.deepEqual(
      called.people.map(({ name, label }) => [name, label]),
      [['zoe', 'Zoe Z']],
    )
    assert.ok(roles.includes('one'))
    const ofAcme = await ask('', { user: 'boss', tenant: 'other', roles: ['approver'] }, noted)
    assert.deepEqual(
      ofAcme.people.map(({ name }) => name),
      ['boss', 'mail/otto'],
    )
  })

  it('sums the keys of each user, without those that open nothing', async () => {
    const { people } = await ask('')
    assert.deepEqual(people.find(({ name, tenant }) => name === 'vera' && tenant === 'acme')?.keys, {
      count: 2,
      unusable: 1,
      expiresAt: 9000,
      lastUsedAt: 50,
    })
    assert.deepEqual(people[0]?.keys, { count: 1, unusable: 1 })
  })

  it('shows a person of a tenant nobody else, and no keys', async () => {
    const { people, tenants } = await ask('', { user: 'boss', tenant: 'acme', roles: ['approver'] })
    assert.deepEqual(
      people.map(({ name, tenant, keys }) => [name, tenant, keys]),
      [
        ['boss', 'acme', undefined],
        ['mail/nora', 'acme', undefined],
        ['vera', 'acme', undefined],
      ],
    )
    assert.deepEqual(tenants, ['acme'])
  })

  it('shows connections of others to approvers only', async () => {
    const connected = async (person: Caller) =>
      (await ask('', person)).people.filter((row) => row.connections).map(({ name, tenant }) => [name, tenant])
    assert.equal((await connected(OWNER)).length, 6)
    assert.deepEqual(await connected({ user: 'vera', roles: ['operator'] }), [['vera', undefined]])
    assert.deepEqual(await connected({ user: 'boss', tenant: 'acme', roles: ['operator'] }), [['boss', 'acme']])
    assert.equal((await connected({ user: 'boss', tenant: 'acme', roles: ['approver'] })).length, 3)
  })

  it('sorts everybody before it takes a page', async () => {
    const first = async (order: string) => {
      const { people } = await ask(`order=${order}&limit=1`)
      return people.map(({ name, tenant }) => `${tenant ?? ''}/${name}`)
    }
    assert.deepEqual(await first('calls'), ['acme/mail/nora'])
    assert.deepEqual(await first('tokens'), ['acme/vera'])
    assert.deepEqual(await first('expiry'), ['acme/vera'])
    const seen = { by: 'token', scopes: [], clients: [], firstSeenAt: 1, rolesAt: 9, roles: [] } as const
    const issuer = 'https://a.example'
    const zoe = { ...seen, user: 'zoe', issuer, lastSeenAt: Number.MAX_SAFE_INTEGER }
    const names = async (order: string) =>
      (await ask(`order=${order}`, OWNER, [{ ...seen, user: 'abe', issuer, lastSeenAt: 1 }, zoe])).people.map(
        ({ name }) => name,
      )
    assert.equal((await names('lastSeen'))[0], 'zoe')
    assert.ok(['mail/nora', 'mail/otto'].includes((await names('lastCall'))[0] ?? ''))
    const equal = (await names('calls')).slice(2)
    assert.deepEqual(equal, equal.toSorted(), 'equal ones are by name')
  })

  it('filters by text, tenant and role, and bounds its rows', async () => {
    const names = async (query: string) => (await ask(query)).people.map(({ name }) => name)
    assert.deepEqual(await names('text=OTTO'), ['mail/otto'])
    assert.deepEqual(await names('tenant=acme&role=admin'), ['vera'])
    assert.deepEqual(await names('role=reader'), ['mail/nora'])
    const { people, total, from } = await ask('from=1&limit=1')
    assert.deepEqual([people.map(({ name }) => name), total, from], [['mail/nora'], 6, 1])
    await assert.rejects(ask('order=age'), { code: 'query_invalid', message: /lastCall/ })
    await assert.rejects(ask('limit=2001'), { code: 'query_invalid' })
    await assert.rejects(ask('tenants=a'), { code: 'query_invalid' })
  })
})

async function ask(query: string, person: Caller = OWNER, noted: readonly SeenPerson[] = []): Promise<PeopleBody> {
  const audit = memoryAudit({ inputs: 'facts' })
  const common = { wallMs: Date.now(), policy_revision: 1, catalog_revision: 1, tool: 'files:read' }
  const nora: Caller = { user: 'mail/nora', tenant: 'acme', roles: ['reader'] }
  const facts = { caller: nora, operands: () => ({ input: [], attributes: [] }) }
  audit.write({ ...common, event: 'tool_result', user_id: 'mail/nora', tenant: 'acme' })
  audit.write({
    ...common,
    event: 'tool_blocked',
    user_id: 'mail/nora',
    tenant: 'acme',
    asked: facts,
    input: {},
  } as never)
  audit.write({ ...common, event: 'tool_result', user_id: 'mail/otto', tenant: 'other' })
  const gate = createGate({
    tools: ['read', 'write'].map((name) => defineTool({ namespace: 'files', name, description: 'Does it.' })),
    policy: { allow: ['*'], deny: [{ match: 'files:write', unless: "'admin' in caller.roles" }] },
  })
  const clock = { monotonicMs: () => 0, wallMs: () => Date.now() }
  const callers = CALLERS.map(([use, caller], i) => ({ keyHash: Buffer.alloc(32, i), for: use, caller }))
  const key = { for: 'mcp', from: 'made', isExpired: false } as const
  const keys: readonly KeyRow[] = [
    { ...key, id: 'a', user: 'vera', tenant: 'acme', expiresAt: 9000, lastUsedAt: 50 },
    { ...key, id: 'b', user: 'vera', tenant: 'acme', expiresAt: 5, isExpired: true },
    { ...key, id: 'c', user: 'gone', isOrphan: true },
  ]
  const { door, ...heart } = heartOf({ gate, audit, clock, callers })
  const { servers, ...rest } = heart
  const deps = {
    ...rest,
    door: {
      ...door,
      people: peopleOf(noted),
      keys: { list: () => keys, isExpired: () => false } as Partial<Keys> as Keys,
    },
    servers: { ...servers, connections: { rowsOf: () => [{ server: 'mail' }] } as Partial<Connections> as Connections },
  }
  const counts = { counted: new CountedAudit({ audit, clock, waitMs: 60_000 }), costs: createListCosts() }
  const route = peopleRoute(
    deps,
    createNamedCallers(() => callers, deps.door.people),
    counts,
  )
  try {
    const request = new Request('http://gateway/api/people')
    const body = await route({ request, query: new URLSearchParams(query), person, loginAt: 0, id: '' })
    return body as PeopleBody
  } finally {
    await gate.close()
  }
}

function peopleOf(noted: readonly SeenPerson[]): People {
  const people = { list: () => noted, of: (user: string) => noted.filter((one) => one.user === user) }
  return people as Partial<People> as People
}
