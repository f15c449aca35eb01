import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool, memoryAudit, type Policy } from '@toolgate/core'
import { createInputOpener } from '@toolgate/core/audit'
import { manualClock } from '@toolgate/testing'
import { withInputs } from './sealed-calls.ts'
import { suggestPolicy, type SuggestOptions } from './suggest.ts'
import { whatIf } from './what-if.ts'

const fails = () => {
  throw new Error('no')
}
const tool = (id: string, more: Partial<Parameters<typeof defineTool>[0]> = {}) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, trusted: true, execute: () => 'done', ...more })
}
const CATALOG = [
  tool('files:read'),
  tool('files:write'),
  tool('files:move'),
  tool('web:fetch', { trusted: false }),
  tool('web:own'),
  tool('mail:send'),
  tool('broken:tool', { execute: fails }),
]
const VERA: Caller = { user: 'vera', roles: ['reader'] }
const OLGA: Caller = { user: 'olga', roles: ['writer'] }
const CALLERS = [VERA, OLGA, { user: 'solo' }, { user: 'both', roles: ['reader', 'writer'] }]

type Made = readonly [caller: Caller, tool: string, input?: object, run?: string]

/** Makes calls through a gate, and returns what it has recorded. */
async function record(calls: readonly Made[], policy: Policy = {}) {
  const clock = manualClock(Date.parse('2026-11-01T00:00:00Z'))
  const audit = memoryAudit()
  const gate = createGate({ tools: CATALOG, policy, audit, clock })
  for (const [caller, id, input = {}, run] of calls) {
    clock.advance(1000)
    const request = { tool: id, input, ...(run !== undefined && { run: { id: run } }) }
    const outcome = await (await gate.view(caller)).call(request)
    if (outcome.status !== 'waiting') continue
    await gate.approvals.decide({ user: 'boss', roles: ['approver'] }, outcome.approval.id, { decision: 'approve' })
    await (await gate.view(caller)).call(request)
  }
  await gate.close()
  return audit.records
}

async function suggest(
  calls: readonly Made[],
  { policy, ...more }: Partial<SuggestOptions> & { policy?: Policy } = {},
) {
  const records = await record(calls, policy)
  return { records, ...(await suggestPolicy({ rules: { catalog: CATALOG, callers: CALLERS }, records, ...more })) }
}

describe('suggestPolicy', () => {
  it('learns from sealed inputs, of which no preview was kept', async () => {
    const [key, other] = ['1', '2'].map((digit) => digit.repeat(64)) as [string, string]
    const audit = memoryAudit({ inputs: { keep: 'sealed', key }, preview: false })
    const gate = createGate({ tools: CATALOG, audit })
    const view = await gate.view(VERA)
    for (const name of ['x', 'y']) await view.call({ tool: 'files:read', input: { path: `/srv/a/${name}` } })
    await gate.close()
    const rules = { catalog: CATALOG, callers: CALLERS }
    const ask = async (known: Pick<SuggestOptions, 'records' | 'inputOf'>) =>
      (await suggestPolicy({ rules, ...known })).roles.flatMap(({ tools }) =>
        tools.map(({ input, unknownInputs }) => [input, unknownInputs]),
      )
    const sealed = (used: string) => withInputs(audit.records, audit, createInputOpener({ key: used }))
    assert.deepEqual(await ask({ records: audit.records }), [[undefined, 2]])
    assert.deepEqual(await ask(sealed(other)), [[undefined, 2]])
    assert.deepEqual(await ask(sealed(key)), [['input.path.startsWith("/") && within(input.path, "/srv/a")', 0]])
  })

  it('knows the roles of people who signed in', async () => {
    const ann: Caller = { user: 'corp/ann', tenant: 'acme', roles: ['clerk'] }
    const calls: readonly Made[] = [[{ ...ann, client: 'desk' }, 'files:read']]
    const unknown = await suggest(calls)
    assert.deepEqual([unknown.learned, unknown.leftOut], [0, [{ why: 'unknown_caller', calls: 1 }]])
    const { learned, roles } = await suggest(calls, { people: [ann], role: 'clerk' })
    assert.deepEqual([learned, roles.map((one) => [one.roles, one.tenant])], [1, [[['clerk'], 'acme']]])
  })

  it('allows each role the tools that it has called, by exact id, and nothing else', async () => {
    const { policy, learned, leftOut } = await suggest([
      [VERA, 'files:read'],
      [VERA, 'files:read'],
      [OLGA, 'mail:send'],
      [OLGA, 'files:read'],
      [{ user: 'solo' }, 'mail:send'],
      [{ user: 'both', roles: ['reader', 'writer'] }, 'files:move'],
    ])
    assert.deepEqual(policy, {
      name: 'suggested',
      allow: [
        { match: 'files:read', when: '"reader" in caller.roles' },
        { match: 'files:move', when: '"reader" in caller.roles && "writer" in caller.roles' },
        { match: ['files:read', 'mail:send'], when: '"writer" in caller.roles' },
        { match: 'mail:send', when: 'has(caller.user) && caller.user == "solo"' },
      ],
    })
    assert.deepEqual([learned, leftOut], [6, []])
  })

  const inputs: readonly (readonly [what: string, inputs: readonly object[], condition: string | undefined])[] = [
    [
      'the folder that all paths have in common',
      [{ path: '/w/a/x.md' }, { path: '/w/a/b/y.md' }],
      'input.path.startsWith("/") && within(input.path, "/w/a")',
    ],
    ['one file', [{ path: '/w/a.md' }], 'input.path.startsWith("/") && within(input.path, "/w/a.md")'],
    [
      'no folder above all: each of the first level',
      [{ path: '/w/a' }, { path: '/v/b' }],
      'input.path.startsWith("/") && (within(input.path, "/v") || within(input.path, "/w"))',
    ],
    ['a path that goes up', [{ path: '/w/../etc/passwd' }], undefined],
    ['the root', [{ path: '/' }], undefined],
    ['relative paths', [{ path: 'a.md' }], undefined],
    [
      'exact hosts',
      [{ url: 'https://B.example/x' }, { url: 'http://a.example:81/y' }],
      'host(input.url) in ["a.example", "b.example"]',
    ],
    ['a URL in which readers find different hosts', [{ url: 'https://a.example\\@b.example/' }], undefined],
    [
      'a field that not each call has',
      [{ path: '/w' }, {}],
      '(!has(input.path) || (input.path.startsWith("/") && within(input.path, "/w")))',
    ],
    [
      'lists of paths',
      [{ paths: ['/w/a', '/w/b'] }, { paths: ['/w/c'] }],
      'input.paths.all(one, one.startsWith("/") && within(one, "/w"))',
    ],
    ['values of several kinds', [{ path: '/w' }, { path: 7 }], undefined],
    ['numbers and other texts', [{ n: 7, text: 'hello' }], undefined],
    ['a path that readers take for another', [{ path: '/w/\uff0e\uff0e/etc' }], undefined],
    ['a field whose name is no name', [{ 'a.b': '/w' }], undefined],
  ]
  for (const [what, all, condition] of inputs)
    it(`learns from inputs: ${what}`, async () => {
      const { policy, records } = await suggest(all.map((input) => [VERA, 'files:read', input]))
      const [clause] = (policy.allow ?? []) as readonly { input?: string }[]
      assert.equal(clause?.input, condition)
      // It is one that a gate takes, and that no learned call would be refused by.
      const gate = createGate({ tools: CATALOG, policy })
      const view = await gate.view(VERA)
      for (const input of all) assert.equal((await view.call({ tool: 'files:read', input })).status, 'done')
      const rules = { catalog: CATALOG, callers: CALLERS }
      const { rows } = await whatIf({ before: rules, after: { ...rules, policy }, records })
      assert.deepEqual(rows, [])
    })

  it('does not learn from a run that had read something untrusted', async () => {
    const { roles, leftOut } = await suggest([
      [VERA, 'files:read', {}, 'a'],
      [VERA, 'web:fetch', {}, 'a'],
      [VERA, 'mail:send', {}, 'a'],
      [VERA, 'files:write', {}, 'a'],
      [VERA, 'files:move', {}, 'b'],
    ])
    assert.deepEqual(
      roles[0]?.tools.map(({ tool: id }) => id),
      ['files:move', 'files:read', 'web:fetch'],
    )
    assert.deepEqual(leftOut, [{ why: 'untrusted', calls: 2 }])
  })

  it('does not learn from a sub-agent of such a run in the same session, nor from a caller without a run', async () => {
    const session: Caller = { ...VERA, session: 's' }
    const { roles, leftOut } = await suggest([
      [session, 'web:fetch', {}, 'a'],
      [session, 'mail:send', {}, 'a.1'],
      [OLGA, 'web:fetch'],
      [OLGA, 'mail:send'],
    ])
    assert.deepEqual(
      roles.map(({ tools }) => tools.map(({ tool: id }) => id)),
      [['web:fetch'], ['web:fetch']],
    )
    assert.deepEqual(leftOut, [{ why: 'untrusted', calls: 2 }])
  })

  it('believes the labels that were recorded', async () => {
    const policy: Policy = { deny: [{ match: 'files:move', input: "'untrusted' in run.labels" }] }
    const records = await record(
      [
        [VERA, 'web:fetch', {}, 'a'],
        [VERA, 'mail:send', {}, 'a'],
      ],
      policy,
    )
    const trusting = CATALOG.map((one) => (one.id === 'web:fetch' ? tool('web:fetch') : one))
    const { leftOut } = await suggestPolicy({ rules: { catalog: trusting, callers: CALLERS }, records })
    assert.deepEqual(leftOut, [{ why: 'untrusted', calls: 1 }])
  })

  it('asks where a person has approved', async () => {
    const { policy } = await suggest(
      [
        [VERA, 'mail:send'],
        [VERA, 'files:read'],
      ],
      { policy: { ask: ['mail:send'] } },
    )
    const when = '"reader" in caller.roles'
    assert.deepEqual(policy, {
      name: 'suggested',
      allow: [{ match: ['files:read', 'mail:send'], when }],
      ask: [{ match: 'mail:send', when }],
    })
  })

  it('does not learn from calls that failed, were refused, or whose caller or tool is not known', async () => {
    const records = await record(
      [
        [VERA, 'broken:tool'],
        [VERA, 'files:write'],
        [{ user: 'stranger', roles: ['admin'] }, 'files:read'],
        [VERA, 'web:own'],
        [VERA, 'files:read'],
      ],
      { deny: ['files:write'] },
    )
    const catalog = CATALOG.filter(({ id }) => id !== 'web:own')
    const { leftOut, learned } = await suggestPolicy({ rules: { catalog, callers: CALLERS }, records })
    assert.deepEqual(leftOut, [
      // After a tool that is gone nobody knows what the caller has read.
      { why: 'untrusted', calls: 1 },
      { why: 'unknown_caller', calls: 1 },
      { why: 'unknown_tool', calls: 1 },
      { why: 'failed', calls: 1 },
      { why: 'refused', calls: 1 },
    ])
    assert.equal(learned, 0)
  })

  it('quotes names', async () => {
    const odd: Caller = { user: 'odd', roles: ['" in caller.roles || true || "'] }
    const records = await record([[odd, 'files:read']])
    const { policy, learned } = await suggestPolicy({ rules: { catalog: CATALOG, callers: [odd] }, records })
    assert.equal(learned, 1)
    const gate = createGate({ tools: CATALOG, policy })
    assert.deepEqual((await gate.view(odd)).ids, ['files:read'])
    assert.deepEqual((await gate.view(VERA)).ids, [])
  })

  it('does not let a relative path pass for one below the folder that was learned', async () => {
    const { policy } = await suggest([[VERA, 'files:read', { path: '/w/a.md' }]])
    const view = await createGate({ tools: CATALOG, policy }).view(VERA)
    for (const path of ['etc/passwd', 'a.md', ''])
      assert.equal((await view.call({ tool: 'files:read', input: { path } })).status, 'refused', path)
  })

  it('allows nobody else what a caller without a name has called', async () => {
    const records = await record([[{}, 'files:read']])
    const { policy } = await suggestPolicy({ rules: { catalog: CATALOG, callers: [{}, VERA] }, records })
    const gate = createGate({ tools: CATALOG, policy })
    assert.deepEqual((await gate.view({})).ids, ['files:read'])
    assert.deepEqual((await gate.view(VERA)).ids, [])
  })

  it('allows a tenant what this tenant has called, and no folder above those of two tenants', async () => {
    const acme: Caller = { ...VERA, tenant: 'acme' }
    const globex: Caller = { ...VERA, tenant: 'globex' }
    const solo: Caller = { user: 'solo', tenant: 'acme' }
    const callers = [acme, globex, solo, { user: 'solo', tenant: 'globex' }, VERA]
    const records = await record([
      [acme, 'files:read', { path: '/t/acme/x' }],
      [globex, 'files:read', { path: '/t/globex/x' }],
      [solo, 'mail:send'],
      [VERA, 'files:move'],
    ])
    const { policy, roles } = await suggestPolicy({ rules: { catalog: CATALOG, callers }, records })
    assert.deepEqual(
      roles.map(({ tenant }) => tenant),
      [undefined, 'acme', 'globex', 'acme'],
    )
    const gate = createGate({ tools: CATALOG, policy })
    assert.deepEqual(await Promise.all(callers.map(async (caller) => (await gate.view(caller)).ids)), [
      ['files:read'],
      ['files:read'],
      ['mail:send'],
      [],
      ['files:move'],
    ])
    const input = { path: '/t/globex/x' }
    assert.equal((await (await gate.view(acme)).call({ tool: 'files:read', input })).status, 'refused')
    assert.equal((await (await gate.view(globex)).call({ tool: 'files:read', input })).status, 'done')
  })

  it('allows nothing where nothing was learned', async () => {
    const { policy, learned } = await suggest([])
    assert.deepEqual([policy, learned], [{ name: 'suggested', allow: [] }, 0])
  })

  it('takes one role alone, and calls from a time on', async () => {
    const calls: readonly Made[] = [
      [VERA, 'files:read'],
      [OLGA, 'mail:send'],
      [VERA, 'files:move'],
    ]
    assert.deepEqual(
      (await suggest(calls, { role: 'writer' })).roles.map(({ roles }) => roles),
      [['writer']],
    )
    const { roles } = await suggest(calls, { since: Date.parse('2026-11-01T00:00:02Z') })
    assert.deepEqual(
      roles.map(({ tools }) => tools.map(({ tool: id }) => id)),
      [['files:move'], ['mail:send']],
    )
  })

  it('does not learn where the audit begins in the middle of a run', async () => {
    const records = await record([
      [VERA, 'files:read', {}, 'a'],
      [VERA, 'files:write', {}, 'a'],
    ])
    const { learned, leftOut } = await suggestPolicy({
      rules: { catalog: CATALOG, callers: CALLERS },
      records: records.slice(2),
    })
    assert.deepEqual([learned, leftOut], [0, [{ why: 'unknown_run', calls: 1 }]])
  })

  it('says how many inputs were not kept', async () => {
    const { roles } = await suggest([
      [VERA, 'files:read', { path: '/w/a', text: 'x'.repeat(300) }],
      [VERA, 'files:read', { path: '/w/b', password: 'hunter2hunter2' }],
      [VERA, 'files:read', { path: '/w/c' }],
    ])
    assert.deepEqual(roles[0]?.tools, [
      {
        tool: 'files:read',
        calls: 3,
        ask: false,
        input: 'input.path.startsWith("/") && within(input.path, "/w/c")',
        unknownInputs: 2,
      },
    ])
  })
})

describe('suggestPolicy of long inputs', () => {
  const LONG = 'x'.repeat(400)
  const rules = { catalog: CATALOG, callers: CALLERS }
  /** Long inputs, which previews have the beginnings of, under a rule that reads their path. */
  async function recordLong(inputs: readonly object[], deny: string) {
    const audit = memoryAudit({ inputs: 'facts' })
    const gate = createGate({
      tools: CATALOG,
      policy: [{ allow: ['*'] }, { deny: [{ match: 'files:write', input: deny }] }],
      audit,
      clock: manualClock(Date.parse('2026-11-01T00:00:00Z')),
    })
    for (const input of inputs)
      await (await gate.view(VERA)).call({ tool: 'files:write', input: { aa: LONG, ...input } })
    await gate.close()
    return audit.records
  }

  it('are known by the facts that rules read of them', async () => {
    const reads = 'has(input.path) && input.path.startsWith("/etc")'
    const records = await recordLong([{ path: '/w/a/x' }, { path: '/w/a/y' }, {}], reads)
    const { roles } = await suggestPolicy({ rules, records })
    const [found] = roles[0]?.tools ?? []
    assert.deepEqual(found, {
      tool: 'files:write',
      calls: 3,
      ask: false,
      input: '(!has(input.path) || (input.path.startsWith("/") && within(input.path, "/w/a")))',
      unknownInputs: 0,
    })
  })

  it('are not known where only hashes of texts were kept, or a condition reads another part', async () => {
    const hashed = await recordLong([{ path: '/w/a/x' }], 'input.path == "/etc/passwd"')
    const [unknown] = (await suggestPolicy({ rules, records: hashed })).roles[0]?.tools ?? []
    assert.deepEqual([unknown?.input, unknown?.unknownInputs], [undefined, 1])
    const other = await recordLong([{ path: '/w/a/x', to: '/v/b' }], 'has(input.path) && input.path.startsWith("/etc")')
    const whole = await record([[VERA, 'files:write', { path: '/w/a/z', to: '/v/c' }]])
    const records = [...other, ...whole.map((one) => ({ ...one, seq: one.seq + 10, tool_call_id: 'other' }))]
    const [both] = (await suggestPolicy({ rules, records })).roles[0]?.tools ?? []
    assert.deepEqual(
      [both?.input, both?.unknownInputs],
      [
        'input.path.startsWith("/") && within(input.path, "/w/a") && input.to.startsWith("/") && within(input.to, "/v/c")',
        1,
      ],
    )
  })
})
