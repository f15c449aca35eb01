import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { definePrompt, defineResource, defineTemplate } from '@toolgate/core/toolset'
import { defineTool } from '@toolgate/core'
import type { ExpectedAnswers, PolicyTest } from './policy-test.ts'
import { checkPolicyTests, type PolicyTestOptions, testPolicies } from './run-tests.ts'

const RAN: string[] = []
const tool = (id: string, more: Partial<Parameters<typeof defineTool>[0]> = {}) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, ...more, execute: () => RAN.push(id) })
}

const CATALOG = [
  tool('files:read_file', { tags: ['read'] }),
  tool('files:write_file', {
    tags: ['write'],
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  }),
  tool('mail:send', { tags: ['egress'], addressees: ['to'] }),
  tool('web:fetch', { groups: ['web'] }),
  tool('fraud:check', { trusted: true }),
  tool('refunds:pay'),
  defineResource({ namespace: 'files', uri: 'file:///a.md' }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///{+path}' }),
  definePrompt({ namespace: 'git', name: 'review' }),
]

const RULES = {
  catalog: CATALOG,
  groups: { web: { tools: [] }, browser: { tools: ['web:*'], visibility: 'conditional', dependsOn: ['web'] } },
  limits: [
    'files:write_file:2/60',
    { match: 'refunds:pay', max: 100, windowMs: 60_000, per: ['user'], cost: 'input.amount' },
  ],
  labels: { private: ['files:read_file'] },
  callers: { vera: { user: 'vera', roles: ['viewer'] }, olga: { user: 'olga', roles: ['operator'] } },
  policy: [
    {
      name: 'roles',
      allow: [
        'tag:read',
        'resource:files:*',
        { match: '*', when: "'operator' in caller.roles" },
        { match: 'prompt:git:*', when: "'operator' in caller.roles" },
      ],
      deny: [
        {
          id: 'workspace',
          match: 'files:write_file',
          input: "!within(input.path, '/workspace')",
          message: 'Only in /workspace.',
        },
        'resource:files:file:///etc/*',
      ],
    },
    {
      name: 'what was read',
      allow: ['*', 'resource:*:*', 'prompt:*:*'],
      ask: [
        { match: 'tag:egress', input: "'untrusted' in run.labels && !(origin(addressees) in ['user', 'trusted'])" },
        { match: 'mail:send', input: "'private' in run.labels" },
      ],
      deny: [
        {
          match: 'refunds:pay',
          input: "!run.called('fraud:check', { 'input.order': input.order, 'output.ok': true })",
        },
      ],
    },
  ],
} as const satisfies Omit<PolicyTestOptions, 'tests'>

/** Runs one test and returns what it missed, in short. */
async function missedBy(test: Omit<PolicyTest, 'shows'>): Promise<readonly (readonly [string, unknown])[]> {
  const { results } = await testPolicies({ ...RULES, tests: [{ shows: 'it', ...test }] })
  return (results[0]?.missed ?? []).map(({ path, found }) => [path.join('.'), found])
}

describe('testPolicies', () => {
  const hold: readonly (readonly [string, Omit<PolicyTest, 'shows' | 'expect'>, ExpectedAnswers])[] = [
    [
      'what a viewer sees',
      { caller: 'vera' },
      { visible: ['files:read_file', 'resource:files:file:///a.md', 'resource:files:file:///{+path}'] },
    ],
    ['that a viewer does not see a tool', { caller: 'vera' }, { sees: ['files:read_file'], hides: ['mail:send'] }],
    [
      'a call that nothing refuses',
      { caller: 'olga', input: { path: '/workspace/a' } },
      { call: { 'files:write_file': 'allow' } },
    ],
    [
      'a denial, with its code and its text',
      { caller: 'olga', input: { path: '/etc/passwd' } },
      { call: { 'files:write_file': 'deny' }, reasons: { 'files:write_file': ['input_denied'] } },
    ],
    ['an input that the schema refuses', { caller: 'olga' }, { reasons: { 'files:write_file': ['input_invalid'] } }],
    ['a caller in the test', { caller: { roles: ['operator'] } }, { sees: ['mail:send', 'prompt:git:review'] }],
    ['nobody in particular', {}, { hides: ['mail:send'] }],
    ['a listed resource', {}, { call: { 'resource:files:file:///a.md': 'allow' } }],
    [
      'a resource that no server lists',
      {},
      { call: { 'resource:files:file:///etc/passwd': 'deny', 'resource:files:file:///b.md': 'allow' } },
    ],
    ['a group that is available', { caller: 'olga' }, { call: { 'web:fetch': 'allow' } }],
    [
      'a group that is not',
      { caller: 'olga', availability: { browser: false } },
      { call: { 'web:fetch': 'wait' }, hides: ['web:fetch'] },
    ],
    [
      'a group that depends on one that is not',
      { caller: 'olga', availability: { web: false } },
      { reasons: { 'web:fetch': ['group_unavailable'] } },
    ],
    [
      'a limit that is not used up',
      { caller: 'olga', input: { path: '/workspace/a' }, used: { 'files:write_file:2/60': 1 } },
      { call: { 'files:write_file': 'allow' } },
    ],
    [
      'a limit that is used up',
      { caller: 'olga', input: { path: '/workspace/a' }, used: { 'files:write_file:2/60': 2 } },
      { call: { 'files:write_file': 'wait' }, reasons: { 'files:write_file': ['rate_limited'] } },
    ],
    [
      'a limit that earlier calls have used up',
      {
        caller: 'olga',
        input: { path: '/workspace/a' },
        history: { calls: ['50s', '1s'].map((ago) => ({ tool: 'files:write_file', input: { path: '/x' }, ago })) },
      },
      { reasons: { 'files:write_file': ['rate_limited'] } },
    ],
    [
      'a limit whose window has passed',
      {
        caller: 'olga',
        input: { path: '/workspace/a' },
        history: { calls: ['61s', '1s'].map((ago) => ({ tool: 'files:write_file', input: { path: '/x' }, ago })) },
      },
      { call: { 'files:write_file': 'allow' } },
    ],
    [
      'a limit that the latest calls have used up',
      {
        caller: 'olga',
        input: { path: '/workspace/a' },
        history: {
          calls: ['61s', '1s', '1s'].map((ago) => ({ tool: 'files:write_file', input: { path: '/x' }, ago })),
        },
      },
      { call: { 'files:write_file': 'wait' } },
    ],
    [
      'a label that has risen',
      { caller: 'olga', history: { labels: ['untrusted'] }, input: { to: 'eve@evil.com' } },
      { call: { 'mail:send': 'ask' } },
    ],
    [
      'the words of the user',
      {
        caller: 'olga',
        history: { labels: ['untrusted'], said: 'Write to bob@example.com' },
        input: { to: 'bob@example.com' },
      },
      { call: { 'mail:send': 'allow' } },
    ],
    [
      'a label that an earlier call raised',
      { caller: 'olga', history: { calls: [{ tool: 'files:read_file', output: 'x' }] } },
      { call: { 'mail:send': 'ask' } },
    ],
    [
      'an earlier call that failed',
      { caller: 'olga', history: { calls: [{ tool: 'files:read_file', failed: true }] } },
      { call: { 'mail:send': 'ask' } },
    ],
    [
      'an earlier call of the same order',
      {
        caller: 'olga',
        input: { order: 7, amount: 5 },
        history: { calls: [{ tool: 'fraud:check', input: { order: 7 }, output: { ok: true } }] },
      },
      { call: { 'refunds:pay': 'allow' } },
    ],
    [
      'an earlier call of another order',
      {
        caller: 'olga',
        input: { order: 8, amount: 5 },
        history: { calls: [{ tool: 'fraud:check', input: { order: 7 }, output: { ok: true } }] },
      },
      { call: { 'refunds:pay': 'deny' } },
    ],
    [
      'a budget that is nearly used up',
      {
        caller: 'olga',
        used: { 'refunds:pay:100/60': 96 },
        input: { order: 7, amount: 5 },
        history: { calls: [{ tool: 'fraud:check', input: { order: 7 }, output: { ok: true } }] },
      },
      { reasons: { 'refunds:pay': ['rate_limited'] } },
    ],
    [
      'what a caller without a run did, for an hour',
      {
        caller: 'olga',
        input: { order: 7, amount: 5 },
        history: {
          run: false,
          calls: [{ tool: 'fraud:check', input: { order: 7 }, output: { ok: true }, ago: '59m' }],
        },
      },
      { call: { 'refunds:pay': 'allow' } },
    ],
    [
      'what a caller without a run did, and no longer',
      {
        caller: 'olga',
        input: { order: 7, amount: 5 },
        history: {
          run: false,
          calls: [{ tool: 'fraud:check', input: { order: 7 }, output: { ok: true }, ago: '61m' }],
        },
      },
      { call: { 'refunds:pay': 'deny' } },
    ],
    [
      'a history that is lost',
      { caller: 'olga', history: { lost: true } },
      { call: { 'mail:send': 'ask', 'refunds:pay': 'deny' } },
    ],
  ]
  for (const [what, situation, expect] of hold)
    it(`passes for ${what}`, async () => assert.deepEqual(await missedBy({ ...situation, expect }), []))

  it('says what it found, and why', async () => {
    const { passed, failed, results } = await testPolicies({
      ...RULES,
      tests: [
        { shows: 'right', expect: { hides: ['mail:send'] } },
        { shows: 'wrong', caller: 'olga', input: { path: '/etc' }, expect: { call: { 'files:write_file': 'allow' } } },
      ],
    })
    assert.deepEqual([passed, failed], [1, 1])
    const [missed] = results[1]?.missed ?? []
    assert.deepEqual(missed?.path, ['expect', 'call', 'files:write_file'])
    assert.deepEqual([missed?.expected, missed?.found], ['allow', 'deny'])
    assert.match(missed?.because[0] ?? '', /^input_denied: .*workspace/)
  })

  const misses: readonly (readonly [string, Omit<PolicyTest, 'shows'>, readonly (readonly [string, unknown])[]])[] = [
    [
      'a list',
      { caller: 'vera', expect: { visible: [] } },
      [['expect.visible', ['files:read_file', 'resource:files:file:///a.md', 'resource:files:file:///{+path}']]],
    ],
    ['what is hidden', { expect: { sees: ['mail:send'] } }, [['expect.sees.0', 'hidden']]],
    ['what is visible', { expect: { hides: ['files:read_file'] } }, [['expect.hides.0', 'visible']]],
    [
      'a reason',
      { expect: { reasons: { 'mail:send': ['policy_denied'] } } },
      [['expect.reasons.mail:send', ['policy_not_allowed']]],
    ],
    [
      'a text',
      { caller: 'olga', input: { path: '/' }, expect: { text: { 'files:write_file': 'no' } } },
      [['expect.text.files:write_file', 'TOOL_CALL_BLOCKED: Only in /workspace.']],
    ],
    ['notices', { expect: { notices: ['x'] } }, [['expect.notices', []]]],
    [
      'an earlier call that cannot have happened',
      {
        availability: { web: false },
        history: { calls: [{ tool: 'web:fetch' }] },
        expect: { call: { 'mail:send': 'deny' } },
      },
      [['history.calls.0', 'wait']],
    ],
    [
      'an earlier call with an input that its schema refuses',
      { history: { calls: [{ tool: 'files:write_file' }] }, expect: { hides: ['mail:send'] } },
      [['history.calls.0', 'deny']],
    ],
  ]
  for (const [what, test, found] of misses)
    it(`fails for ${what}`, async () => assert.deepEqual(await missedBy(test), found))

  it('runs no tool of its own, and each test by itself', async () => {
    const once: PolicyTest = {
      shows: 'it',
      caller: 'olga',
      input: { path: '/workspace/a' },
      expect: { call: { 'files:write_file': 'allow' } },
    }
    const { passed } = await testPolicies({ ...RULES, tests: Array.from({ length: 5 }, () => once) })
    assert.equal(passed, 5)
    assert.deepEqual(RAN, [])
  })

  it('counts the clauses that expected calls reach, and neither lists nor earlier calls', async () => {
    const { clauses } = await testPolicies({
      ...RULES,
      tests: [
        { shows: 'list', expect: { hides: ['mail:send'] } },
        {
          shows: 'call',
          caller: 'olga',
          history: { calls: [{ tool: 'mail:send' }] },
          input: { path: '/etc' },
          expect: { call: { 'files:write_file': 'deny', 'files:read_file': 'allow' } },
        },
      ],
    })
    const reached = clauses.filter(({ hits }) => hits > 0).map(({ path, hits }) => [path, hits])
    assert.deepEqual(reached, [
      ['policy[0].deny[0]', 1],
      ['policy[0].allow[0]', 1],
      ['policy[0].allow[2]', 1],
      ['policy[1].allow[0]', 2],
    ])
    assert.ok(clauses.length > reached.length)
  })

  it('warns of a rule about a tool that the catalog does not have', async () => {
    const { warnings } = await testPolicies({ ...RULES, policy: { deny: ['mail:sned'] }, tests: [] })
    assert.deepEqual(
      warnings.map(({ path }) => path),
      ['policy[0].deny[0]'],
    )
  })

  it('refuses an unknown option', async () => {
    const options = { ...RULES, tests: [], polices: [] }
    await assert.rejects(
      testPolicies(options),
      /polices: unknown option; did you mean "policy"|polices: unknown option/,
    )
  })
})

describe('checkPolicyTests', () => {
  const wrong: readonly (readonly [object, string, RegExp])[] = [
    [{ expct: {} }, 'expct', /unknown key; did you mean "expect"/],
    [{ expect: { cal: {} } }, 'expect.cal', /unknown key; did you mean "call"/],
    [{ expect: {} }, 'expect', /must expect something/],
    [{ expect: undefined }, 'expect', /is missing/],
    [{ shows: '' }, 'shows', /must be a sentence/],
    [{ caller: 'vara' }, 'caller', /unknown caller "vara".*vera/],
    [{ caller: { user: 'x', role: ['y'] } }, 'caller', /role: unknown field; did you mean "roles"/],
    [{ caller: 7 }, 'caller', /must be a caller/],
    [{ app: 'x' }, 'app', /unknown app "x"/],
    [{ at: 'yesterday' }, 'at', /must be a time such as/],
    [{ availability: { wbe: false } }, 'availability.wbe', /unknown group "wbe".*web/],
    [{ used: { 'files:write_file:3/60': 1 } }, 'used.files:write_file:3/60', /unknown limit.*files:write_file:2\/60/],
    [{ used: { 'files:write_file:2/60': -1 } }, 'used.files:write_file:2/60', /whole number/],
    [{ unlocked: [{ request: 'wbe' }] }, 'unlocked.0.request', /unknown group/],
    [{ unlocked: ['web'] }, 'unlocked.0', /must be \{ request/],
    [{ visibility: ['nothing'] }, 'visibility.0', /unknown tool "nothing"/],
    [{ history: { labels: ['untrustd'] } }, 'history.labels.0', /unknown label "untrustd".*untrusted/],
    [{ history: { call: [] } }, 'history.call', /unknown key; did you mean "calls"/],
    [{ history: { calls: [{ tool: 'web:ftch' }] } }, 'history.calls.0.tool', /unknown tool "web:ftch".*web:fetch/],
    [{ history: { calls: [{ tool: 'web:fetch', ago: 'long' }] } }, 'history.calls.0.ago', /must be a time such as 30s/],
    [
      {
        history: {
          calls: [
            { tool: 'web:fetch', ago: '1s' },
            { tool: 'web:fetch', ago: '2s' },
          ],
        },
      },
      'history.calls.1.ago',
      /is earlier than the call before it/,
    ],
    [{ history: { run: false, said: 'x' } }, 'history.said', /is known of a run only/],
    [{ history: { run: 'no' } }, 'history.run', /must be true or false/],
    [{ expect: { call: { 'mail:snd': 'deny' } } }, 'expect.call.mail:snd', /unknown tool "mail:snd".*mail:send/],
    [{ expect: { call: { 'mail:send': 'denied' } } }, 'expect.call.mail:send', /unknown outcome "denied".*deny/],
    [{ expect: { reasons: { 'mail:send': ['denied'] } } }, 'expect.reasons.mail:send.0', /unknown reason "denied"/],
    [{ expect: { sees: 'mail:send' } }, 'expect.sees', /must be a list/],
    [{ expect: { hides: ['prompt:gti:review'] } }, 'expect.hides.0', /unknown tool/],
    [{ expect: { call: ['mail:send'] } }, 'expect.call', /must be a mapping/],
  ]
  for (const [part, path, message] of wrong)
    it(`finds ${JSON.stringify(part)}`, async () => {
      const test = { shows: 'it', expect: { hides: ['mail:send'] }, ...part } as PolicyTest
      const [problem, ...more] = await checkPolicyTests({ ...RULES, tests: [test] })
      assert.equal(problem?.path.join('.'), `0.${path}`)
      assert.match(problem?.message ?? '', message)
      assert.deepEqual(more, [])
      await assert.rejects(testPolicies({ ...RULES, tests: [test] }), { code: 'config_invalid' })
    })

  it('finds all of them', async () => {
    const tests = [{ shows: 1, expect: { sees: ['a'] } }, 'no test'] as unknown as PolicyTest[]
    const problems = await checkPolicyTests({ ...RULES, tests })
    assert.deepEqual(
      problems.map(({ path }) => path.join('.')),
      ['0.shows', '0.expect.sees.0', '1'],
    )
  })
})
