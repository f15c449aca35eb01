import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareStrictness } from '../decide/decision.ts'
import type { Policies } from '../policy/policy.ts'
import { toPolicy } from '../testing/policies.ts'
import { runs } from '../testing/runs.ts'
import { inputOf, openWorld, worldWithMore } from '../testing/worlds.ts'
import { defineTool } from '../tools/tool.ts'
import { defineResource, defineTemplate } from '../tools/items.ts'
import { comparePolicies } from './compare.ts'

const tool = (id: string, tags: readonly string[] = [], properties: object = {}) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, tags, inputSchema: { type: 'object', properties } })
}
const PATH = { path: { type: 'string' }, amount: { type: 'number' } }
const CATALOG = [
  tool('files:read', ['read'], PATH),
  tool('files:write', ['write'], PATH),
  tool('mail:send'),
  defineResource({ namespace: 'files', uri: 'file:///a.md' }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///{+path}' }),
]
const CALLERS = [
  { user: 'vera', roles: ['viewer'] },
  { user: 'olga', roles: ['operator'] },
]

async function compare(before: Policies, after: Policies) {
  const of = (policy: Policies) => ({ policy, catalog: CATALOG, callers: CALLERS })
  return comparePolicies({ before: of(before), after: of(after) })
}

const within = (root: string) => `!within(input.path, '${root}')`

describe('comparePolicies', () => {
  const yes: readonly (readonly [what: string, before: Policies, after: Policies])[] = [
    ['the same', { deny: ['files:*'] }, { deny: ['files:*'] }],
    ['another form of it', { deny: ['files:*'] }, { allow: ['mail:*'] }],
    ['a denial more', {}, { deny: ['mail:send'] }],
    [
      'a condition that leaves nobody more',
      { allow: [{ match: '*', when: "'operator' in caller.roles" }] },
      { allow: [{ match: '*', when: "caller.user == 'olga'" }] },
    ],
    ['a question in the place of nothing', {}, { ask: ['mail:send'] }],
    ['a denial in the place of a question', { ask: ['mail:send'] }, { deny: ['mail:send'] }],
    ['a condition over the input more', {}, { deny: [{ match: 'files:*', input: within('/w') }] }],
    [
      'the same condition over the input, for more tools',
      { deny: [{ match: 'files:write', input: within('/w') }] },
      { deny: [{ match: 'files:*', input: within('/w') }] },
    ],
    [
      'a denial where an input was refused',
      { deny: [{ match: 'files:*', input: within('/w') }] },
      { deny: ['files:*'] },
    ],
    [
      'a denial where an input was asked about',
      { ask: [{ match: 'files:*', input: within('/w') }] },
      { deny: [{ match: 'files:*', input: within('/w') }] },
    ],
    ['a question for every input', { ask: [{ match: 'files:*', input: within('/w') }] }, { ask: ['files:*'] }],
    [
      'fewer inputs that are allowed',
      {
        allow: [
          'mail:*',
          { match: 'files:*', input: "input.path == 'a'" },
          { match: 'files:*', input: "input.path == 'b'" },
        ],
      },
      { allow: [{ match: 'files:*', input: "input.path == 'b'" }] },
    ],
    ['a stricter approval', { ask: ['mail:send'] }, { ask: [{ match: 'mail:send', by: 'other' }] }],
    [
      'rules about the run',
      { deny: [{ match: 'mail:send', input: "'untrusted' in run.labels" }] },
      [{ deny: [{ match: 'mail:send', input: "'untrusted' in run.labels" }] }, { ask: ['mail:send'] }],
    ],
  ]
  for (const [what, before, after] of yes)
    it(`says yes to ${what}`, async () => {
      assert.deepEqual(await compare(before, after), { grantsNoMore: 'yes', counterexamples: [], notCompared: [] })
    })

  const no: readonly (readonly [what: string, before: Policies, after: Policies, example: object])[] = [
    [
      'a denial less',
      { deny: ['mail:send'] },
      {},
      { caller: 'vera', tool: 'mail:send', before: 'deny', after: 'allow' },
    ],
    [
      'a question less',
      { ask: ['mail:send'] },
      {},
      { caller: 'vera', tool: 'mail:send', before: 'ask', after: 'allow' },
    ],
    [
      'a question in the place of a denial',
      { deny: ['mail:send'] },
      { ask: ['mail:send'] },
      { caller: 'vera', tool: 'mail:send', before: 'deny', after: 'ask' },
    ],
    [
      'a role more',
      { allow: [{ match: 'mail:send', when: "'operator' in caller.roles" }] },
      { allow: ['mail:send'] },
      { caller: 'vera', tool: 'mail:send', before: 'deny', after: 'allow' },
    ],
    [
      'a condition over the input less',
      { deny: [{ match: 'files:write', input: within('/w') }] },
      {},
      { caller: 'vera', tool: 'files:write', before: 'deny', after: 'allow', input: {} },
    ],
    [
      'a larger amount',
      { deny: [{ match: 'files:write', input: 'input.amount > 100' }] },
      { deny: [{ match: 'files:write', input: 'input.amount > 200' }] },
      { caller: 'vera', tool: 'files:write', before: 'deny', after: 'allow', input: { path: '', amount: 101 } },
    ],
    [
      'a wider folder',
      { deny: [{ match: 'files:write', input: within('/w/a') }] },
      { deny: [{ match: 'files:write', input: within('/w') }] },
      { caller: 'vera', tool: 'files:write', before: 'deny', after: 'allow', input: { path: '/w/ax', amount: 0 } },
    ],
    [
      'a weaker approval',
      { ask: [{ match: 'mail:send', by: 'other' }] },
      { ask: ['mail:send'] },
      { caller: 'vera', tool: 'mail:send', before: 'ask', after: 'ask', weakerApproval: true },
    ],
    [
      'a resource',
      { allow: ['*'] },
      { allow: ['*', 'resource:files:*'] },
      { caller: 'vera', tool: 'resource:files:file:///a.md', before: 'deny', after: 'allow' },
    ],
  ]
  for (const [what, before, after, example] of no)
    it(`says no to ${what}, with an example`, async () => {
      const { grantsNoMore, counterexamples } = await compare(before, after)
      assert.equal(grantsNoMore, 'no')
      assert.deepEqual(counterexamples[0], example)
    })

  const unknown: readonly (readonly [what: string, before: Policies, after: Policies, tools: readonly string[]])[] = [
    [
      'two conditions over the input that no tried input tells apart',
      { deny: [{ match: 'files:write', input: 'size(input.path) > 7' }] },
      { deny: [{ match: 'files:write', input: 'size(input.path) > 9' }] },
      ['files:write'],
    ],
    [
      'a condition about the run less',
      { deny: [{ match: 'mail:send', input: "'untrusted' in run.labels" }] },
      {},
      ['mail:send'],
    ],
    [
      'a condition over the input where all was denied',
      { deny: ['files:write'] },
      { deny: [{ match: 'files:write', input: 'true' }] },
      ['files:write'],
    ],
  ]
  for (const [what, before, after, tools] of unknown)
    it(`does not know for ${what}`, async () => {
      assert.deepEqual(await compare(before, after), {
        grantsNoMore: 'unknown',
        counterexamples: [],
        notCompared: [
          { caller: 'vera', tools },
          { caller: 'olga', tools },
        ],
      })
    })

  it('compares function policies by what they answer, and trusts no other function', async () => {
    assert.equal((await compare({ decide: () => 'ask' }, { decide: () => 'deny' })).grantsNoMore, 'yes')
    const other = await compare(
      { deny: [{ match: 'mail:*', input: () => true }] },
      { deny: [{ match: 'mail:*', input: () => true }] },
    )
    assert.equal(other.grantsNoMore, 'unknown')
  })

  it('is right: after yes no call comes to less, and each example is one', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, fc.boolean(), async ({ world, more }, isMore) => {
        const groups = Object.fromEntries(Object.entries(world.groups).map(([name, { tools }]) => [name, { tools }]))
        const plain = { ...world, forks: [], opened: [], groups }
        const after = isMore ? [...world.policies, ...more] : more
        const worlds = { before: openWorld(plain), after: openWorld({ ...plain, policies: after }) }
        const catalog = worlds.before.tools
        const rules = { catalog, callers: [world.caller], groups }
        const { grantsNoMore, counterexamples } = await comparePolicies({
          before: { ...rules, policy: world.policies.map(toPolicy) },
          after: { ...rules, policy: after.map(toPolicy) },
        })
        if (isMore) assert.notEqual(grantsNoMore, 'no')
        const views = {
          before: await worlds.before.gate.view(world.caller),
          after: await worlds.after.gate.view(world.caller),
        }
        const wordOf = async (side: 'before' | 'after', id: string, input: unknown) => {
          const preview = await views[side].preview({ tool: id, input })
          return preview.status === 'refused' ? preview.decision.outcome : preview.status
        }
        if (grantsNoMore === 'yes')
          for (const item of catalog) {
            const input = inputOf(world, item)
            const [had, has] = [await wordOf('before', item.id, input), await wordOf('after', item.id, input)]
            assert.ok(compareStrictness(has, had) <= 0, `${item.id} was ${had} and is ${has}`)
          }
        for (const { tool: id, input, weakerApproval } of counterexamples) {
          if (weakerApproval || id.includes('{')) continue
          const item = catalog.find((one) => one.id === id)
          const given = input ?? (item && inputOf(world, item))
          const [had, has] = [await wordOf('before', id, given), await wordOf('after', id, given)]
          assert.ok(compareStrictness(has, had) > 0, `${id} was ${had} and is ${has}`)
        }
      }),
      runs(60),
    )
  })
})
