import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { namedRoles } from './named-roles.ts'

const NOTHING = { policy: [], groups: [], limits: [] }

function rolesOf(when: string): readonly string[] {
  return [...namedRoles({ ...NOTHING, policy: [{ allow: [{ match: '*', when }] }] }).keys()]
}

describe('namedRoles', () => {
  for (const [when, roles] of [
    ['\'a\' in caller.roles && !("b" in caller.roles)', ['a', 'b']],
    ["'it\\'s' in caller['roles']", ["it's"]],
    ["caller.roles.exists(r, r == 'a' || r in ['b', 'c'])", ['a', 'b', 'c']],
    ["caller.roles.exists(r, 'a' == r && caller.tenant == 'acme')", ['a']],
    ["['a', 'b'].exists(r, r in caller.roles)", ['a', 'b']],
    ["['a', 'b'].all(t, t in tool.tags)", []],
    ["caller.roles == ['a']", ['a']],
    ["caller.roles.filter(r, r != 'a') == ['b']", ['a', 'b']],
    ["caller.user == 'a' && 'b' in caller.scopes", []],
    ["caller.user in ['a'] && 'x in caller.roles' != caller.tenant", []],
  ] as const)
    it(`finds ${roles.join(', ') || 'none'} in ${when}`, () => assert.deepEqual(rolesOf(when).toSorted(), roles))

  it('looks in apps, in other clauses and in costs, and returns the first place', () => {
    const found = namedRoles({
      ...NOTHING,
      groups: [{ name: 'web', tools: ['web:*'] }] as never,
      policy: [
        { allow: ['group:web'], deny: [{ match: '*', unless: "'a' in caller.roles", input: "'b' in caller.roles" }] },
      ],
      apps: [
        { name: 'desk', policy: [{ ask: [{ match: '*', when: "'a' in caller.roles || 'c' in caller.roles" }] }] },
      ] as never,
      limits: [
        { match: 'pay:send', max: 5, windowMs: 1000, per: ['user'], cost: "'d' in caller.roles ? 1 : 2" },
      ] as never,
    })
    assert.deepEqual(
      [...found],
      [
        ['a', 'policy[0].deny[0]'],
        ['b', 'policy[0].deny[0]'],
        ['c', 'apps.desk.policy[0].ask[0]'],
        ['d', 'limits[0]'],
      ],
    )
  })
})
