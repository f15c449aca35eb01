import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import { findUnexplainedAsks } from './ask-warnings.ts'
import type { GatewayConfig } from './config.ts'

describe('findUnexplainedAsks', () => {
  const one = (use: 'mcp' | 'console', caller: Caller) => ({ keyHash: new Uint8Array(), for: use, caller })
  const vera = one('mcp', { user: 'vera', tenant: 'acme' })
  const olga = one('console', { user: 'olga', tenant: 'acme', roles: ['approver'] })
  const policy: GatewayConfig['policy'] = [
    { ask: ['mail:*', { match: 'bank:pay', message: 'Money leaves.' }, { match: 'bank:read', mode: 'shadow' }] },
  ]

  it('names each ask clause without a message that an approver of a tenant may decide', () => {
    const apps = [{ name: 'desk', import: [], tools: [], policy }]
    const found = findUnexplainedAsks({ callers: [vera, olga], policy, apps })
    assert.deepEqual(
      found.map(({ code, path, at }) => [code, path, at.at(-1)]),
      [
        ['ask_unexplained', 'policy[0].ask[0]', 0],
        ['ask_unexplained', 'apps.desk.policy[0].ask[0]', 0],
      ],
    )
    assert.match(found[0]?.text ?? '', /has no message, and "olga" of the tenant "acme"/)
  })

  it('counts people of a tenant who log in', () => {
    const server = { claims: { user: 'sub', tenant: 'org' } }
    const oidc = { server, roles: new Map([['admins', ['approver']]]) } as unknown as NonNullable<GatewayConfig['oidc']>
    const found = findUnexplainedAsks({ callers: [vera], policy, oidc })
    assert.match(
      found[0]?.text ?? '',
      /has no message, and people of a tenant who log in and may approve it do not see/,
    )
  })

  it('has no warning where the people who decide can read the rule itself', () => {
    const owner = one('console', { user: 'owner', roles: ['approver'] })
    assert.deepEqual(findUnexplainedAsks({ callers: [one('mcp', { user: 'robot' }), owner], policy }), [])
  })
})
