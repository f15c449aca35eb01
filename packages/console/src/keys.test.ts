import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findKeys, type KeyRow, mayManageKeys, toChoices } from './keys.ts'

function row(id: string, more: Partial<KeyRow>): KeyRow {
  return { id, for: 'mcp', user: 'vera', from: 'file', isExpired: false, ...more }
}

describe('toChoices', () => {
  it('has each user and use of the file once, console keys for oneself only, and no made key', () => {
    const keys = [
      row('one', { roles: ['a', 'b'] }),
      row('two', { roles: ['b', 'a'] }),
      row('udo', { user: 'udo', tenant: 'acme' }),
      row('me', { user: 'owner', for: 'console' }),
      row('other', { user: 'ada', for: 'console' }),
      row('namesake', { user: 'owner', tenant: 'acme', for: 'console' }),
      row('made', { user: 'mia', from: 'made' }),
    ]
    assert.deepEqual(toChoices(keys, 'owner'), [
      { text: 'vera, agent', asked: { for: 'mcp', user: 'vera' } },
      { text: 'udo of acme, agent', asked: { for: 'mcp', user: 'udo', tenant: 'acme' } },
      { text: 'owner, person', asked: { for: 'console', user: 'owner' } },
    ])
  })

  it('names each key of a user whose keys have different roles', () => {
    assert.deepEqual(toChoices([row('ci', { roles: ['b'] }), row('laptop', { roles: [] })], 'owner'), [
      { text: 'vera, agent like ci (b)', asked: { for: 'mcp', user: 'vera', like: 'ci' } },
      { text: 'vera, agent like laptop (no roles)', asked: { for: 'mcp', user: 'vera', like: 'laptop' } },
    ])
  })
})

describe('findKeys', () => {
  it('finds keys by all words, in any case, in the id, the user, the tenant, the use and the roles', () => {
    const keys = [row('one', { roles: ['viewer'] }), row('two', { user: 'Udo', tenant: 'acme', for: 'console' })]
    const found = (text: string) => findKeys(keys, text).map(({ id }) => id)
    assert.deepEqual(
      [found('ACME udo'), found('vera view'), found('person'), found('none')],
      [['two'], ['one'], ['two'], []],
    )
    assert.equal(findKeys(keys, ' '), keys)
  })
})

describe('mayManageKeys', () => {
  it('is for operators and approvers without a tenant', () => {
    assert.equal(mayManageKeys({ roles: ['operator'] }), true)
    assert.equal(mayManageKeys({ roles: ['viewer'] }), false)
    assert.equal(mayManageKeys({ roles: ['approver'], tenant: 'acme' }), false)
  })
})
