import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate } from '@toolgate/core'
import { heartOf } from '../../testing/heart.ts'
import { createRightsKey } from './rights.ts'

const VERA: Caller = { user: 'vera', tenant: 'acme', roles: ['a', 'b'] }
const NORA: Caller = { user: 'nora', tenant: 'acme', roles: ['b', 'a'] }

function keysOf(when: string, callers: readonly Caller[], gate = createGate({ tools: [] })): number {
  const policy = [{ name: 'p', allow: [{ match: '*', when }] }]
  const keyOf = createRightsKey(heartOf({ gate, config: { policy } as never }))
  return new Set(callers.map(keyOf)).size
}

describe('createRightsKey', () => {
  it('is one key for users whom the rules cannot tell apart', () => {
    assert.equal(keysOf("'a' in caller.roles && caller.tenant == 'acme'", [VERA, NORA]), 1)
    for (const own of [{ tenant: 'other' }, { roles: [] }, { scopes: ['s'] }, { attributes: { team: 'x' } }])
      assert.equal(keysOf("'a' in caller.roles", [VERA, { ...NORA, ...own }]), 2, JSON.stringify(own))
  })

  it('is a key for each user if a rule reads more of the caller', () => {
    for (const when of [
      "caller.user == 'vera'",
      "caller['user'] == 'vera'",
      "caller.client == 'x'",
      'has(caller.user)',
    ])
      assert.equal(keysOf(when, [VERA, NORA]), 2, when)
  })

  it('is a key of their own for a user who is halted', async () => {
    const gate = createGate({ tools: [] })
    await gate.halt({ user: 'vera', reason: 'r', by: 'owner' })
    assert.equal(keysOf("'a' in caller.roles", [VERA, NORA], gate), 2)
    await gate.close()
  })
})
