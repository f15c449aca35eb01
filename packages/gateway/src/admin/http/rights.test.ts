import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, type Policy } from '@toolgate/core'
import { heartOf } from '../../testing/heart.ts'
import { createRightsKey } from './rights.ts'

const VERA: Caller = { user: 'vera', tenant: 'acme', roles: ['a', 'b'] }
const NORA: Caller = { user: 'nora', tenant: 'acme', roles: ['b', 'c'] }

function gateIf(when: string) {
  return createGate({ tools: [], policy: { name: 'p', allow: [{ match: '*', when }] } satisfies Policy })
}

async function keysOf(callers: readonly Caller[], parts: Parameters<typeof heartOf>[0]): Promise<number> {
  const keyOf = await createRightsKey(heartOf(parts))
  return new Set(callers.map(keyOf)).size
}

describe('createRightsKey', () => {
  it('is one key for users of a tenant whom the rules cannot tell apart', async () => {
    const gate = gateIf("'b' in caller.roles || caller.user == 'zoe'")
    assert.equal(await keysOf([VERA, NORA], { gate }), 1)
    assert.equal(await keysOf([VERA, { ...NORA, tenant: 'other' }], { gate }), 2)
    assert.equal(await keysOf([VERA, NORA], { gate: gateIf("caller.user == 'vera'") }), 2)
  })

  it('is a key of their own for a user who is halted, or who has preferences', async () => {
    for (const change of ['halt', 'preferences'] as const) {
      const gate = gateIf("'b' in caller.roles")
      if (change === 'halt') await gate.halt({ user: 'vera', reason: 'r', by: 'owner' })
      else await gate.preferences.set(VERA, { groups: [], tools: ['web:open'] })
      assert.equal(await keysOf([VERA, NORA, { ...NORA, user: 'tom' }], { gate }), 2, change)
      await gate.close()
    }
  })

  it('has the connected servers, and the lists of a user', async () => {
    const gate = gateIf("'b' in caller.roles")
    const everybody = [VERA, NORA, { ...NORA, user: 'tom' }, { ...NORA, user: 'ida' }]
    const rowsOf = ({ user }: Caller) => [
      { server: 'mail', ...(user !== 'tom' && user !== 'ida' && { connection: {} }) },
    ]
    assert.equal(await keysOf(everybody, { gate, servers: { connections: { rowsOf } as never } }), 2)
    const listsOf = ({ user }: Caller) => [{ server: 'mail', state: user === 'vera' ? 'known' : 'unknown' }]
    assert.equal(await keysOf(everybody, { gate, fleet: { listsOf } }), 2)
  })
})
