import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import { findApproverRoleWarnings } from './approver-role-warnings.ts'
import { findApproverWarnings } from './approver-warnings.ts'
import type { GatewayConfig } from './config.ts'

const ASK: GatewayConfig['policy'] = [{ ask: ['files:write_file'] }]
const VERA = agent({ user: 'vera', tenant: 'acme' })
const OWNER = person({ user: 'owner', roles: ['approver'] })

describe('findApproverWarnings', () => {
  it('warns of a tenant whose requests nobody can decide, once, and of the approver who can decide nothing', () => {
    const { codes, texts } = find([VERA, agent({ user: 'otto', tenant: 'acme' }), OWNER])
    assert.deepEqual(codes, [
      ['approver_missing', 'callers[0]'],
      ['approver_idle', 'callers[2]'],
    ])
    assert.match(
      texts[0] ?? '',
      /^no console key can decide the requests of "vera", in the tenant "acme": add a caller/,
    )
    assert.match(texts[1] ?? '', /^"owner" has the role "approver" without a tenant, and no agent is without a tenant/)
  })

  it('warns of nothing if each tenant has an approver, or the requester has a console key', () => {
    const robot = agent({ user: 'robot' })
    const olga = person({ user: 'olga', tenant: 'acme', roles: ['approver'] })
    assert.deepEqual(find([VERA, robot, OWNER, olga]).codes, [])
    assert.deepEqual(find([VERA, person({ user: 'vera', tenant: 'acme' })]).codes, [])
  })

  it('warns of agents without a tenant too', () => {
    const { codes } = find([agent({ user: 'robot' }), person({ user: 'olga', tenant: 'acme', roles: ['approver'] })])
    assert.deepEqual(codes, [
      ['approver_missing', 'callers[0]'],
      ['approver_idle', 'callers[1]'],
    ])
  })

  it('counts people with the roles of a clause, and those who log in', () => {
    const flo = person({ user: 'flo', tenant: 'acme', roles: ['finance'] })
    const roles: GatewayConfig['policy'] = [{ ask: [{ match: '*', approvers: { finance: 1 } }] }]
    assert.deepEqual(find([VERA, flo], roles).codes, [])
    assert.equal(find([VERA, flo]).codes.length, 1)
    const server = { tenant: 'acme', claims: { user: 'sub' } }
    const oidc = { server, roles: new Map([['admins', ['approver']]]) } as unknown as GatewayConfig['oidc']
    assert.deepEqual(findApproverWarnings({ callers: [VERA], policy: ASK, ...(oidc && { oidc }) }), [])
    const other = { ...oidc, server: { ...server, tenant: 'other' } } as unknown as GatewayConfig['oidc']
    assert.equal(findApproverWarnings({ callers: [VERA], policy: ASK, ...(other && { oidc: other }) }).length, 1)
  })

  it('warns of a role that nobody has', () => {
    const policy: GatewayConfig['policy'] = [{ ask: [{ match: '*', approvers: { finance: 1, legal: 1 } }] }]
    const flo = person({ user: 'flo', tenant: 'acme', roles: ['finance'] })
    const found = findApproverRoleWarnings({ callers: [VERA, flo], policy })
    assert.deepEqual(
      found.map(({ code, path }) => [code, path]),
      [['approver_role_missing', 'policy[0].ask[0]']],
    )
    assert.match(found[0]?.text ?? '', /the role "legal", which no console key has/)
    const oidc = { roles: new Map([['lawyers', ['legal']]]) } as unknown as NonNullable<GatewayConfig['oidc']>
    assert.deepEqual(findApproverRoleWarnings({ callers: [VERA, flo], policy, oidc }), [])
  })

  it('warns of nothing if no policy asks, and checks the policies of apps', () => {
    assert.deepEqual(find([VERA, OWNER], []).codes, [])
    const apps = [{ name: 'desk', import: [], tools: [], policy: ASK }]
    assert.equal(findApproverWarnings({ callers: [VERA, OWNER], policy: [], apps }).length, 2)
  })
})

function find(callers: GatewayConfig['callers'], policy = ASK) {
  const found = findApproverWarnings({ callers, policy })
  return { codes: found.map(({ code, path }) => [code, path]), texts: found.map(({ text }) => text) }
}

function agent(caller: Caller): GatewayConfig['callers'][number] {
  return { keyHash: new Uint8Array(), for: 'mcp', caller }
}

function person(caller: Caller): GatewayConfig['callers'][number] {
  return { keyHash: new Uint8Array(), for: 'console', caller }
}
