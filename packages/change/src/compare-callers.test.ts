import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareStrictness } from '../../core/src/decide/decision.ts'
import {
  type Caller,
  type Clause,
  defineTool,
  type Gate,
  type OutcomeWord,
  type Policies,
  type Policy,
} from '@toolgate/core'
import { runs } from '../../testing/src/runs.ts'
import { comparePolicies, type ComparePoliciesOptions } from './compare.ts'
import { createTrial } from './trial.ts'
import type { RulesOfChange } from './what-if.ts'

const TOOLS = [
  defineTool({ name: 'read', tags: ['read'] }),
  defineTool({ name: 'write', tags: ['write'], requiredScopes: ['s1'] }),
  defineTool({ name: 'send', requiredScopes: ['s1', 's2'] }),
]

const of = (policy: Policies, more: Partial<RulesOfChange> = {}): RulesOfChange => ({ policy, catalog: TOOLS, ...more })
const allow = (when: string): Policies => ({ allow: [{ match: '*', when }] })
const deny = (when: string): Policies => ({ deny: [{ match: '*', when }] })

async function compare(before: Policies, after: Policies, more: Partial<ComparePoliciesOptions> = {}) {
  return comparePolicies({ before: of(before), after: of(after), ...more })
}

describe('comparePolicies over callers whom nobody has named', () => {
  const no: readonly (readonly [what: string, before: Policies, after: Policies, supposed: Caller])[] = [
    [
      'a role that no key has',
      allow("'operator' in caller.roles"),
      allow("'operator' in caller.roles || 'auditor' in caller.roles"),
      { roles: ['auditor'] },
    ],
    ['a scope', allow("'s9' in caller.scopes"), allow("'s9' in caller.scopes || 's8' in caller.scopes"), {}],
    ['a tenant', deny("has(caller.tenant) && caller.tenant == 'acme'"), {}, { tenant: 'acme' }],
    ['anybody but one tenant', allow("caller.tenant == 'acme'"), allow('has(caller.tenant)'), {}],
    ['a client', deny("has(caller.client) && caller.client == 'bot'"), {}, { client: 'bot' }],
    ['a type of chat', allow("caller.chat.type == 'dm'"), allow('has(caller.chat)'), {}],
    [
      'an attribute',
      deny("has(caller.attributes.team) && caller.attributes.team == 'red'"),
      {},
      { attributes: { team: 'red' } },
    ],
    [
      'a condition that fails for those without the field',
      deny("caller.user == 'vera'"),
      deny("has(caller.user) && caller.user == 'vera'"),
      {},
    ],
    [
      'roles together',
      deny("'a' in caller.roles && 'b' in caller.roles"),
      deny("'a' in caller.roles && 'b' in caller.roles && 'c' in caller.roles"),
      { roles: ['a', 'b'] },
    ],
  ]
  for (const [what, before, after, supposed] of no)
    it(`says no to more by ${what}, with a caller for whom it is so`, async () => {
      const known = { callers: [{ user: 'vera', roles: ['viewer'] }] }
      const found = await comparePolicies({ before: of(before, known), after: of(after, known) })
      assert.equal(found.grantsNoMore, 'no')
      const [{ caller, supposed: example = {}, tool } = assert.fail()] = found.counterexamples
      assert.match(caller, /^a supposed caller: /)
      for (const [field, value] of Object.entries(supposed)) assert.deepEqual(example[field as keyof Caller], value)
      const [had, has] = await Promise.all(
        [before, after].map((one) => wordOf(createTrial(TOOLS, { policy: one }), example, tool)),
      )
      assert.ok(compareStrictness(has as OutcomeWord, had as OutcomeWord) > 0)
    })

  const yes: readonly (readonly [what: string, before: Policies, after: Policies])[] = [
    ['a role more to have', allow("'a' in caller.roles"), allow("'a' in caller.roles && 'b' in caller.roles")],
    ['another form', deny("!('a' in caller.roles)"), allow("'a' in caller.roles")],
    ['one of two names', allow("caller.user in ['vera', 'omar']"), allow("caller.user == 'vera'")],
    [
      'what nobody can list, in both',
      allow("caller.user.startsWith('bot-')"),
      [allow("caller.user.startsWith('bot-')"), { ask: ['*'] }] as Policies,
    ],
    [
      'roles that are read as a whole, in both',
      deny('size(caller.roles) > 2'),
      { deny: [{ match: '*', when: 'size(caller.roles) > 2' }, 'send'] },
    ],
  ]
  for (const [what, before, after] of yes)
    it(`says yes to ${what}`, async () => {
      assert.deepEqual(await compare(before, after), { grantsNoMore: 'yes', counterexamples: [], notCompared: [] })
    })

  it('does not know where callers differ in ways that cannot be listed, and names them', async () => {
    const found = await compare(deny("caller.user.startsWith('bot-')"), deny("caller.user.startsWith('bot-x')"))
    assert.equal(found.grantsNoMore, 'unknown')
    assert.match(found.notCompared[0]?.why ?? '', /cannot be listed, by user$/)
  })

  it('does not know where there are too many roles, and names them', async () => {
    const roles = Array.from({ length: 20 }, (_, i) => `'r${i}' in caller.roles`)
    const found = await compare(allow(roles.join(' || ')), allow(roles.toReversed().join(' || ')))
    assert.equal(found.grantsNoMore, 'unknown')
    assert.match(found.notCompared[0]?.why ?? '', /in too many ways, .* by roles$/)
    const same = await compare(allow(roles.join(' || ')), [
      allow(roles.join(' || ')),
      deny("caller.user == 'x'"),
    ] as Policies)
    assert.equal(same.grantsNoMore, 'yes')
  })

  it('trusts a function only where both rules have the same one', async () => {
    const own = { decide: () => 'allow' as const }
    assert.equal((await compare(own, [own, { deny: ['send'] }])).grantsNoMore, 'yes')
    const found = await compare({ deny: ['send'] }, own)
    assert.notEqual(found.grantsNoMore, 'yes')
    const isVera = ({ caller }: { caller: Caller }) => caller.user === 'vera'
    const clause = { match: '*', when: isVera }
    assert.equal((await compare({ deny: [clause] }, { deny: [clause, 'send'] })).grantsNoMore, 'yes')
    const other = await compare(
      { deny: [clause] },
      { deny: [{ match: '*', when: ({ caller }) => caller.user === 'vera' }] },
    )
    assert.equal(other.grantsNoMore, 'unknown')
    assert.match(other.notCompared[0]?.why ?? '', /a function/)
  })

  it('compares the scopes that tools require, and those that a caller may still get', async () => {
    const free = TOOLS.map(({ requiredScopes: _, ...tool }) => defineTool(tool))
    assert.equal((await comparePolicies({ before: of({}), after: { policy: {}, catalog: free } })).grantsNoMore, 'no')
    assert.equal((await comparePolicies({ before: { policy: {}, catalog: free }, after: of({}) })).grantsNoMore, 'yes')
    const stepUp = of({}, { stepUp: ['s1', 's2'] })
    assert.equal((await comparePolicies({ before: of({}), after: stepUp })).grantsNoMore, 'no')
    assert.equal((await comparePolicies({ before: stepUp, after: of({}) })).grantsNoMore, 'yes')
    // Without the scope, a call waited for it, and now a person is asked.
    const asking = { policy: { ask: ['*'] }, catalog: free }
    assert.equal((await comparePolicies({ before: stepUp, after: asking })).grantsNoMore, 'no')
  })

  it('knows nobody beside the callers where it is told so, and those of whom it is told', async () => {
    const [before, after] = [allow("'operator' in caller.roles"), allow("caller.user == 'olga'")]
    const known = { callers: [{ user: 'olga', roles: ['operator'] }] }
    const asked = { before: of(before, known), after: of(after, known) }
    assert.equal((await comparePolicies({ ...asked, others: [] })).grantsNoMore, 'yes')
    const idp = {
      fields: { user: 'always', roles: 'maybe' } as const,
      isUser: (user: string) => user.startsWith('idp/'),
    }
    assert.equal((await comparePolicies({ ...asked, others: [idp] })).grantsNoMore, 'yes')
    const found = await comparePolicies({ ...asked, others: [{ ...idp, isUser: () => true }] })
    assert.equal(found.counterexamples[0]?.supposed?.user, 'olga')
    assert.equal(
      (await comparePolicies({ before: of({ deny: ['*'] }), after: of({}), others: [] })).grantsNoMore,
      'unknown',
    )
  })

  it('does not know where limits or apps differ', async () => {
    const limited = of({}, { limits: ['*:5/60'] })
    const { grantsNoMore, notCompared } = await comparePolicies({ before: limited, after: of({}) })
    assert.equal(grantsNoMore, 'unknown')
    assert.deepEqual(notCompared, [{ caller: 'anybody', tools: [], why: 'limits differ, and are not compared' }])
  })

  it('is right: after yes no caller gets more, and each example is one', async () => {
    const told = { yes: 0, no: 0, unknown: 0 }
    await fc.assert(
      fc.asyncProperty(
        pairs,
        fc.array(callers, { minLength: 40, maxLength: 40 }),
        async ([before, after, stepUp], sample) => {
          const sides = { before: of(before, { stepUp: stepUp.before }), after: of(after, { stepUp: stepUp.after }) }
          const gates = { before: openGate(sides.before), after: openGate(sides.after) }
          const { grantsNoMore, counterexamples } = await comparePolicies(sides)
          told[grantsNoMore]++
          const words = async (caller: Caller, id: string) =>
            [await wordOf(gates.before, caller, id), await wordOf(gates.after, caller, id)] as const
          if (grantsNoMore === 'yes')
            for (const caller of sample)
              for (const { id } of TOOLS) {
                const [had, has] = await words(caller, id)
                assert.ok(compareStrictness(has, had) <= 0, `${JSON.stringify(caller)}: ${id} was ${had} and is ${has}`)
              }
          for (const { supposed = {}, tool } of counterexamples) {
            const [had, has] = await words(supposed, tool)
            assert.ok(compareStrictness(has, had) > 0, `${JSON.stringify(supposed)}: ${tool} was ${had} and is ${has}`)
          }
        },
      ),
      runs(120),
    )
    // Each answer is one that is given.
    assert.ok(Math.min(told.yes, told.no) > 0, JSON.stringify(told))
  })
})

function openGate({ catalog, callers: _, ...rules }: RulesOfChange): Gate {
  return createTrial(catalog, rules)
}

async function wordOf(gate: Gate, caller: Caller, tool: string): Promise<OutcomeWord> {
  const preview = await (await gate.view(caller)).preview({ tool, input: {} })
  return preview.status === 'refused' ? preview.decision.outcome : preview.status
}

const ATOMS = [
  "'admin' in caller.roles",
  "'ops' in caller.roles",
  "caller.user == 'vera'",
  "caller.user != 'vera'",
  "caller.user in ['vera', 'omar']",
  "caller.tenant == 't1'",
  'has(caller.tenant)',
  'has(caller.client)',
  "caller.client == 'c1'",
  "'s1' in caller.scopes",
  "'s3' in caller.scopes",
  "caller.chat.type == 'dm'",
  'has(caller.chat)',
  'has(caller.chat.type)',
  "caller.chat.id == 'c'",
  "caller.attributes.team == 'red'",
  'has(caller.attributes.team)',
  'caller.attributes.flag',
  'caller.attributes.flag == true',
  'caller.attributes.level == 5',
  'caller.attributes.level in [5, 6]',
  "caller.attributes.deep.x == 'a'",
  "caller.session == 's'",
  "tool.name == 'read'",
  // These tell more callers apart than can be listed.
  "caller.user.startsWith('v')",
  "caller.roles.exists(r, r == 'ops')",
  'size(caller.roles) > 1',
  "caller.roles == ['admin']",
  'caller.user == caller.tenant',
  "'team' in caller.attributes",
  'caller.attributes[caller.user] == true',
  'size(caller.attributes) > 0',
] as const

const condition = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'compared' },
    { weight: 4, arbitrary: fc.constantFrom(...ATOMS) },
    tie('node').map((inner) => `!(${inner})`),
    fc.tuple(tie('node'), fc.constantFrom('&&', '||'), tie('node')).map(([a, op, b]) => `(${a}) ${op} (${b})`),
  ),
})).node

const clause: fc.Arbitrary<Clause> = fc
  .record({
    match: fc.constantFrom('*', 'read', 'write', 'send', 'tag:read'),
    when: fc.option(condition, { nil: undefined }),
    unless: fc.option(condition, { nil: undefined, freq: 2 }),
  })
  .map(({ match, when, unless }) => ({ match, ...(when && { when }), ...(unless && { unless }) }))

const policy: fc.Arbitrary<Policy> = fc
  .record({
    allow: fc.option(fc.array(clause, { minLength: 1, maxLength: 3 }), { nil: undefined }),
    deny: fc.array(clause, { maxLength: 2 }),
    ask: fc.array(clause, { maxLength: 1 }),
  })
  .map(({ allow: list, ...rest }) => (list ? { allow: list, ...rest } : rest))

const LISTS = ['allow', 'deny', 'ask'] as const

/** Changes one condition of one clause a little, or takes a clause away: so that both rules have most of their words in common. */
const changed = (from: Policy): fc.Arbitrary<Policy> =>
  fc
    .tuple(
      fc.constantFrom(...LISTS),
      fc.nat(2),
      fc.constantFrom('&&', '||', 'instead', 'gone'),
      condition,
      fc.constantFrom('when', 'unless'),
    )
    .map(([list, at, how, text, field]) => {
      const clauses = [...((from[list] ?? []) as Clause[])]
      const one = clauses[at % Math.max(1, clauses.length)]
      if (!one) return from
      const old = one[field as 'when' | 'unless'] as string | undefined
      const next = how === 'instead' || old === undefined ? text : `(${old}) ${how} (${text})`
      const spliced = how === 'gone' ? [] : [{ ...one, [field]: next }]
      return { ...from, [list]: clauses.flatMap((each) => (each === one ? spliced : [each])) }
    })

const stepUps = fc.constantFrom([], [], ['s1'], ['s1', 's2'])
const pairs = fc
  .tuple(policy, policy)
  .chain(([one, other]) =>
    fc.tuple(
      fc.constant(one),
      fc.oneof(fc.constant([one, other]), fc.constant(other), changed(one), changed(one)),
      fc.record({ before: stepUps, after: stepUps }),
    ),
  )

const text = (...texts: readonly string[]) => fc.constantFrom(undefined, ...texts)
const callers: fc.Arbitrary<Caller> = fc.record({
  user: text('vera', 'omar', 'victor', 't1', 'flag', 'team'),
  tenant: text('t1', 't2', 'vera'),
  roles: fc.subarray(['admin', 'ops', 'other']),
  scopes: fc.subarray(['s1', 's2', 's3']),
  session: text('s', 'other'),
  client: text('c1', 'other'),
  chat: fc.constantFrom(undefined, { id: 'c' }, { id: 'd' }, { id: 'c', type: 'dm' }, { id: 'd', type: 'group' }),
  attributes: fc.constantFrom(
    undefined,
    {},
    { team: 'red' },
    { team: 5, flag: true },
    { flag: false, level: 5 },
    { flag: 'true', level: '5' },
    { level: 6, team: null },
    { level: [5], deep: { x: 'a' } },
    { deep: 'x', vera: true },
  ),
})
