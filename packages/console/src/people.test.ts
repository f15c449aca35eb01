import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  countByPerson,
  haltsOn,
  joinPages,
  orderOf,
  largestList,
  lastSeenOf,
  parsePersonId,
  personId,
  rolesOf,
  whoKey,
} from './people.ts'
import type { HaltRow, PersonRow } from './wire.ts'

const person = (name: string, more: Partial<PersonRow> = {}): PersonRow => ({
  name,
  user: name,
  callers: [],
  calls: 0,
  refused: 0,
  ...more,
})

describe('personId', () => {
  it('differs for every user and tenant', () => {
    const ids = [person('vera'), person('vera', { tenant: 'acme' }), person('acme/vera'), person('vera@acme')].map(
      personId,
    )
    assert.deepEqual(ids, ['vera', 'acme/vera', 'acme%2Fvera', 'vera%40acme'])
  })

  it('differs for every authorization server, and is read back', () => {
    const issuer = 'https://id.example/a'
    for (const row of [{}, { tenant: 'a/b' }, { issuer }, { tenant: 'acme', issuer }])
      assert.deepEqual(parsePersonId(personId(person('vera', row))), { name: 'vera', ...row })
  })
})

describe('lastSeenOf and largestList', () => {
  it('know people who signed in and have called nothing', () => {
    assert.equal(lastSeenOf(person('a')), undefined)
    assert.equal(lastSeenOf(person('a', { lastSeenAt: 5, lastCallAt: 3 })), 5)
    assert.equal(largestList(person('a', { visible: 3, tokens: 20 }))?.visible, 3)
    const callers = [{ as: 'a', for: 'mcp' as const, roles: [], visible: 9 }]
    assert.equal(largestList(person('a', { callers, visible: 3 }))?.visible, 9)
  })
})

describe('haltsOn', () => {
  it('finds the halts of a person, of their tenant and of everything, and none of a tool alone', () => {
    const targets: readonly HaltRow['target'][] = [
      { all: true },
      { user: 'vera' },
      { user: 'vera', tenant: 'other' },
      { tenant: 'acme', tool: 'files:*' },
      { tool: 'files:*' },
      { session: 's' },
      { user: 'otto' },
    ]
    const halts = targets.map((target, i) => ({ id: `${i}`, target }) as HaltRow)
    const idsOn = (tenant?: string) => haltsOn({ user: 'vera', tenant }, halts).map(({ id }) => id)
    assert.deepEqual(idsOn('acme'), ['0', '1', '3'])
    assert.deepEqual(idsOn('other'), ['0', '1', '2'])
    assert.deepEqual(idsOn(), ['0', '1'])
  })
})

describe('countByPerson', () => {
  it('counts a user of two tenants apart', () => {
    const counts = countByPerson([{ user: 'vera' }, { user: 'vera', tenant: 'acme' }, { user: 'vera' }])
    assert.deepEqual(
      [counts.get(whoKey({ user: 'vera' })), counts.get(whoKey({ user: 'vera', tenant: 'acme' }))],
      [2, 1],
    )
  })
})

describe('orderOf', () => {
  it('names the order of the gateway, and none for names', () => {
    assert.deepEqual(['most tokens', '', 'age'].map(orderOf), ['tokens', undefined, undefined])
  })
})

describe('joinPages', () => {
  it('has a person of two pages once', () => {
    const pages = [{ people: [person('b', {}), person('a', {})] }, { people: [person('a', {}), person('c', {})] }]
    assert.deepEqual(
      joinPages(pages).map(({ name }) => name),
      ['b', 'a', 'c'],
    )
  })
})

describe('rolesOf', () => {
  it('joins the roles of keys and of the latest call', () => {
    const callers = [{ as: 'a', for: 'mcp' as const, roles: ['x', 'b'] }]
    assert.deepEqual(rolesOf({ callers, seenRoles: ['b', 'a'] }), ['a', 'b', 'x'])
  })
})
