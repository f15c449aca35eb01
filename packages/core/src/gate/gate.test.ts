import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import type { GateOptions } from './options.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { Visibility } from './views.ts'

const tools = ['files:read', 'files:write', 'notes', 'web:search'].map((id) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace, execute: () => 'ran' })
})
const open = (options: GateOptions = {}) => createGate({ tools, ...options })

describe('createGate', () => {
  it('lets everything pass where nothing is said', async () => {
    const view = await open().view({})
    assert.deepEqual(view.ids, ['files:read', 'files:write', 'notes', 'web:search'])
    assert.equal((await view.call({ tool: 'notes' })).status, 'done')
  })

  const refused: readonly (readonly [what: string, options: GateOptions, error: object])[] = [
    ['a policy', { policy: { deny: ['search'] } }, { path: 'policy[0].deny[0]', code: 'selector_invalid' }],
    ['a group', { groups: { a: { tools: ['b:'] } } }, { path: 'groups.a.tools[0]' }],
    ['a limit', { limits: 'notes:0/1' }, { path: 'limits[0]' }],
    ['a deadline', { deadlineMs: 0 }, { path: 'deadlineMs', message: /0 is not a number of milliseconds/ }],
    ['a deadline beyond every timer', { deadlineMs: 2 ** 31 }, { path: 'deadlineMs' }],
    ['a deadline that is no number', { visibilityDeadlineMs: Number.NaN }, { path: 'visibilityDeadlineMs' }],
    ['two tools of one id', { tools: [...tools, ...tools] }, { code: 'tool_duplicate' }],
    ['what is no tool', { tools: [{ id: 'a' } as Tool] }, { code: 'tool_invalid' }],
  ]
  for (const [what, options, error] of refused) {
    it(`refuses ${what} that cannot be used`, () => assert.throws(() => open(options), error))
  }

  it('lets a policy name what does not exist yet where tools can still come, and lints it', () => {
    const source = { name: 'live', tools: () => tools, subscribe: () => () => {} }
    const gate = createGate({ sources: [source], policy: { deny: ['mail:send'] } })
    assert.deepEqual(gate.lint(), [
      {
        code: 'selector_unmatched',
        path: 'policy[0].deny[0]',
        text: '"mail:send" names no tool; the nearest are "files:read", "notes", "web:search"',
      },
    ])
  })

  it('knows the members of a group, visible or not', () => {
    const gate = open({ groups: { web: { tools: ['web:*', '*:read'] } }, policy: { allow: [] } })
    assert.deepEqual(gate.membersOf('web'), ['files:read', 'web:search'])
  })

  it('rejects a value that is not a tool, and names its place', () => {
    const wrong = [
      [null, 'null'],
      [{ name: 'a' }, 'a plain object'],
      [undefined, 'undefined'],
      [[], 'a list'],
    ] as const
    for (const [tool, said] of wrong)
      assert.throws(() => createGate({ tools: [tools[0], tool] as never }), {
        name: 'ConfigError',
        message: `tools[1]: must be a tool that defineTool made, not ${said}`,
      })
  })

  it('names every unknown name of a list, each with the nearest', async () => {
    const view = open().view({ user: 'vera' }, { activeTools: ['note', 'web:serch', 'notes'] })
    await assert.rejects(view, {
      code: 'tool_unknown',
      message: /^Unknown tool "note". Did you mean "notes".* Unknown tool "web:serch". Did you mean "web:search"/,
    })
  })

  it('refuses to give the members of an unknown group, and names the nearest', () => {
    const gate = open({ groups: { web: { tools: ['web:*'] } } })
    assert.throws(() => gate.membersOf('wbe'), /no group is named "wbe" \(did you mean "web"\?\); the groups are web/)
    assert.throws(() => gate.membersOf('constructor'), /no group is named "constructor"; the groups are web/)
  })
})

describe('gate.setPolicy', () => {
  it('replaces the policy for the next decision, in runs under way too', async () => {
    const gate = open()
    const view = await gate.view({})
    gate.setPolicy({ deny: ['notes'] })
    assert.equal(gate.policyRevision, 2)
    assert.equal((await view.call({ tool: 'notes' })).status, 'refused')
    assert.equal(view.explain('notes').reasons[0]?.code, 'policy_denied')
    assert.equal((await gate.view({})).has('notes'), false)
  })

  it('keeps the old policy, and its revision, where the new one cannot be used', async () => {
    const gate = open({ policy: { deny: ['notes'] } })
    const bad = [{ deny: ['nothing'] }, { deny: [{ match: '*', when: 'caller.rolez' }] }, { denyy: [] } as object]
    for (const policy of bad) assert.throws(() => gate.setPolicy(policy), { name: 'ConfigError' })
    assert.equal(gate.policyRevision, 1)
    assert.equal((await gate.view({})).has('notes'), false)
  })

  it('replaces all policies, none allowing everything', async () => {
    const gate = open({ policy: [{ deny: ['notes'] }, { allow: [] }] })
    gate.setPolicy([])
    assert.equal((await gate.view({})).size, 4)
  })
})

describe('gate.view', () => {
  it('returns one view for equal callers while nothing changes', async () => {
    const availability = memoryAvailability({ web: { available: true } })
    const gate = open({ groups: { web: { tools: ['web:*'], visibility: 'conditional' } }, availability })
    const vera = { user: 'vera', roles: ['a', 'b'] }
    const view = await gate.view(vera)
    assert.equal(await gate.view({ roles: ['b', 'a'], user: 'vera' }), view)
    assert.notEqual(await gate.view({ user: 'omar', roles: ['a', 'b'] }), view)
    availability.set('web', { available: false })
    const later = await gate.view(vera)
    assert.notEqual(later, view)
    assert.deepEqual([view.size, later.size], [4, 3])
    gate.setPolicy({ deny: ['notes'] })
    assert.deepEqual((await gate.view(vera)).ids, ['files:read', 'files:write'])
  })

  it('takes the caller as it is now, though it be changed later', async () => {
    const gate = open({ policy: { deny: [{ match: 'notes', unless: "'admin' in caller.roles" }] } })
    const caller = { roles: ['admin'] }
    const view = await gate.view(caller)
    caller.roles.length = 0
    assert.equal(view.has('notes'), true)
    assert.equal((await gate.view(caller)).has('notes'), false)
  })

  it('rejects an invalid caller, and a name that the catalog has never seen', async () => {
    const gate = open()
    await assert.rejects(gate.view({ role: 'admin' } as object), { code: 'caller_invalid' })
    await assert.rejects(gate.view({}, { activeTools: ['note'] }), {
      name: 'UnknownToolError',
      message: 'Unknown tool "note". Did you mean "notes", "files:read", "files:write"?',
    })
    await assert.rejects(gate.view({}, { activeTools: ['note'], visibility: [] }), { code: 'tool_unknown' })
    const all = await gate.view({})
    for (const activeTools of [null, 'notes', {}] as never[]) {
      const problem = { code: 'config_invalid', message: /^activeTools: must be a list/ }
      await assert.rejects(gate.view({}, { activeTools }), problem)
      assert.throws(() => all.narrow({ activeTools }), problem)
    }
  })

  it('takes a failing availability for an unavailable group', async () => {
    const availability = { ...memoryAvailability(), get: () => assert.fail('no connection') }
    const gate = open({ groups: { web: { tools: ['web:*'], visibility: 'conditional' } }, availability })
    const view = await gate.view({})
    assert.deepEqual(view.ids, ['files:read', 'files:write', 'notes'])
    assert.equal(
      (await view.call({ tool: 'web:search' })).text,
      'web:search is unavailable: its availability cannot be found out.',
    )
  })
})

describe('visibility', () => {
  const viewBy = (visibility: Visibility, options: GateOptions = {}) =>
    open({ policy: { deny: ['files:write'] }, ...options }).view({ user: 'vera' }, { visibility })

  it('is a list of ids or tools, or a function that returns one, now or later', async () => {
    const [read] = tools as [Tool]
    const given: Visibility[] = [
      ['files:read'],
      [read],
      new Set(['files:read']),
      () => ['files:read'],
      async () => [read],
      ({ tools: offered }) => offered.filter((tool) => tool.name === 'read'),
      function* () {
        yield read
      },
    ]
    for (const visibility of given) {
      const view = await viewBy(visibility)
      assert.deepEqual([view.ids, view.failure], [['files:read'], undefined])
    }
  })

  it('is asked once, with the caller and what policy and scopes permit', async () => {
    const asked: unknown[] = []
    const availability = memoryAvailability({ web: { available: false } })
    const view = await viewBy(
      ({ tools: offered, caller }) => {
        asked.push([offered.map(({ id }) => id), caller.user])
        return offered
      },
      { groups: { web: { tools: ['web:*'], visibility: 'conditional' } }, availability },
    )
    assert.deepEqual(asked, [[['files:read', 'notes', 'web:search'], 'vera']])
    assert.deepEqual(view.ids, ['files:read', 'notes'])
    availability.set('web', { available: true })
    assert.deepEqual(view.narrow({}).ids, ['files:read', 'notes', 'web:search'])
  })

  it('can show nothing that the policy hides, and no tool that there is not', async () => {
    const view = await viewBy(['files:write', 'notes', 'nothing', 'constructor'])
    assert.deepEqual([view.ids, view.failure], [['notes'], undefined])
  })

  const failures: readonly (readonly [what: string, visibility: unknown, failure: RegExp])[] = [
    ['throws', () => assert.fail('no idea'), /no idea/],
    ['rejects', () => Promise.reject(new Error('no idea')), /no idea/],
    ['throws nothing', () => Promise.reject(undefined), /undefined/],
    ['gives nothing', () => undefined, /must give a list/],
    ['gives a text', () => 'notes', /must give a list/],
    ['gives a number', () => 4, /must give a list/],
    ['gives an object', () => ({ length: 4 }), /must give a list/],
    ['gives true', async () => true, /must give a list/],
    ['is a text', 'notes', /must give a list/],
    ['names something else', [7], /must name tools or ids/],
    ['names what only looks like a tool', [{ id: 'notes' }], /must name tools or ids/],
    [
      'fails halfway',
      function* () {
        yield 'notes'
        throw new Error('no idea')
      },
      /no idea/,
    ],
  ]
  for (const [what, visibility, failure] of failures) {
    it(`that ${what} makes an empty view that says so, and refuses every call`, async () => {
      const view = await viewBy(visibility as Visibility)
      assert.deepEqual(view.ids, [])
      assert.match(view.failure ?? '', failure)
      assert.equal(view.explain('notes').reasons[0]?.code, 'visibility_error')
      assert.equal((await view.call({ tool: 'notes' })).text, 'Tool "notes" is not available. Available tools: (none).')
    })
  }

  it('that does not answer in time has failed', async () => {
    const view = await viewBy(() => new Promise<never>(() => {}), { visibilityDeadlineMs: 1 })
    assert.deepEqual([view.ids, view.failure], [[], 'no answer in 0.001 s'])
  })

  it('does not let a tightening pass that came while it was asked', async () => {
    const gate = open()
    const asking = Promise.withResolvers<void>()
    const opening = gate.view({}, { visibility: () => asking.promise.then(() => ['notes', 'files:read']) })
    gate.setPolicy({ deny: ['notes'] })
    asking.resolve()
    assert.deepEqual((await opening).ids, ['files:read'])
  })
})

describe('view', () => {
  it('is a frozen snapshot', async () => {
    const gate = open()
    const view = await gate.view({})
    const { fingerprint } = view
    gate.setPolicy({ allow: [] })
    assert.deepEqual([view.size, view.fingerprint], [4, fingerprint])
    assert.throws(() => Object.assign(view, { ids: [] }), TypeError)
    assert.throws(() => (view.ids as string[]).push('x'), TypeError)
    assert.throws(() => (view.tools as Tool[]).pop(), TypeError)
  })

  it('has a fingerprint of what is visible, and of nothing else', async () => {
    const one = await open({ policy: { deny: ['notes'] } }).view({})
    const other = await open({ policy: { allow: ['files:*', 'web:search'] } }).view({ user: 'vera' })
    const more = await open().view({})
    assert.equal(one.fingerprint, other.fingerprint)
    assert.notEqual(one.fingerprint, more.fingerprint)
    assert.match(one.fingerprint, /^[0-9a-f]{32}$/)
  })

  it('returns the tools that it has, and no others', async () => {
    const view = await open({ policy: { deny: ['notes'] } }).view({})
    assert.equal(view.get('files:read'), tools[0])
    for (const id of ['notes', 'nothing', 'constructor', '__proto__']) {
      assert.deepEqual([view.has(id), view.get(id)], [false, undefined])
    }
  })

  it('explains with every layer’s answer, for people', async () => {
    const gate = open({
      policy: [
        { name: 'baseline', deny: [{ id: 'no-notes', match: 'notes', unless: "'admin' in caller.roles" }] },
        { name: 'team', allow: ['files:*'] },
      ],
    })
    const view = await gate.view({})
    assert.deepEqual(
      view.explain('notes').reasons.map(({ layer, policy, clause, text }) => [layer, policy, clause?.id, text]),
      [
        ['policy', 'baseline', 'no-notes', `policy "baseline" denies no-notes, unless 'admin' in caller.roles`],
        ['policy', 'team', undefined, 'policy "team": no allow rule mentions this tool'],
      ],
    )
    const { answers, ...decision } = view.explain('files:read')
    assert.deepEqual(decision, { outcome: 'allow', reasons: [], mayStill: [] })
    assert.ok(answers.every(({ outcome }) => outcome === 'allow'))
    assert.equal(view.explain('nothing').reasons[0]?.code, 'tool_not_found')
  })

  it('is narrowed by active tools, a policy or both, again and again', async () => {
    const view = await open().view({})
    const step = view.narrow({ activeTools: ['notes', 'files:read'] })
    assert.deepEqual(step.ids, ['files:read', 'notes'])
    assert.deepEqual(step.narrow({ activeTools: ['notes', 'web:search'] }).ids, ['notes'])
    assert.deepEqual(step.narrow({ policy: { deny: ['notes'] } }).ids, ['files:read'])
    assert.deepEqual(view.narrow({ activeTools: [] }).ids, [])
    assert.equal(view.size, 4)
  })

  it('is given back as it is where nothing narrows it, until anything changes', async () => {
    const gate = open()
    const all = await gate.view({})
    const views = [all, all.narrow({ activeTools: ['notes'] }), await gate.view({}, { visibility: ['notes'] })]
    for (const view of views) assert.equal(view.narrow({}), view)
    assert.notEqual(all.narrow({ activeTools: all.ids }), all)
    gate.setPolicy({ deny: ['notes'] })
    for (const view of views) {
      assert.equal(view.narrow({}).has('notes'), false)
      assert.equal(view.has('notes'), true)
    }
  })

  it('is narrowed by a policy that wants the input, too', async () => {
    const view = (await open().view({})).narrow({ policy: { deny: [{ match: 'notes', input: 'input.n > 1' }] } })
    assert.equal((await view.call({ tool: 'notes', input: { n: 1 } })).status, 'done')
    assert.equal((await view.call({ tool: 'notes', input: { n: 2 } })).status, 'refused')
  })

  it('rejects invalid options to narrow', async () => {
    const view = await open().view({})
    assert.throws(() => view.narrow({ activeTools: ['note'] }), { name: 'UnknownToolError' })
    assert.throws(() => view.narrow({ policy: { deny: ['note'] } }), { code: 'selector_invalid' })
    assert.throws(() => view.narrow({ policy: { deny: [{ match: '*', when: 'true &&' }] } }), {
      code: 'condition_invalid',
    })
  })

  it('takes active tools that are gone now, and leaves them out', async () => {
    let offered = tools
    let changed = () => {}
    const source = {
      name: 'live',
      tools: () => offered,
      subscribe(listener: () => void) {
        changed = listener
        return () => {}
      },
    }
    const gate = createGate({ sources: [source] })
    offered = tools.slice(0, 1)
    changed()
    const view = await gate.view({}, { activeTools: ['files:read', 'notes'] })
    assert.deepEqual(view.ids, ['files:read'])
    await gate.close()
  })
})
