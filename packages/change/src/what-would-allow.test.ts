import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Caller, type Clause, createGate, defineTool, type GateOptions, type Policy } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { withField } from './applied-changes.ts'
import type { AskedCall, NeededChange } from './needed-change.ts'
import { whatWouldAllow } from './what-would-allow.ts'

const tools = ['read', 'write', 'send'].map((name) => defineTool({ namespace: 'files', name, execute: () => null }))

async function waysOf(caller: Caller, options: Partial<GateOptions>, call?: AskedCall, id = 'files:write') {
  const gate = createGate({ tools, onWarning: () => {}, ...options } as GateOptions)
  try {
    return whatWouldAllow(await gate.view(caller), id, call)
  } finally {
    await gate.close()
  }
}

/** As texts, such as `a + b` for a way of two changes. */
async function textsOf(...args: Parameters<typeof waysOf>): Promise<readonly string[]> {
  return (await waysOf(...args)).map((way) => way.map(({ text }) => text).join(' + '))
}

describe('whatWouldAllow', () => {
  it('names the role that an allow wants, and an allow for the tool', async () => {
    const policy = {
      name: 'files',
      allow: ['files:read', { match: 'files:*', when: "'operator' in caller.roles && caller.tenant == 'acme'" }],
    }
    assert.deepEqual(await textsOf({ tenant: 'acme' }, { policy }), [
      'an `allow` for `files:write` in policy "files"',
      '`operator` in `roles` + `acme` as `tenant`',
    ])
  })

  it('says nothing of what passes', async () => {
    assert.deepEqual(await textsOf({}, {}), [])
    assert.deepEqual(await textsOf({}, { policy: { ask: ['*'] } }), [])
  })

  it('names the clause that denies, and how its conditions end', async () => {
    const deny = [
      {
        id: 'no-guests',
        match: 'files:write',
        when: "'guest' in caller.roles",
        unless: "caller.attributes.team in ['ops', 'sre']",
      },
    ]
    assert.deepEqual(await textsOf({ roles: ['guest'] }, { policy: { name: 'p', deny } }), [
      '`guest` not in `roles`',
      '`ops` as `attributes.team`',
      '`sre` as `attributes.team`',
      '`p#no-guests` removed, or narrowed',
    ])
  })

  it('shows only what then passes: another deny still holds', async () => {
    const deny: Clause[] = [{ match: 'files:write', when: "'guest' in caller.roles" }, { match: 'files:write' }]
    assert.deepEqual(await textsOf({ roles: ['guest'] }, { policy: { name: 'p', deny } }), [
      '`p#deny[1]` removed, or narrowed + `guest` not in `roles`',
      '`p#deny[1]` removed, or narrowed + `p#deny[0]` removed, or narrowed',
    ])
  })

  it('names no role that another rule refuses', async () => {
    const policy = [
      { name: 'a', allow: [{ match: 'files:write', when: "'operator' in caller.roles" }] },
      { name: 'b', deny: [{ match: 'files:write', when: "'operator' in caller.roles" }] },
    ]
    assert.deepEqual(await textsOf({}, { policy }), ['an `allow` for `files:write` in policy "a"'])
  })

  it('names what ends a state, and each of several', async () => {
    const groups = {
      web: { tools: ['files:write'], visibility: 'conditional' },
      disk: { tools: ['files:write'], visibility: 'conditional' },
    } as const
    const down = { available: false, reason: 'down' }
    const options = { groups, availability: memoryAvailability({ web: down, disk: down }) }
    assert.deepEqual(await textsOf({}, options), ['the group `disk` available + the group `web` available'])
    const gate = createGate({ tools })
    await gate.halt({ tool: 'files:write', reason: 'incident', by: 'vera' })
    const [[change] = [], ...others] = whatWouldAllow(await gate.view({}), 'files:write')
    assert.match(change?.text ?? '', /^a release of halt \w+ by vera: incident$/)
    assert.deepEqual(others, [])
    await gate.close()
  })

  it('names the input that a condition wants', async () => {
    const policy = { name: 'p', allow: [{ match: 'files:*', input: "input.path in ['/tmp', '/home']" }] }
    assert.deepEqual(await textsOf({}, { policy }, { input: { path: '/etc' } }), [
      '`/tmp` as `input.path`',
      '`/home` as `input.path`',
      'an `allow` for `files:write` in policy "p"',
    ])
    assert.deepEqual(await textsOf({}, { policy }, { input: { path: '/tmp' } }), [])
  })

  it('lists at most five ways, and bounds a condition with many alternatives', async () => {
    const roles = Array.from({ length: 40 }, (_, i) => `'r${i}' in caller.roles`).join(' || ')
    const ways = await textsOf({}, { policy: { name: 'p', allow: [{ match: '*', when: roles }] } })
    assert.equal(ways.length, 5)
    assert.equal(ways[0], '`r0` in `roles`')
  })

  it('takes a field of the prototype for a field', () => {
    const changed = withField({}, { does: 'set', field: '__proto__.admin', value: true })
    assert.equal(Object.hasOwn(changed, '__proto__'), true)
    assert.equal(({} as { admin?: boolean }).admin, undefined)
  })
})

describe('each way of whatWouldAllow, made by hand', () => {
  const roles = ['operator', 'guest', 'admin']
  const leaf = fc.oneof(
    fc.constantFrom(...roles).map((role) => `'${role}' in caller.roles`),
    fc.constantFrom('acme', 'globex').map((tenant) => `caller.tenant == '${tenant}'`),
    fc.constantFrom('ops', 'sre').map((team) => `caller.attributes.team != '${team}'`),
    fc.constant("caller.roles.exists(r, r == 'admin')"),
  )
  const condition = fc.oneof(
    leaf,
    fc.tuple(leaf, fc.constantFrom('&&', '||'), leaf).map((parts) => parts.join(' ')),
    leaf.map((text) => `!(${text})`),
  )
  const clause: fc.Arbitrary<Clause> = fc.record(
    { match: fc.constantFrom('files:write', 'files:*', 'files:read'), when: condition, unless: condition },
    { requiredKeys: ['match'] },
  )
  const policy = fc.record(
    { allow: fc.array(clause, { maxLength: 2 }), deny: fc.array(clause, { maxLength: 2 }) },
    { requiredKeys: [] },
  )
  const caller = fc.record(
    {
      roles: fc.subarray(roles),
      tenant: fc.constantFrom('acme', 'globex'),
      attributes: fc.constantFrom({}, { team: 'ops' }),
    },
    { requiredKeys: [] },
  )

  it('makes the tool visible', async () => {
    let shown = 0
    await fc.assert(
      fc.asyncProperty(fc.array(policy, { minLength: 1, maxLength: 2 }), caller, async (policies, who) => {
        for (const way of await waysOf(who, { policy: policies })) {
          shown++
          const changed = make(way, who, policies)
          const gate = createGate({ tools, onWarning: () => {}, policy: changed.policies })
          assert.equal((await gate.view(changed.caller)).has('files:write'), true, JSON.stringify(way))
          await gate.close()
        }
      }),
      { numRuns: 150 },
    )
    assert.ok(shown > 50, 'there were ways')
  })
})

function make(way: readonly NeededChange[], who: Caller, policies: readonly Policy[]) {
  let caller: Caller = who
  const removed = new Set<string>()
  const added = new Set<string>()
  for (const change of way) {
    if (change.on === 'caller') caller = withField({ ...caller }, change)
    else if (change.does === 'remove') removed.add(change.path ?? '')
    else added.add(change.path ?? '')
  }
  return {
    caller,
    policies: policies.map(({ allow, deny = [] }, i): Policy => ({
      deny: deny.filter((_, j) => !removed.has(`policy[${i}].deny[${j}]`)),
      ...(allow && { allow: [...allow, ...(added.has(`policy[${i}].allow`) ? ['files:write' as const] : [])] }),
    })),
  }
}
