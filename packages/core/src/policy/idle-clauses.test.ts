import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createGate } from '../gate/gate.ts'
import type { Caller } from '../ports/caller.ts'
import { parseGroups } from '../tools/groups.ts'
import { definePrompt, defineResource, defineTemplate } from '../tools/items.ts'
import { defineTool } from '../tools/tool.ts'
import { findIdleClauses } from './idle-clauses.ts'
import { parsePolicies } from './parse.ts'
import type { Clause, Policy } from './policy.ts'

const GROUPS = { web: { tools: ['web:*', 'files:read_a'] }, docs: { tools: ['web:*'] } }
const ALIASES = { old_read: 'files:read_a' }
const SELECTORS = parseGroups(new Map(Object.entries(GROUPS)), new Map(Object.entries(ALIASES))).selectors

const tool = (id: string, more: object = {}) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, ...(namespace !== undefined && { namespace }), ...more, execute: () => 'ran' })
}
const TOOLS = [
  tool('files:read_a', { tags: ['read'] }),
  tool('files:read_b', { annotations: { readOnlyHint: true } }),
  tool('files:write', { groups: ['web', 'docs'], category: 'c' }),
  tool('web:read_a', { tags: ['read'], hintsTrusted: true, annotations: { destructiveHint: true } }),
  tool('bare'),
  defineResource({ namespace: 'files', uri: 'file:///a/b' }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///a/{x}' }),
  definePrompt({ namespace: 'web', name: 'p' }),
]
const CALLERS: readonly Caller[] = [
  {},
  { user: 'vera', roles: ['viewer'] },
  { user: 'olga', roles: ['operator', 'viewer'], tenant: 'acme' },
]

const ITEMS = ['resource:files:*', 'resource:*:*', 'resource:files:file:///a/*', 'prompt:web:*']
const MATCH = fc.oneof(
  fc.constantFrom(
    '*',
    'files:*',
    'files:read_*',
    'files:*_a',
    '*:read_a',
    '*:*',
    'files:read_a',
    'bare',
    'b*',
    'web:*',
  ),
  fc.constantFrom(
    'group:web',
    'group:docs',
    'tag:read',
    'category:c',
    'hint:read-only',
    'hint:destructive',
    'old_read',
  ),
  fc.constantFrom(...ITEMS),
)
const WHEN = fc.constantFrom(
  "'viewer' in caller.roles",
  "'admin' in caller.roles",
  "caller.tenant == 'acme'",
  "caller.user == 'vera' && tool.name == 'write'",
  "'admin' in caller.roles && caller.tenant == 'x'",
  "'viewer' in caller.roles || caller.tenant == 'x'",
  "tool.name.startsWith('read')",
  'true',
  'false',
  "false && caller.tenant == 'x'",
  '1 > 2',
)
const INPUT = fc.constantFrom("input.path == '/a'", 'input.size > 3', 'false', 'true', "'untrusted' in run.labels")
const CLAUSE: fc.Arbitrary<Clause> = fc.record(
  {
    match: fc.array(MATCH, { minLength: 1, maxLength: 2 }) as fc.Arbitrary<string[]>,
    when: WHEN,
    unless: WHEN,
    input: INPUT,
    message: fc.constantFrom('Not for you.', 'No.'),
  },
  { requiredKeys: ['match'] },
)
/** Often the same but for one field, so that clauses cover each other. */
const POLICY: fc.Arbitrary<Policy> = fc
  .tuple(
    fc.array(CLAUSE, { maxLength: 3 }),
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.constantFrom('deny', 'ask', 'allow'),
        CLAUSE,
        fc.subarray(['match', 'when', 'unless', 'input', 'message', 'shadow', 'by']),
      ),
      { maxLength: 5 },
    ),
    fc.boolean(),
  )
  .map(([base, more, hasAllow]) => {
    const lists: Record<'deny' | 'ask' | 'allow', Clause[]> = {
      deny: [],
      ask: [],
      allow: hasAllow ? [{ match: '*' }] : [],
    }
    for (const [i, kind, other, changed] of more) {
      const from = base[i % Math.max(1, base.length)] ?? other
      const entries = Object.entries({
        ...from,
        ...Object.fromEntries(Object.entries(other).filter(([key]) => changed.includes(key))),
      })
      const clause = Object.fromEntries(
        entries.filter(([key]) => !(changed.includes(key) && key !== 'match' && i % 2 === 0)),
      ) as unknown as Clause
      lists[kind as 'deny'].push({
        ...clause,
        ...(kind === 'ask' && changed.includes('by') && { by: 'other' as const }),
        ...(kind !== 'allow' && changed.includes('shadow') && i % 3 === 0 && { mode: 'shadow' as const }),
      })
    }
    return {
      ...(lists.deny.length > 0 && { deny: lists.deny }),
      ...(lists.ask.length > 0 && { ask: lists.ask }),
      ...((hasAllow || lists.allow.length > 0) && { allow: lists.allow }),
    }
  })

function open(policy: readonly Policy[]) {
  return createGate({
    sources: [{ name: 'all', tools: () => TOOLS, subscribe: () => () => {} }],
    groups: GROUPS,
    aliases: ALIASES,
    policy,
    audit: { write: () => {}, flush: async () => {}, close: async () => {} },
    onWarning: () => {},
  })
}

const INPUTS = [{}, { path: '/a' }, { path: '/b', size: 5 }, { size: 'x' }]

/** What callers see, and what each call comes to. `isLoud`: with the texts for the model. */
async function decisions(policy: readonly Policy[], isLoud: boolean) {
  const gate = open(policy)
  const found: unknown[] = []
  for (const caller of CALLERS) {
    const view = await gate.view(caller)
    for (const { id, kind } of TOOLS) {
      found.push([id, view.has(id), view.explain(id).outcome])
      for (const input of kind === 'tool' ? INPUTS : [{ uri: 'file:///a/b' }])
        for (const said of [undefined, 'hello']) {
          const run = said === undefined ? {} : { run: { id: 'r', resumed: true } }
          const preview = await view.preview({ tool: id, input, ...run })
          const text = isLoud && preview.status === 'refused' ? wordsOf(preview.text) : ''
          found.push([id, preview.status, preview.decision.outcome, text])
        }
    }
  }
  await gate.close()
  return found
}

/** Sentences may change their order. */
function wordsOf(text: string): string {
  return text.split(' ').toSorted().join(' ')
}

function without(policies: readonly Policy[], path: string): readonly Policy[] {
  const [, p, kind, c] = /^policy\[(\d+)\]\.(\w+)\[(\d+)\]$/.exec(path) ?? []
  return policies.map((policy, i) =>
    i === Number(p)
      ? { ...policy, [kind as 'deny']: (policy[kind as 'deny'] ?? []).filter((_, j) => j !== Number(c)) }
      : policy,
  )
}

const idle = (policy: readonly Policy[], callers?: readonly Caller[]) =>
  findIdleClauses(parsePolicies(policy, SELECTORS), callers)

/** A label may not loosen a rule. */
function isValid(policies: readonly Policy[]): boolean {
  return policies.every(({ allow = [] }) => !JSON.stringify(allow).includes('run.labels'))
}

describe('findIdleClauses', () => {
  it('names only clauses without which each decision is the same', async () => {
    const named = { clause_covered: 0, clause_never: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(POLICY, { minLength: 1, maxLength: 2 }), async (policies) => {
        fc.pre(isValid(policies))
        const found = idle(policies, CALLERS)
        for (const { path, code, text } of found.slice(0, 2)) {
          named[code]++
          const isLoud = !text.includes('allows nothing')
          assert.deepEqual(await decisions(without(policies, path), isLoud), await decisions(policies, isLoud), text)
        }
      }),
      { numRuns: Number(process.env['RUNS'] ?? 100) },
    )
    assert.ok(named.clause_covered > 4 && named.clause_never > 4, JSON.stringify(named))
  })

  const VIEWER = "'viewer' in caller.roles"
  const TENANT = "caller.tenant == 'acme'"
  for (const [shows, policy, found] of [
    ['a narrower pattern', { deny: ['files:*', 'files:read_*'] }, ['deny[1] by deny[0]']],
    ['an earlier and narrower pattern', { deny: ['files:read_a', 'files:*'] }, ['deny[0] by deny[1]']],
    ['the later of two equal clauses', { ask: ['tag:read', 'tag:read'] }, ['ask[1] by ask[0]']],
    [
      'what everything names',
      { deny: ['*', 'group:web', 'tag:read', 'b*'] },
      ['deny[1] by deny[0]', 'deny[2] by deny[0]', 'deny[3] by deny[0]'],
    ],
    ['no resource by a pattern of tools', { deny: ['*', 'resource:files:*'] }, []],
    [
      'everything of a server',
      { deny: ['server:files', 'files:read_*', 'resource:files:*', 'web:*'] },
      ['deny[1] by deny[0]', 'deny[2] by deny[0]'],
    ],
    ['a group by its own name, and not by its pattern', { deny: ['web:*', 'group:docs'] }, ['deny[0] by deny[1]']],
    ['a member of a group', { deny: ['group:web', 'web:read_a'] }, ['deny[1] by deny[0]']],
    ['an alias by both of its names', { deny: ['files:*', 'old_read'] }, []],
    ['an ask under a deny', { deny: ['files:*'], ask: ['files:read_a'] }, ['ask[0] by deny[0]']],
    ['no ask under a deny for some', { deny: [{ match: 'files:*', when: VIEWER }], ask: ['files:read_a'] }, []],
    [
      'an ask under a deny with its condition',
      { deny: [{ match: '*', when: VIEWER }], ask: [{ match: 'bare', when: VIEWER }] },
      ['ask[0] by deny[0]'],
    ],
    ['no deny under an ask', { ask: ['files:*'], deny: ['files:read_a'] }, []],
    [
      'an allow under a deny',
      { deny: [{ match: 'files:*', message: 'No.' }], allow: ['files:read_a', 'web:*'] },
      ['allow[0] by deny[0]'],
    ],
    [
      'an allow under a wider one',
      { allow: ['files:*', { match: 'files:read_a', when: TENANT }] },
      ['allow[1] by allow[0]'],
    ],
    ['no deny with a message under one without', { deny: [{ match: '*', message: 'No.' }, 'bare'] }, []],
    [
      'no deny that may fail where the wider one does not hold',
      {
        deny: [
          { match: '*', input: 'input.a == 1' },
          { match: 'bare', input: 'input.a == 1', when: TENANT },
        ],
      },
      [],
    ],
    [
      'no deny that may fail where the wider one is exempt',
      {
        deny: [
          { match: '*', unless: VIEWER },
          { match: 'bare', when: TENANT, unless: VIEWER },
        ],
      },
      [],
    ],
    ['no ask that may fail', { ask: ['*', { match: 'bare', when: TENANT }] }, []],
    ['an ask that cannot fail', { ask: ['*', { match: 'bare', when: VIEWER }] }, ['ask[1] by ask[0]']],
    ['no ask that demands more of the approver', { ask: ['*', { match: 'bare', by: 'other' }] }, []],
    [
      'an ask that demands less',
      {
        ask: [
          { match: '*', login: '5m' },
          { match: 'bare', login: '1h' },
        ],
      },
      ['ask[1] by ask[0]'],
    ],
    ['nothing under a shadow', { deny: [{ match: '*', mode: 'shadow' }, 'bare'] }, []],
    ['no shadow', { deny: ['*', { match: 'bare', mode: 'shadow' }] }, []],
    ['a condition that is always false', { deny: [{ match: '*', when: 'false' }] }, ['deny[0] never']],
    ['an exemption of everybody', { deny: [{ match: '*', unless: '1 < 2' }] }, ['deny[0] never']],
    ['an input that never is', { ask: [{ match: '*', input: 'false && input.a == 1' }] }, ['ask[0] never']],
    ['no allow with an input that never is, as it is listed', { allow: [{ match: '*', input: 'false' }] }, []],
    [
      'a role that no caller has',
      { deny: [{ match: '*', when: "'admin' in caller.roles && tool.name == 'x'" }] },
      ['deny[0] never'],
    ],
    [
      'an exemption of a role that no caller has',
      { deny: [{ match: '*', unless: "!('admin' in caller.roles)" }] },
      ['deny[0] never'],
    ],
    ['no condition that fails for a caller', { deny: [{ match: '*', when: "caller.tenant == 'x'" }] }, []],
    ['no condition about what a client says', { deny: [{ match: '*', when: "caller.session == 'x'" }] }, []],
  ] as const satisfies readonly (readonly [string, Policy, readonly string[]])[])
    it(`finds ${shows}`, () => {
      const short = (path: string | undefined) => path?.slice('policy[0].'.length) ?? ''
      const named = idle([policy], CALLERS).map(({ path, by }) => `${short(path)} ${by ? `by ${short(by)}` : 'never'}`)
      assert.deepEqual(named, found)
    })

  it('finds a clause that another policy covers, but no allow, as each list counts by itself', () => {
    const found = idle([
      { deny: ['files:*'], allow: ['*'] },
      { deny: ['files:read_a'], allow: ['bare'] },
    ])
    assert.deepEqual(found, [
      {
        code: 'clause_covered',
        path: 'policy[1].deny[0]',
        text: '"files:read_a" changes nothing: policy[0].deny[0] ("files:*") denies all of it',
        by: 'policy[0].deny[0]',
      },
    ])
  })

  it('knows roles only where it knows every caller', () => {
    const policy = [{ deny: [{ match: '*', when: "'admin' in caller.roles" }] }]
    assert.equal(
      idle(policy, CALLERS)[0]?.text,
      '"*" never holds: `when` is false for every caller of the configuration',
    )
    assert.deepEqual([idle(policy), idle(policy, [])], [[], []])
  })
})
