import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareStrictness } from '../../core/src/decide/decision.ts'
import { type Caller, type Clause, defineTool, type Policies, type Tool } from '@toolgate/core'
import { PATHS } from '../../testing/support/conditions.ts'
import { toPolicy, type WrittenPolicy } from '../../testing/support/policies.ts'
import { runs } from '../../testing/src/runs.ts'
import { inputOf, openWorld, worldWithMore } from '../../testing/support/worlds.ts'
import { defineResource, defineTemplate } from '@toolgate/core/toolset'
import { comparePolicies } from './compare.ts'
import { createTrial } from './trial.ts'

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
  type Rules = Omit<Parameters<typeof comparePolicies>[0]['before'], 'catalog'> & { catalog?: readonly Tool[] }
  const ofWeb = (tools: readonly string[], more: object = {}) => ({ web: { tools, ...more } })
  const LOCK = { hint: 'h', unlock: 'request' as const }
  const LIMITS = 'group:web:5/60'
  const APPS = { shop: { import: ['web'] } }
  const afterReading = [{ match: 'mail:send', input: "!run.called('hint:read-only')" }]
  const hinted = (hintsTrusted: boolean) => [
    ...CATALOG,
    defineTool({ namespace: 'web', name: 'get', annotations: { readOnlyHint: true }, hintsTrusted }),
  ]
  const wider: readonly (readonly [what: string, before: Rules, after: Rules])[] = [
    ['a group that is no longer locked', { groups: ofWeb(['*'], LOCK) }, { groups: ofWeb(['*']) }],
    ['a locked group with fewer tools', { groups: ofWeb(['*'], LOCK) }, { groups: ofWeb(['mail:*'], LOCK) }],
    ['a group without its probe', { groups: ofWeb(['*'], { availableWhen: [() => true] }) }, { groups: ofWeb(['*']) }],
    ['a group that loads more', { groups: ofWeb(['*']) }, { groups: ofWeb(['*'], { load: () => [] }) }],
    [
      'a limit on a group with fewer tools',
      { limits: LIMITS, groups: ofWeb(['*']) },
      { limits: LIMITS, groups: ofWeb(['mail:*']) },
    ],
    [
      'a cap on a group with fewer tools',
      { concurrency: ['group:web:5'], groups: ofWeb(['*']) },
      { concurrency: ['group:web:5'], groups: ofWeb(['mail:*']) },
    ],
    [
      'an app of a group with more tools',
      { apps: APPS, groups: ofWeb(['mail:*']) },
      { apps: APPS, groups: ofWeb(['*']) },
    ],
    [
      'a rule about earlier calls by their hints, which are trusted now',
      { policy: { deny: afterReading }, catalog: hinted(false) },
      { policy: { deny: afterReading }, catalog: hinted(true) },
    ],
  ]
  for (const [what, before, after] of wider)
    it(`does not say yes to ${what}`, async () => {
      const of = (rules: Rules) => ({ catalog: CATALOG, ...rules })
      const same = { before: of(before), after: of(before) }
      assert.equal((await comparePolicies(same)).grantsNoMore, 'yes')
      assert.notEqual((await comparePolicies({ ...same, after: of(after) })).grantsNoMore, 'yes')
    })

  it('says yes to a limit and an app that nothing changes for, and to a lock more', async () => {
    const groups = ofWeb(['mail:*'])
    const before = { catalog: CATALOG, policy: {}, limits: LIMITS, apps: APPS, groups }
    const denied = await comparePolicies({ before, after: { ...before, policy: { deny: ['mail:*'] } } })
    assert.equal(denied.grantsNoMore, 'yes')
    const open = { catalog: CATALOG, groups }
    const locked = await comparePolicies({ before: open, after: { ...open, groups: ofWeb(['mail:*'], LOCK) } })
    assert.equal(locked.grantsNoMore, 'yes')
  })

  const yes: readonly (readonly [what: string, before: Policies, after: Policies])[] = [
    ['the same', { deny: ['files:*'] }, { deny: ['files:*'] }],
    ['another form of it', { deny: ['files:*'] }, { allow: ['mail:*'] }],
    ['a denial more', {}, { deny: ['mail:send'] }],
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
    [
      'a question for every input, and still one that fails where it did',
      { ask: [{ match: 'files:*', input: within('/w') }] },
      { ask: ['files:*', { match: 'files:*', input: within('/w') }] },
    ],
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

  it('asks about resources that no server lists, as a client can read them', async () => {
    const all = { allow: ['*', 'resource:files:*'] }
    const pairs: readonly (readonly [before: Policies, after: Policies, answer: string, read?: string])[] = [
      [{ ...all, deny: ['resource:files:file:///etc/*'] }, all, 'no', 'file:///etc/x'],
      [all, { ...all, deny: ['resource:files:file:///etc/*'] }, 'yes'],
      [{ allow: ['*', 'resource:files:file:///a.md'] }, all, 'no', 'file:///x'],
      [all, { allow: ['*'] }, 'yes'],
      [all, { allow: ['resource:files:*'], deny: ['mail:*'] }, 'yes'],
      // Both rules say the same of each URI that was tried.
      [
        { allow: ['resource:files:file:///a*', 'resource:files:file:///b*'] },
        { allow: ['resource:files:file:///a*'] },
        'yes',
      ],
      [{ allow: ['resource:files:file:///*c'] }, { allow: ['resource:files:file:///**c'] }, 'unknown'],
    ]
    for (const [before, after, answer, read] of pairs)
      for (const catalog of [CATALOG, CATALOG.filter(({ kind }) => kind !== 'template')]) {
        const sides = { before: { policy: before, catalog }, after: { policy: after, catalog } }
        const { grantsNoMore, counterexamples } = await comparePolicies(sides)
        assert.equal(grantsNoMore, answer, JSON.stringify([before, after]))
        if (read === undefined) continue
        const id = `resource:files:${read}`
        assert.ok(counterexamples.some(({ tool: found }) => found === id))
        const [had, has] = await Promise.all(
          [before, after].map(async (policy) =>
            (await createTrial(catalog, { policy }).view({})).preview({ tool: id, input: { uri: read } }),
          ),
        )
        assert.deepEqual([had?.status, has?.status], ['refused', 'allow'])
      }
  })

  it('says no where a condition failed, which denied, and a person is asked now', async () => {
    const before = { ask: [{ match: 'files:write', input: within('/w') }] }
    const { counterexamples } = await compare(before, { ask: ['files:write'] })
    assert.deepEqual(counterexamples[0], {
      caller: 'vera',
      tool: 'files:write',
      before: 'deny',
      after: 'ask',
      input: {},
    })
  })

  it('says no where an equal condition reads another tag of the tool', async () => {
    const policy = { deny: [{ match: 'files:*', input: "'write' in tool.tags" }] }
    const of = (tags: readonly string[]) => ({ policy, catalog: [tool('files:write', tags)], callers: CALLERS })
    const { grantsNoMore } = await comparePolicies({ before: of(['write']), after: of([]) })
    assert.equal(grantsNoMore, 'no')
  })

  it('does not know where an equal condition about runs is about other tools, or about labels that others have', async () => {
    const read = tool('files:read')
    const [send, called] = [tool('mail:send'), { match: 'mail:*', input: "!run.called('tag:check')" }]
    const labelled = { match: 'mail:*', input: "'secret' in run.labels" }
    const of = (policy: Policies, catalog: readonly Tool[], more: object = {}) => ({
      policy,
      catalog,
      callers: CALLERS,
      ...more,
    })
    const deny = (clause: Clause): Policies => ({ deny: [clause] })
    const pairs = [
      [
        of(deny(called), [tool('files:read', ['other']), send]),
        of(deny(called), [tool('files:read', ['check']), send]),
      ],
      [of(deny(labelled), [read, send], { labels: { secret: ['*'] } }), of(deny(labelled), [read, send])],
    ] as const
    for (const [before, after] of pairs) {
      assert.equal((await comparePolicies({ before, after })).grantsNoMore, 'unknown')
      assert.equal((await comparePolicies({ before, after: before })).grantsNoMore, 'yes')
    }
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
        notCompared: ['vera', 'olga', 'anybody'].map((caller) => ({
          caller,
          tools,
          why: 'conditions over inputs or runs differ',
        })),
      })
    })

  it('compares function policies by what they answer to callers who are known, and trusts no other function', async () => {
    const of = (word: 'ask' | 'deny') => ({ policy: { decide: () => word }, catalog: CATALOG, callers: CALLERS })
    const asked = { before: of('ask'), after: of('deny') }
    assert.equal((await comparePolicies({ ...asked, others: [] })).grantsNoMore, 'yes')
    assert.equal((await comparePolicies(asked)).grantsNoMore, 'unknown')
    const other = await compare(
      { deny: [{ match: 'mail:*', input: () => true }] },
      { deny: [{ match: 'mail:*', input: () => true }] },
    )
    assert.equal(other.grantsNoMore, 'unknown')
  })

  it('is right: after yes no call comes to less, and each example is one', async () => {
    const written = fc.tuple(worldWithMore, fc.boolean(), fc.infiniteStream(fc.constantFrom(...MODES)))
    await fc.assert(
      fc.asyncProperty(
        written,
        fc.constantFrom([], ['read'], ['danger']),
        async ([ground, isMore, modes], retagged) => {
          const { world, more } = ground
          const groups = Object.fromEntries(Object.entries(world.groups).map(([name, { tools }]) => [name, { tools }]))
          const plain = { ...world, forks: [], opened: [], groups }
          // More rules of an equal catalog can only tighten. Others may be anything, over tools with other tags.
          const tools = isMore ? world.tools : world.tools.map((one) => ({ ...one, tags: retagged }))
          const policies = isMore ? [...world.policies, ...more] : [...more, ...world.policies.map(withModes(modes))]
          const worlds = { before: openWorld(plain), after: openWorld({ ...plain, tools, policies }) }
          const sides = { before: world.policies, after: policies }
          const rulesOf = (side: 'before' | 'after') => ({
            catalog: worlds[side].tools,
            callers: [world.caller],
            groups,
            policy: sides[side].map(toPolicy),
          })
          const { grantsNoMore, counterexamples } = await comparePolicies({
            before: rulesOf('before'),
            after: rulesOf('after'),
          })
          if (isMore) assert.notEqual(grantsNoMore, 'no')
          const views = {
            before: await worlds.before.gate.view(world.caller),
            after: await worlds.after.gate.view(world.caller),
          }
          // A server may have any resource, listed or not.
          const trialOf = (side: 'before' | 'after') =>
            createTrial(worlds[side].tools, { groups, policy: sides[side].map(toPolicy) })
          const trials = { before: trialOf('before'), after: trialOf('after') }
          const isListed = (id: string) => worlds.before.tools.some((one) => one.id === id)
          const viewOf = (side: 'before' | 'after', id: string, caller: Caller) => {
            if (!isListed(id)) return trials[side].view(caller)
            return caller === world.caller ? views[side] : worlds[side].gate.view(caller)
          }
          const wordOf = async (
            side: 'before' | 'after',
            id: string,
            input: unknown,
            caller: Caller = world.caller,
          ) => {
            const preview = await (await viewOf(side, id, caller)).preview({ tool: id, input })
            return preview.status === 'refused' ? preview.decision.outcome : preview.status
          }
          const unlisted = ['files', 'web'].flatMap((server) =>
            URIS.map((uri) => ({ id: `resource:${server}:${uri}`, uri })),
          )
          if (grantsNoMore === 'yes') {
            for (const item of worlds.before.tools)
              for (const path of [undefined, ...PATHS]) {
                const input = inputOf({ ...world, input: path === undefined ? {} : { path } }, item)
                const [had, has] = [await wordOf('before', item.id, input), await wordOf('after', item.id, input)]
                assert.ok(compareStrictness(has, had) <= 0, `${item.id} was ${had} and is ${has}`)
              }
            for (const { id, uri } of unlisted) {
              const [had, has] = [await wordOf('before', id, { uri }), await wordOf('after', id, { uri })]
              assert.ok(compareStrictness(has, had) <= 0, `${id} was ${had} and is ${has}`)
            }
          }
          for (const { tool: id, input, weakerApproval, supposed } of counterexamples) {
            if (weakerApproval || id.includes('{')) continue
            const item = worlds.before.tools.find((one) => one.id === id)
            const given = input ?? (item ? inputOf(world, item) : { uri: id.split(':').slice(2).join(':') })
            const [had, has] = [await wordOf('before', id, given, supposed), await wordOf('after', id, given, supposed)]
            assert.ok(compareStrictness(has, had) > 0, `${id} was ${had} and is ${has}`)
          }
        },
      ),
      runs(60),
    )
  })
})

/** Of resources that no server of a world lists. */
const URIS = ['db:', 'db://other', 'db://a/read', 'web://read/x', 'file:///xread'] as const

const MODES = [undefined, undefined, undefined, 'shadow'] as const

/** Turns some rules of a policy into shadows. */
function withModes(modes: Iterator<'shadow' | undefined>): (policy: WrittenPolicy) => WrittenPolicy {
  const next = () => {
    const { value } = modes.next()
    return value && { mode: value }
  }
  const all = (clauses: WrittenPolicy['deny']) => clauses?.map((clause) => ({ ...clause, ...next() }))
  return (policy) => {
    const whole = next()
    return whole ? { ...policy, ...whole } : { ...policy, deny: all(policy.deny), ask: all(policy.ask) }
  }
}
